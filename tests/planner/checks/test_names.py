"""What a query reads and returns, by name."""

import pytest
import sqlglot
from sqlglot import exp

from mergeplan.planner.parsing.sql.names import name_outputs


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT 1, a + b FROM t", "SELECT 1 AS `_col_0`, a + b AS `_col_1` FROM t"),
        ("SELECT CAST(a AS INT), (b) FROM t", "SELECT CAST(a AS INT) AS `a`, (b) AS `b` FROM t"),
        ("SELECT a, t.b, s.c.d, x AS y, * FROM t", "SELECT a, t.b, s.c.d, x AS y, * FROM t"),
        ("SELECT COUNT(*) UNION ALL SELECT 2", "SELECT COUNT(*) AS `_col_0` UNION ALL SELECT 2"),
        ("SELECT INLINE(x), EXPLODE(y) FROM t", "SELECT INLINE(x), EXPLODE(y) FROM t"),
    ],
)
def test_an_output_without_a_name_gets_one_that_a_table_can_have(query: str, named: str) -> None:
    tree = sqlglot.parse_one(query, dialect="spark")
    assert isinstance(tree, exp.Query)

    name_outputs(tree)

    assert tree.sql("spark") == named
