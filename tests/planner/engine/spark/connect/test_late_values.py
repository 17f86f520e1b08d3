"""Writes on a Spark Connect server that is too busy to report in time how many rows it wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.java_gateway import ensure_callback_server_started

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.engine.table import PartitionColumn, Table, time_partitioning
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT
from tests.planner.engine.spark.connect.test_reattach import settings

COLUMNS = (Column("at", "timestamp"), Column("c", "varchar(3)"))
PLAIN = Table("phys.plain", COLUMNS, format=FORMAT or "parquet")
BY_C = Table(
    "phys.by_c", COLUMNS, format=FORMAT or "parquet", parts=(PartitionColumn("c", "string", "c", False),), listed=True
)
HOURLY = Table("phys.hourly", COLUMNS, time_partitioning(COLUMNS, "at", "", 3600), format=FORMAT or "parquet")
ROWS = "SELECT timestamp'2024-01-01' + make_dt_interval(0, id) AS at, if(id < 2, 'a%', NULL) AS c FROM range(5)"
MORNING = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 3, tzinfo=UTC))


class SlowListener:
    """A listener of Spark's bus that makes every other one late."""

    def onOtherEvent(self, event: Any) -> None:
        if event.getClass().getSimpleName() == "SparkListenerSQLExecutionEnd":
            time.sleep(0.12)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on"):
            return lambda *_: None
        raise AttributeError(name)

    class Java:
        implements: ClassVar = ["org.apache.spark.scheduler.SparkListenerInterface"]


@pytest.fixture
def client(engine: SparkEngine, tmp_path: Path) -> Iterator[SparkEngine]:
    shared: Any = engine._shared
    ensure_callback_server_started(shared.gateway)
    client = open_engine(Connection(conf=settings(engine), remote=shared.server().url), tmp_path)
    context = shared.spark.sparkContext._jsc.sc()
    context.addSparkListener(listener := SlowListener())
    yield client
    context.removeSparkListener(listener)
    client.close()


def test_rows_are_counted_where_a_server_reports_none(client: SparkEngine) -> None:
    for table in (PLAIN, BY_C, HOURLY):
        client.tables.create(table)

    assert client.tables.replace(PLAIN, ROWS).rows == 5
    assert client.tables.replace(PLAIN, f"{ROWS} WHERE id < 0").rows == 0
    assert client.tables.replace_partitions(BY_C, ROWS, others=True).rows == 5
    assert client.tables.replace_partitions(BY_C, f"{ROWS} WHERE id < 1").rows == 1
    written = client.tables.replace_interval(HOURLY, ROWS, MORNING)

    assert (written.rows, len(written.partitions)) == (3, 3)
    assert client.fetch("SELECT count(*) FROM phys.by_c").rows == ((4,),)
    assert client.fetch("SELECT count(*) FROM phys.hourly").rows == ((3,),)
