"""A query whose rows come in one order: where the clause is written into it."""

from __future__ import annotations

import pytest

from mergeplan.planner.parsing.sql.ordered_query import order_query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select a, b from t", "select a, b from t ORDER BY 1, 2"),
        ("select a from t limit 3", "select a from t ORDER BY 1, 2 limit 3"),
        ("select a from t order  by n desc limit 3", "select a from t order  by n desc, 1, 2 limit 3"),
        ("select a from (select 1 order by 1 limit 2)", "select a from (select 1 order by 1 limit 2) ORDER BY 1, 2"),
        ("select max(a) over (order by b) from t", "select max(a) over (order by b) from t ORDER BY 1, 2"),
        ("select ') order by' from t", "select ') order by' from t ORDER BY 1, 2"),
        ("select a from t where b = ')' limit 5", "select a from t where b = ')' ORDER BY 1, 2 limit 5"),
        ("select a from t where b = '(' order by a", "select a from t where b = '(' order by a, 1, 2"),
        ("select a from t order by `limit`", "select a from t order by `limit`, 1, 2"),
        ("select a from t window w as (order by a)", "select a from t window w as (order by a) ORDER BY 1, 2"),
        ("select a from t order by a window w as (b)", "select a from t order by a, 1, 2 window w as (b)"),
        ("(select 1) union all (select 2)", "(select 1) union all (select 2) ORDER BY 1, 2"),
        ("select a from t order by all", "select a from t order by all"),
        ("select a from t sort by a", "select a from t sort by a"),
    ],
)
def test_columns_decide_what_an_order_leaves_open(text: str, expected: str) -> None:
    assert order_query(text, 2) == expected
