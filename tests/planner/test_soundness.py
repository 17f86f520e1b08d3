"""What a plan says is unaffected is run on Spark before and after the edit, and must hold the same rows.

A wrong "keeps its table" is the worst defect there is, so the rules are not only read but run: random models, random
edits, small and nasty data. A failing case prints its seed and its models.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from planner.change import Category, Change
from planner.errors import ProjectErrors
from planner.model import Model
from planner.spark.engine import SparkEngine

from .building import change_of, external, model, project

ROWS = """VALUES
    (1, 10, 5.0, 'a', DATE '2026-01-01'), (2, 10, NULL, 'b', DATE '2026-01-01'), (3, 20, 5.0, NULL, DATE '2026-01-02'),
    (3, 20, 5.0, NULL, DATE '2026-01-02'), (4, NULL, -1.5, 'A', DATE '2026-01-03'), (5, 30, 0.0, '', DATE '2026-01-05'),
    (NULL, 30, 7.25, 'a', NULL), (6, 10, 5.0, 'b', DATE '2026-01-05')"""
CASES = int(os.environ.get("MERGEPLAN_CASES", "120"))  # `make prove` runs many more
RAW = ("id", "item", "price", "flag", "d")
KEEPS = (Category.EQUIVALENT, Category.METADATA, Category.INDIRECT_NON_BREAKING)
SCALARS = (
    "id", "item", "price", "flag", "d", "price * 2 AS dbl", "COALESCE(price, 0) AS p0", "UPPER(flag) AS up",
    "CASE WHEN price > 1 THEN 'hi' ELSE flag END AS cls", "id + item AS both", "item AS id2", "YEAR(d) AS y",
    "ROW_NUMBER() OVER (PARTITION BY item ORDER BY id, price, flag) AS nr",
    "SUM(price) OVER (PARTITION BY item) AS total",
    "'z' AS z", "price AS flag2", "(id) AS i2", "LENGTH(flag) AS len",
)  # fmt: skip
FOLDED = ("COUNT(*) AS n", "SUM(price) AS s", "MAX(d) AS last", "COUNT(DISTINCT id) AS ids", "MIN(flag) AS least")
WHERES = ("price > 0", "item IS NOT NULL", "id < 5 AND flag <> 'b'", "flag <> 'b' AND id < 5", "d >= DATE '2026-01-02'")
GENERATORS = ("EXPLODE(ARRAY(1, 2)) AS e", "INLINE(ARRAY(STRUCT(1 AS e1), STRUCT(2 AS e1)))")


@dataclass(frozen=True)
class Query:
    """A query to be edited: outputs, and the clauses around them."""

    outputs: tuple[str, ...]
    source: str
    where: str = ""
    group: str = ""
    distinct: bool = False
    tail: str = ""

    @property
    def sql(self) -> str:
        parts = ["SELECT DISTINCT" if self.distinct else "SELECT", ", ".join(self.outputs), f"FROM {self.source}"]
        parts += [f"WHERE {self.where}"] if self.where else []
        parts += [f"GROUP BY {self.group}"] if self.group else []
        return " ".join([*parts, self.tail]).strip()


def parent(rng: random.Random) -> Query:
    if rng.random() < 0.3:
        return Query(("item", *rng.sample(FOLDED, 2)), "s.raw", rng.choice(("", *WHERES)), "item")
    outputs = tuple(dict.fromkeys(rng.sample(SCALARS, rng.randint(2, 5))))
    return Query(outputs, "s.raw", rng.choice(("", "", *WHERES)), distinct=rng.random() < 0.1)


def edited(rng: random.Random, query: Query) -> Query:
    pool = FOLDED if query.group else SCALARS
    outputs = list(query.outputs)
    fresh = [each for each in pool if each not in outputs]
    at = rng.randrange(len(outputs))
    edit = rng.choice(
        ("add", "add", "add", "alter", "remove", "where", "distinct", "swap", "generate", "same", "limit", "fold")
    )
    match edit:
        case "add":
            outputs.insert(at, rng.choice(fresh))
        case "alter":
            value = outputs[at].split(" AS ")[0]
            outputs[at] = f"NULLIF({value}, {rng.choice(('NULL', value))}) AS {name_of(outputs[at])}"
        case "remove" if len(outputs) > 1:
            del outputs[at]
        case "where":
            return Query(query.outputs, query.source, rng.choice(WHERES), query.group, query.distinct)
        case "distinct":
            return Query(query.outputs, query.source, query.where, query.group, not query.distinct)
        case "swap":
            rng.shuffle(outputs)
        case "generate" if not query.group:
            outputs.append(rng.choice(GENERATORS))
        case "limit":
            return Query(query.outputs, query.source, query.where, query.group, query.distinct, "ORDER BY 1 LIMIT 3")
        case "fold" if not query.group:
            plain = [each for each in outputs if "OVER" not in each and name_of(each) != "id"]
            maxima = (f"MAX({each.split(' AS ')[0]}) AS {name_of(each)}" for each in plain)
            return Query(("COUNT(*) AS id", *maxima), query.source, query.where)
        case _:
            where = f"({query.where})" if query.where else "1 = 1" if rng.random() < 0.1 else ""
            return Query(query.outputs, "s.raw AS raw", where, query.group, query.distinct)
    return Query(tuple(outputs), query.source, query.where, query.group, query.distinct)


def name_of(output: str) -> str:
    return output.rpartition(" AS ")[2] if " AS " in output else output


def reader(rng: random.Random, names: list[str], of: str) -> str:
    one, two = rng.choice(names), rng.choice(names)
    return rng.choice((
        f"SELECT {one} AS k, COUNT(*) AS n FROM {of} GROUP BY {one}",
        f"SELECT {one} AS k FROM {of} WHERE {two} IS NOT NULL",
        f"SELECT * FROM {of}",
        f"SELECT COUNT(*) AS n, 1 AS k FROM {of}",
        f"SELECT {one} AS k, {two} AS v FROM {of}",
        f"SELECT DISTINCT {one} AS k FROM {of}",
        f"SELECT t.{one} AS k, r.flag AS v FROM {of} AS t JOIN s.raw AS r ON STRING(r.item) = STRING(t.{two})",
        f"SELECT r.id AS k FROM s.raw AS r WHERE EXISTS (SELECT 1 FROM {of} t WHERE STRING(t.{one}) = STRING(r.item))",
        f"SELECT k FROM (SELECT {one} AS k, {two} AS v FROM {of}) AS q WHERE v IS NULL",
        f"SELECT MAX({one}) AS k FROM {of}",
        f"SELECT HASH(*) AS k FROM {of}",
        f"SELECT EXPLODE(FILTER(ARRAY(STRING({one}), STRING({two})), e -> e IS NOT NULL)) AS k FROM {of}",
        f"SELECT v.w AS k FROM {of} LATERAL VIEW EXPLODE(FILTER(ARRAY(STRING({one})), e -> e IS NOT NULL)) v AS w",
    ))  # fmt: skip


def case(seed: int) -> tuple[dict[str, Model], dict[str, Model]]:
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    before = parent(rng)
    names = [name_of(output) for output in before.outputs]
    child = reader(rng, names, "s.parent")
    grand = reader(rng, ["k"], "s.child") if " AS k" in child else "SELECT COUNT(*) AS n FROM s.child"
    rest = [model("s.child", child), model("s.grand", grand)]
    raw = external("s.raw", " ".join(RAW))
    old = project(raw, model("s.parent", before.sql), *rest)
    new = project(raw, model("s.parent", edited(rng, before).sql), *rest)
    return old, new


def inlined(models: Mapping[str, Model], name: str) -> str:
    """The model's rows as one query over the sample rows."""
    ctes = [f"raw AS (SELECT * FROM {ROWS} AS t({', '.join(RAW)}))"]
    for each in ("s.parent", "s.child", "s.grand"):
        sql = models[each].sql.replace("s.raw", "raw").replace("s.parent", "parent").replace("s.child", "child")
        ctes.append(f"{each[2:]} AS ({sql})")
        if each == name:
            break
    return f"WITH {', '.join(ctes)} SELECT * FROM {name[2:]}"


def kept(change: Change) -> str | None:
    """The columns that must be as before, as a select list; None when nothing is promised."""
    if change.category in KEEPS:
        return "*"
    if change.category is Category.NON_BREAKING or (change.category and not change.columns.every):
        columns = change.old.columns if change.old else None
        same = sorted(set(columns or ()) - change.columns.altered - change.columns.removed)
        return ", ".join(f"`{column}`" for column in same) or None
    return None


def difference(old: Mapping[str, Model], new: Mapping[str, Model], name: str, columns: str, told: str) -> str:
    """A query for how many rows differ, under a name."""
    one, two = (f"SELECT {columns} FROM ({inlined(models, name)})" for models in (old, new))
    differ = f"(({one} EXCEPT ALL {two}) UNION ALL ({two} EXCEPT ALL {one}))"
    return f"SELECT '{told}' AS told, COUNT(*) AS n FROM {differ}"


def promises(seed: int) -> list[str]:
    """One query for each thing that a case's plan promises."""
    old, new = case(seed)
    try:
        changes = change_of(old, new)
    except ProjectErrors:
        return []  # the edit took away a column that is still read
    found = []
    for name, change in changes.items():
        columns = kept(change)
        if columns is not None and change.old is not None and change.new is not None:
            edit = f"{old['s.parent'].sql} -> {new['s.parent'].sql}; child {old['s.child'].sql}"
            told = f"seed {seed}: {name} is {change.category} by {change.rule}: {edit}".replace("'", "")
            found.append(difference(old, new, name, columns, told))
    return found


@pytest.mark.parametrize("block", range(CASES // 20))
def test_what_is_said_to_be_unaffected_holds_the_same_rows(shared_engine: SparkEngine, block: int) -> None:
    queries = [query for seed in range(block * 20, block * 20 + 20) for query in promises(seed)]

    wrong = shared_engine.fetch(f"SELECT * FROM ({' UNION ALL '.join(queries)}) WHERE n > 0").rows

    assert len(queries) > 5
    assert not wrong
