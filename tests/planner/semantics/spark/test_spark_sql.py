"""Trees as Spark reads their text, where sqlglot reads it otherwise."""

from __future__ import annotations

import pytest
from sqlglot.dialects import Dialect

from mergeplan.planner.semantics.spark.spark_sql import parse_statements

NAMED_VALUES = {
    "SELECT t.a FROM VALUES 'x', 'y' AS t(a)": "SELECT t.a FROM VALUES ('x'), ('y') AS t(a)",
    "SELECT * FROM VALUES 1, 2 t(a) JOIN VALUES 3 AS u(b)": (
        "SELECT * FROM VALUES (1), (2) AS t(a) JOIN VALUES (3) AS u(b) ON TRUE"
    ),
    "SELECT t.col1 FROM VALUES 1, 2 AS t": "SELECT t.col1 FROM VALUES (1), (2) AS t",
    "SELECT * FROM VALUES (1 AS p, 2 AS q) AS t(a, b)": "SELECT * FROM VALUES (1 AS p, 2 AS q) AS t(a, b)",
}


@pytest.mark.parametrize("text", NAMED_VALUES)
def test_rows_without_brackets_leave_their_alias_to_the_table(text: str) -> None:
    (tree,) = parse_statements(Dialect.get_or_raise("spark").tokenize(text), text)

    assert tree is not None
    assert tree.sql("spark") == NAMED_VALUES[text]
