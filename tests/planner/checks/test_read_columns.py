"""Columns that a query takes from a table: those that can be nothing else."""

from __future__ import annotations

import pytest

from mergeplan.planner.checks.read_columns import find_read_columns
from mergeplan.planner.parsing.macros.expand import spark_tree


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT id, UPPER(name) AS name, qty * 2 AS n FROM s.t WHERE gone IS NULL", "id name qty gone"),
        ("SELECT qty * 2 AS n, n + 1 AS m FROM s.t", "qty"),
        ("SELECT qty * 2 AS n FROM s.t WHERE n > 1 GROUP BY n", "qty"),
        ("WITH a AS (SELECT * FROM s.t), b AS (SELECT id AS key, c FROM a) SELECT key, c FROM b", "id c"),
        ("SELECT a.x, y FROM s.t AS a JOIN s.u AS b ON a.k = b.k", "x k"),
        ("SELECT x FROM s.u WHERE EXISTS (SELECT 1 FROM s.t WHERE y = 1 AND t.z = 2)", "z"),
        ("SELECT x FROM (SELECT * EXCEPT (y) FROM s.t) AS q", "x"),
        ("SELECT x FROM s.t UNION ALL SELECT y FROM s.t", "x y"),
        ("SELECT TRANSFORM(items, i -> i + 1) AS i FROM s.t", "items"),
        ("SELECT x FROM s.u", ""),
    ],
)
def test_a_column_is_read_if_its_name_can_be_nothing_else(sql: str, columns: str) -> None:
    assert find_read_columns(spark_tree(sql), "s.t") == {*columns.split()}
