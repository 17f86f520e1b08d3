"""A stand-in for prod's Spark that knows the columns of tables, and answers a query of a template with one row.

It serves benchmarks that only plan: nothing is computed, and no Spark starts.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.files.dbt.nodes import table_name

_ALL_OF = re.compile(r"SELECT \* FROM (\S+)")
_DAY = re.compile(r"date|day|_at\b|time|month|year", re.IGNORECASE)
Tables = dict[str, tuple[Column, ...]]


class StandInSpark:
    """An engine with the columns of some tables; whatever else is asked of it is an error."""

    is_lost = goes_on = False

    def __init__(self, tables: Mapping[str, tuple[Column, ...]]) -> None:
        self._tables = tables

    def schema(self, sql: str) -> tuple[Column, ...]:
        if (match := _ALL_OF.fullmatch(sql.strip())) is None:
            return tuple(Column(name, "string") for name in _list_columns(sql))
        name = table_name(match[1])
        if name not in self._tables:
            raise QueryError(f"There is no table `{name}`.", condition="TABLE_OR_VIEW_NOT_FOUND")
        return self._tables[name]

    def fetch(self, sql: str, limit: int | None = None) -> Rows:
        names = _list_columns(sql)
        return Rows(tuple(names), (tuple(map(_value_of, names)),))

    def engine_for(self, gateway: str) -> StandInSpark:
        return self

    def close(self) -> None:
        pass


def _list_columns(sql: str) -> list[str]:
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError as error:
        raise QueryError(str(error)) from None
    selects = tree.selects if isinstance(tree, exp.Query) else []
    return [select.alias_or_name or f"c{number}" for number, select in enumerate(selects)] or ["c0"]


def _value_of(name: str) -> object:
    return date(2024, 1, 1) if _DAY.search(name) else 1


def read_tables(manifest: Path, root: Path, listed: Mapping[str, Sequence[str]]) -> Tables:
    """Return the tables that a project reads: sources by their YAML, the seed of their name below the root, or a list.

    `listed` has the columns of tables by their name without a schema.
    """
    content = json.loads(manifest.read_text("utf-8"))
    headers = {path.stem.lower(): path for path in sorted(root.rglob("*.csv"))}
    tables: Tables = {}
    for source in content["sources"].values():
        name = table_name(source["relation_name"])
        columns = {column["name"].lower(): column.get("data_type") or "" for column in source["columns"].values()}
        file = headers.get(source["identifier"].lower()) or headers.get(source["name"].lower())
        own = listed.get(name.rpartition(".")[2])
        for column in own or (_read_header(file) if file else ()):
            columns.setdefault(column, "")
        if columns:
            tables[name] = tuple(Column(column, kind.lower() or "string") for column, kind in columns.items())
    return tables


def _read_header(file: Path) -> list[str]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return [name.strip().lower() for name in next(csv.reader(lines), []) if name.strip()]
