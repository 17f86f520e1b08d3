"""A query that a unit test itself contains, in place of rows."""

from __future__ import annotations

from sqlglot import exp

from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.sql.names import name_tables
from mergeplan.planner.parsing.sql.tokens import SourceText, parse_tokens, spark_query, tokenize


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
