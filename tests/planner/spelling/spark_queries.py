"""Spark's own test queries, read from a folder of its `.sql` files; none of them is part of this project.

MERGEPLAN_SPARK_QUERIES names the folder (`sql/core/src/test/resources/sql-tests/inputs` of a copy of Spark). The tables
and views of a file are made in a schema of its own, so that its queries can name them as models name tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, tree_of

FOLDER = os.environ.get("MERGEPLAN_SPARK_QUERIES", "")
SCHEMA = "q"
_DIALECT = Dialect.get_or_raise("spark")
_SETUP = re.compile(r"(?:CREATE\b(?!.*\bFUNCTION\b)|INSERT\b)", re.IGNORECASE | re.DOTALL)
_TEMPORARY = re.compile(r"\b(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+(?=VIEW)", re.IGNORECASE)
_QUERY = re.compile(r"\(*\s*(?:SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)


@dataclass(frozen=True)
class QueryFile:
    """A file's queries, over tables of the schema `q`."""

    name: str
    queries: tuple[str, ...]
    parents: Mapping[str, Parent]


def query_files(engine: SparkEngine, folder: str = FOLDER) -> Iterator[QueryFile]:
    """The files of the folder, one after the other: the tables of one are gone when the next one comes."""
    for path in sorted(Path(folder).rglob("*.sql")):
        statements = split_statements(path.read_text(encoding="utf-8"))
        engine.fetch(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        engine.fetch(f"CREATE SCHEMA {SCHEMA}")
        engine.fetch(f"USE {SCHEMA}")
        try:
            parents = _set_up(engine, [text for text in statements if _SETUP.match(text)])
            queries = [_add_schema(text, parents) for text in statements if _QUERY.match(text)]
        finally:
            engine.fetch("USE default")
        yield QueryFile(str(path.relative_to(folder)), tuple(dict.fromkeys(queries)), parents)


def split_statements(text: str) -> list[str]:
    """The statements of a file, without the comments before them; none of a file that cannot be cut into tokens."""
    try:
        tokens = _DIALECT.tokenize(text)
    except FAILURES:
        return []
    statements, start = [], 0
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            if index > start:
                statements.append(text[tokens[start].start : tokens[index - 1].end + 1])
            start = index + 1
    return statements


def _set_up(engine: SparkEngine, statements: Sequence[str]) -> dict[str, Parent]:
    """Make the tables and views of a file; those that Spark refuses are left out."""
    for text in statements:
        try:
            engine.fetch(_TEMPORARY.sub("", text))
        except MergeplanError:
            continue
    parents = {}
    for _, name, *_rest in engine.fetch(f"SHOW TABLES IN {SCHEMA}").rows:
        try:
            columns = engine.schema(f"SELECT * FROM {SCHEMA}.`{name}`")
        except MergeplanError:  # a type that no model may have
            continue
        types = tuple((column.name.lower(), str(column.type)) for column in columns)
        parents[f"{SCHEMA}.{name}"] = Parent(tuple(column for column, _ in types), types=types)
    return parents


def _add_schema(text: str, parents: Mapping[str, Parent]) -> str:
    """The query with the tables of its file named with their schema."""
    try:
        tree = tree_of(text)
    except FAILURES:
        return text
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    named = {
        int(table.this.meta["start"])
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and not table.db
        and table.name.lower() not in ctes
        and "start" in table.this.meta
        and f"{SCHEMA}.{table.name}".lower() in parents
    }
    for start in sorted(named, reverse=True):
        text = f"{text[:start]}{SCHEMA}.{text[start:]}"
    return text
