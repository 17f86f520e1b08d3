"""Small and nasty rows, and what a project's models hold over them.

A model becomes one query over the sample rows: each model that it reads stands before it as a CTE. Names are spliced
into the text where they stand, so that what Spark runs is what a case says and not what a parser made of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import exp

from mergeplan.planner.model.model import Model

Fetch = Callable[[str], Iterable[tuple[object, ...]]]  # a Spark query to its rows
BATCH = 24  # queries that are asked at once: Spark needs longer than twice as long for twice as many
# A run's days, so wide that every sample row lies inside.
DATES = {"start_ds": "'2026-01-01'", "end_ds": "'2026-01-31'", "start_date": "DATE '2026-01-01'",
         "end_date": "DATE '2026-01-31'", "start_dt": "TIMESTAMP '2026-01-01 00:00:00'",
         "end_dt": "TIMESTAMP '2026-01-31 23:59:59'"}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A table that no model makes: (name, type) of its columns, and its rows as Spark SQL."""

    columns: tuple[tuple[str, str], ...]
    rows: str

    @property
    def sql(self) -> str:
        cast = ", ".join(f"CAST({name} AS {of}) AS {name}" for name, of in self.columns)
        return f"SELECT {cast} FROM VALUES {self.rows} AS t({', '.join(name for name, _ in self.columns)})"


def _source(columns: str, rows: str) -> Source:
    pairs = (text.strip().split(" ", 1) for text in columns.split("; "))
    return Source(tuple((name, of) for name, of in pairs), rows)


SOURCES = {
    "src.orders": _source(
        "id int; item int; price decimal(10,2); qty int; flag string; d date",
        """(1, 10, 5.00, 2, 'a', DATE '2026-01-01'), (2, 10, NULL, 1, 'b', DATE '2026-01-01'),
        (3, 20, 5.00, 3, NULL, DATE '2026-01-02'), (3, 20, 5.00, 3, NULL, DATE '2026-01-02'),
        (4, NULL, -1.50, 0, 'A', DATE '2026-01-03'), (5, 30, 0.00, NULL, '', DATE '2026-01-05'),
        (NULL, 30, 7.25, -2, 'a', NULL), (6, 10, 5.00, 5, 'b', DATE '2026-01-05'),
        (7, 99, 12.40, 1, 'c', DATE '2026-01-06')""",
    ),
    "src.returns": _source(
        "id int; item int; price decimal(10,2); qty int; flag string; d date",
        """(3, 20, 5.00, 3, NULL, DATE '2026-01-02'), (2, 10, NULL, 1, 'b', DATE '2026-01-01'),
        (8, 40, 2.00, 1, 'd', DATE '2026-01-07'), (8, 40, 2.00, 1, 'd', DATE '2026-01-07'),
        (NULL, NULL, NULL, NULL, NULL, NULL)""",
    ),
    "src.items": _source(
        "item int; label string; cost decimal(10,2); kind string; parent int",
        """(10, 'ten', 1.00, 'x', NULL), (20, 'twenty', NULL, 'y', 10), (30, '', 3.50, 'x', 10),
        (30, 'thirty', 3.50, NULL, 10), (40, 'forty', -4.00, 'z', 20), (NULL, 'none', 0.00, 'x', NULL)""",
    ),
    "src.events": _source(
        "id int; tags array<string>; marks array<int>; info struct<a:int,b:string>; "
        "pairs array<struct<k:string,v:int>>; body string; d date",
        """(1, ARRAY('x', 'y', 'x'), ARRAY(3, 1, NULL), STRUCT(1, 'p'), ARRAY(STRUCT('k', 1), STRUCT('l', NULL)),
         '{"a": 1, "b": "z"}', DATE '2026-01-01'),
        (2, ARRAY(), ARRAY(), STRUCT(NULL, 'q'), ARRAY(), '{"a": null}', DATE '2026-01-01'),
        (3, NULL, NULL, NULL, NULL, NULL, DATE '2026-01-02'),
        (4, ARRAY('x', NULL), ARRAY(5), STRUCT(2, NULL), ARRAY(STRUCT('k', 7)), '{"b": "w", "c": 4}', NULL)""",
    ),
}


@dataclass(frozen=True)
class Content:
    """What a model holds: the struct of its columns as Spark writes it ('' when there are no rows), and the rows."""

    type: str
    rows: tuple[str, ...]  # JSON objects

    def only(self, columns: Collection[str]) -> Counter[str]:
        """The rows cut to some columns, as a multiset."""
        cut = ({k: v for k, v in json.loads(row).items() if k in columns} for row in self.rows)
        return Counter(json.dumps(row, sort_keys=True) for row in cut)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for row in self.rows[:1] for name in json.loads(row))

    def same(self, other: Content) -> bool:
        """True when a table with this content need not be computed anew to have the other's."""
        return self.type == other.type and Counter(self.rows) == Counter(other.rows)


def query_of(models: Mapping[str, Model], name: str) -> str:
    """A model's rows as one query over the sample rows."""
    parts: dict[str, str] = {}
    _collect(models, name, parts)
    ctes = ", ".join(f"{_cte(model_name)} AS ({sql})" for model_name, sql in parts.items())
    return f"WITH {ctes} SELECT * FROM {_cte(name)}"


def contents(queries: Collection[str], fetch: Fetch) -> dict[str, Content]:
    """What each query answers."""
    asked = list(dict.fromkeys(queries))
    types = dict.fromkeys(range(len(asked)), "")
    rows: dict[int, list[str]] = {number: [] for number in range(len(asked))}
    for first in range(0, len(asked), BATCH):
        batch = enumerate(asked[first : first + BATCH], first)
        for number, of, row in fetch(" UNION ALL ".join(_number_rows(n, query) for n, query in batch)):
            assert isinstance(number, int)
            types[number] = str(of).lower()
            rows[number].append(json.dumps({k.lower(): v for k, v in json.loads(str(row)).items()}))
    return {query: Content(types[n], tuple(rows[n])) for n, query in enumerate(asked)}


def _number_rows(number: int, query: str) -> str:
    row = "to_json(struct(*), map('ignoreNullFields', 'false'))"
    return f"(SELECT {number} AS k, typeof(struct(*)) AS t, {row} AS r FROM ({query}))"


def _collect(models: Mapping[str, Model], name: str, parts: dict[str, str]) -> None:
    if name in parts:
        return
    if name in SOURCES:
        parts[name] = SOURCES[name].sql
        return
    for parent in models[name].depends_on:
        _collect(models, parent, parts)
    parts[name] = _declare_columns(models[name], _splice_names(models[name].sql))


def _declare_columns(model: Model, sql: str) -> str:
    """The query as a table with declared columns holds it: in their order and cast to their types."""
    cast = ", ".join(f"CAST({column.name} AS {column.type}) AS {column.name}" for column in model.columns)
    return f"SELECT {cast} FROM ({sql})" if cast else sql


@cache
def _splice_names(sql: str) -> str:
    """The query with `m.base` as `m__base AS base` where it is a table, and as `base` where it qualifies a column."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    cuts = [cut for node in tree.find_all(exp.Table, exp.Column) if (cut := _cut(node))]
    for start, end, text in sorted(cuts, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return re.sub(r"@(\w+)", lambda match: DATES[match[1]], sql)


def _cut(node: exp.Expr) -> tuple[int, int, str] | None:
    """(start, end, new text) of a name with a schema."""
    schema = node.args.get("db")
    name = node.this if isinstance(node, exp.Table) else node.args.get("table")
    if schema is None or name is None:
        return None
    alias = "" if node.args.get("alias") else f" AS {name.name}"
    text = f"{_cte(f'{schema.name}.{name.name}')}{alias}" if isinstance(node, exp.Table) else name.name
    return schema.meta["start"], name.meta["end"] + 1, text


def _cte(name: str) -> str:
    return name.lower().replace(".", "__")
