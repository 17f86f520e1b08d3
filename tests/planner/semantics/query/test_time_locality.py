"""Which tables a query over a stretch of time reads within that stretch only."""

import pytest

from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent

DATE = (("d", "date"),)
PARENTS = {"s.a": Parent(("d", "id", "x"), types=DATE), "s.b": Parent(("d", "id"), types=DATE)}
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
        ("SELECT d, x FROM s.a WHERE NOT d < @start_ds AND NOT d > @end_ds", {"s.a"}),
        ("SELECT d, x FROM s.a WHERE d >= @start_ds AND d < @end_ds", set()),
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


@pytest.mark.parametrize(
    ("type_", "condition", "lost"),
    [
        ("date", HELD, False),
        ("date", "d BETWEEN @start_dt AND @end_dt", False),
        ("date", "d >= @start_date AND d < @end_date", True),
        ("date", "d > @start_date AND d <= @end_date", True),
        ("date", "d BETWEEN @start_hour AND @end_hour", True),
        ("timestamp", "d BETWEEN @start_ts AND @end_ts", False),
        ("timestamp", "d >= @start_ts AND d < @end_ts", True),
        ("timestamp", HELD, True),
        ("timestamp_ntz", "d BETWEEN @start_date AND @end_date", True),
        ("string", HELD, False),
        ("varchar(10)", HELD, False),
        ("string", "d BETWEEN @start_ts AND @end_ts", True),
        ("string", "d BETWEEN @start_dt AND @end_dt", False),
        ("bigint", "d BETWEEN @start_epoch AND @end_epoch", False),
        ("double", "d BETWEEN @start_epoch AND @end_epoch", True),
        ("", "d BETWEEN @start_ts AND @end_ts", False),
        ("", HELD, True),
    ],
)
def test_rows_that_a_filter_loses_between_two_intervals_are_not_those_of_both(
    type_: str, condition: str, lost: bool
) -> None:
    parent = Parent(("d", "x"), types=(("d", type_),) if type_ else ())
    shape = shape_of(f"SELECT d, x FROM s.a WHERE {condition}", {"s.a": parent}, "d")

    assert (shape.by_batch, shape.volatile_rows, not shape.bounded["s.a"]) == (lost, lost, lost)


@pytest.mark.parametrize(
    ("time", "condition", "lost"),
    [
        ("CAST(ts AS DATE)", "CAST(ts AS DATE) BETWEEN @start_date AND @end_date", False),
        ("DATE(ts)", "ts::DATE BETWEEN @start_ds AND @end_ds", False),
        ("CAST(ts AS DATE)", "CAST(ts AS DATE) >= @start_date AND CAST(ts AS DATE) < @end_date", True),
        ("CAST(ts AS DATE)", "CAST(ts AS DATE) >= @start_date AND ts <= @end_ts", True),
        ("CAST(ts AS DATE)", "CAST(x AS DATE) BETWEEN @start_date AND @end_date", True),
        ("CAST(ts AS DATE)", "CAST(ts AS DATE) + 1 BETWEEN @start_date AND @end_date", True),
        ("ts", "CAST(ts AS DATE) BETWEEN @start_date AND @end_date", True),  # whose day is one of UTC
    ],
)
def test_a_filter_of_the_day_of_a_column_loses_no_row_of_that_day(time: str, condition: str, lost: bool) -> None:
    parent = Parent(("ts", "x"), types=(("ts", "timestamp"), ("x", "int")))
    shape = shape_of(f"SELECT {time} AS d, x FROM s.a WHERE {condition}", {"s.a": parent}, "d")

    assert (shape.volatile_rows, shape.by_batch) == (lost, lost)
    assert (shape.day, shape.bounded["s.a"]) == (None, frozenset())  # it tells nothing of its parent's days


def test_a_filter_of_the_day_splits_rows_between_hours() -> None:
    parent = Parent(("ts", "x"), types=(("ts", "timestamp"), ("x", "int")))
    condition = "CAST(ts AS DATE) BETWEEN @start_date AND @end_date"

    assert shape_of(f"SELECT CAST(ts AS DATE) AS d, x FROM s.a WHERE {condition}", {"s.a": parent}, "d").whole_days
