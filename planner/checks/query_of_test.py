"""The queries that a unit test itself contains: its rows, and what it has in place of rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from mergeplan.planner.checks.inlining import UNTYPED, render_rows, type_of
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.definitions.unit_tests import TestRows, UnitTest
from mergeplan.planner.parsing.sql.names import name_tables
from mergeplan.planner.parsing.sql.tokens import SourceText, did_you_mean, parse_tokens, spark_query, tokenize


@dataclass(frozen=True)
class KnownRelation:
    """The columns of a table, None if they are not known; all of them if `is_whole`."""

    columns: tuple[Column, ...] | None
    is_whole: bool = True


def own_query(sql: str, dialect: str, test: UnitTest) -> str:
    """Return a query that the test itself contains, in the model's dialect, as Spark SQL."""
    source = SourceText(test.path, "\n" * (test.line - 1) + sql, dialect)
    tokens = tokenize(source)
    tree = parse_tokens(source, tokens, "The test's query")
    if not isinstance(tree, exp.Query):
        raise source.error(tokens[0], "The test's query is not a SELECT.")
    if tables := name_tables(tree, source, tokens):
        raise source.error(tokens[0], f"The test's query reads `{min(tables)}`: a test reads no tables.")
    return spark_query(tree, source, tokens)


def input_query(name: str, inputs: Mapping[str, TestRows], test: UnitTest, known: KnownRelation, dialect: str) -> str:
    """Return an input as a query: each cell cast to its column's type; a table without given rows is empty."""
    input_rows = inputs.get(name)
    if input_rows is not None and input_rows.query:
        return own_query(input_rows.query, dialect, test)
    types = {column.name: column.type for column in known.columns or ()} | dict(input_rows.types if input_rows else ())
    rows = input_rows.rows if input_rows else ()
    for column in dict.fromkeys(key for row in rows for key in row):
        if column not in types and known.columns and known.is_whole:
            place = replace(test.place, line=input_rows.line if input_rows else test.line)
            raise ProjectError(f"`{name}` has no column `{column}`.", place=place, hint=did_you_mean(column, types))
        if types.get(column, UNTYPED) == UNTYPED:
            types[column] = type_of([row.get(column) for row in rows])
    if not types:
        raise ProjectError(
            f"The columns of `{name}` are not known.", place=test.place, hint="Give it rows as an input."
        )
    return render_rows(types, rows)
