"""How tables of each format are read, as a real Spark explains it: a filter on partitions, and its loss, is seen."""

from __future__ import annotations

import pytest

from mergeplan.planner.checks.physical_diff import Cost, PhysicalChange, compare_plans
from mergeplan.planner.checks.physical_plan import Known, PhysicalPlan, read_plan
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import PartitionColumn, Table, time_partitioning
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT

pytestmark = pytest.mark.prove

COLUMNS = (Column("id", "int"), Column("day", "date"), Column("at", "timestamp"))
ORDERS = Table(
    "s.orders", COLUMNS, format=FORMAT or "parquet", parts=(PartitionColumn("day", "date", "`day`", hidden=False),)
)
BY_TIME = time_partitioning(COLUMNS, "at", "", 86_400)
EVENTS = Table("s.events", COLUMNS, format=FORMAT or "parquet", partitioning=BY_TIME)
KNOWN = {"s.orders": Known("shop.orders", frozenset({"day"})), "s.events": Known("shop.events", frozenset({"at"}))}
DAY = "SELECT id FROM s.orders WHERE {} BETWEEN DATE '2026-01-01' AND DATE '2026-01-02'"


def plan(engine: SparkEngine, sql: str) -> PhysicalPlan:
    return read_plan(engine.explain(sql), KNOWN.get)


@pytest.fixture
def tables(engine: SparkEngine) -> SparkEngine:
    for table in (ORDERS, EVENTS):
        engine.tables.create(table)
    engine.tables.replace(ORDERS, "SELECT 1 AS id, DATE '2026-01-01' AS day, TIMESTAMP '2026-01-01' AS at")
    return engine


def test_a_filter_on_a_partition_is_seen_and_its_loss_is_reported(tables: SparkEngine) -> None:
    before, jobs = plan(tables, DAY.format("day")), tables.jobs()

    assert compare_plans(before, plan(tables, DAY.format("date_add(day, 0 * id)"))) == (
        PhysicalChange(Cost.PRUNING, 0, 1, ("shop.orders",), ("day",)),
    )
    assert FORMAT == "delta" or tables.jobs() == jobs  # of Delta, Spark reads the log


def test_a_function_around_a_partition_column_chooses_partitions_of_files_but_not_of_iceberg(
    tables: SparkEngine,
) -> None:
    before, after = plan(tables, DAY.format("day")), plan(tables, DAY.format("to_date(date_format(day, 'yyyy-MM-dd'))"))

    assert [change.cost for change in compare_plans(before, after)] == ([Cost.PRUNING] if FORMAT == "iceberg" else [])


def test_a_filter_on_a_hidden_partition_is_one_where_the_format_knows_it(tables: SparkEngine) -> None:
    (scan,) = plan(tables, "SELECT id FROM s.events WHERE at >= TIMESTAMP '2026-01-01'").scans

    assert (scan.table, scan.is_filtered) == ("shop.events", True)
    assert (scan.is_pruned, scan.columns) == ((True, ("at",)) if FORMAT == "iceberg" else (False, ()))


def test_what_is_no_query_is_refused_and_not_run(tables: SparkEngine) -> None:
    for text in ("DROP TABLE s.orders", "SELECT id FROM s.nothing", "SELECT 1) AS x; DROP TABLE s.orders --"):
        with pytest.raises(QueryError):
            tables.explain(text)
    assert "orders" in tables.catalog.objects("s")
