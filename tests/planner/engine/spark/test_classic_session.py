"""Sessions of one Spark: each reads what another one wrote, whichever thread used it first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy

from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.engine import SparkEngine


def test_a_session_that_a_thread_opened_reads_what_another_one_wrote_since(engine: SparkEngine) -> None:
    shared = copy(engine._shared)
    assert isinstance(shared, ClassicSession)
    shared._catalog = "spark_catalog"  # as of a connection that names one: it is set before any statement
    engine.fetch("CREATE TABLE default.t (id INT) USING parquet")

    with ThreadPoolExecutor(1) as pool:
        session = pool.submit(shared.new_session).result()
        before = pool.submit(lambda: session.sql("SELECT * FROM default.t").count()).result()
        engine.fetch("INSERT INTO default.t VALUES (1)")
        after = pool.submit(lambda: session.sql("SELECT * FROM default.t").count()).result()

    assert (before, after) == (0, 1)
