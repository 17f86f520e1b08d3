"""Which tables a query over a stretch of time reads within that stretch only."""

import pytest

from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent

PARENTS = {"s.a": Parent(("d", "id", "x")), "s.b": Parent(("d", "id"))}
HELD = "d BETWEEN @start_ds AND @end_ds"


@pytest.mark.parametrize(
    ("sql", "held"),
    [
        (f"SELECT d, x FROM s.a WHERE {HELD}", {"s.a"}),
        (f"WITH c AS (SELECT * FROM s.a WHERE {HELD}) SELECT d, SUM(x) AS x FROM c GROUP BY d", {"s.a"}),
        ("SELECT a.d FROM s.a JOIN s.b ON a.id = b.id WHERE a.d BETWEEN @start_ds AND @end_ds", {"s.a"}),
        ("SELECT d, x FROM s.a WHERE d >= @start_ds", set()),
        ("SELECT d, x FROM s.a WHERE d <= @end_ds", set()),
        (f"SELECT d, x FROM s.a WHERE {HELD} OR x = 1", set()),
        ("SELECT d, x FROM s.a WHERE NOT d < @start_ds AND d < @end_ds", {"s.a"}),
        (f"SELECT d, id FROM s.a WHERE {HELD} UNION ALL SELECT d, id FROM s.b", set()),
        (f"SELECT d FROM s.a WHERE {HELD} AND EXISTS (SELECT 1 FROM s.a AS o WHERE o.id = 1)", set()),
        ("SELECT a.d FROM s.a JOIN s.a AS b ON a.id = b.id WHERE a.d BETWEEN @start_ds AND @end_ds", set()),
        (f"SELECT a.d FROM s.a JOIN s.a AS b ON a.id = b.id WHERE b.{HELD} AND a.{HELD}", {"s.a"}),
        (f"SELECT a.d FROM s.a JOIN s.b ON a.id = b.id WHERE b.{HELD} AND a.{HELD}", {"s.a", "s.b"}),
        ("SELECT d, x FROM s.a WHERE d BETWEEN '2020-01-01' AND @end_ds", set()),
        (f"SELECT d, (SELECT MAX(x) FROM s.a) AS m FROM s.a WHERE {HELD}", set()),
        (f"SELECT d, x FROM s.a WHERE {HELD} AND id IN (SELECT id FROM s.a)", set()),
        (f"SELECT d, t FROM (SELECT d, SUM(x) OVER () AS t FROM s.a) WHERE {HELD}", set()),
        (f"SELECT a.d FROM s.a LEFT JOIN s.b ON a.id = b.id AND b.{HELD} WHERE a.{HELD}", {"s.a"}),
    ],
)
def test_a_table_is_held_in_the_stretch_only_when_it_is_so_wherever_it_is_read(sql: str, held: set[str]) -> None:
    bounded = shape_of(sql, PARENTS, "d").bounded

    assert {table for table, columns in bounded.items() if "d" in columns} == held
