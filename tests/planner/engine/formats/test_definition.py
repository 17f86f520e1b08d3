"""Tables that are created where files are."""

from __future__ import annotations

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.engine.spark.test_engine import DAILY, DAYS, ORDERS, column, days


def test_a_table_that_was_dropped_by_hand_is_created_and_filled_again(engine: SparkEngine) -> None:
    """Its earlier files are where Spark would create it; another table may read them."""
    for _ in range(2):  # the second time the table is one that was created again
        for table in (ORDERS, DAILY):
            assert engine.tables.create(table)
            assert not engine.tables.create(table)
        engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")
        engine.tables.replace(ORDERS, "SELECT 2 id, 'b' name")
        engine.tables.replace_interval(DAILY, DAYS, days(1, 3))
        assert column(engine, f"SELECT id FROM {ORDERS.name}") == [2]
        assert column(engine, f"SELECT count(*) FROM {DAILY.name}") == [2]
        for table in (ORDERS, DAILY):
            engine.fetch(f"DROP TABLE {table.name}")
