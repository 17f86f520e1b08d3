"""The last write of a table and its size, by its files or its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.conftest import FORMAT
from tests.planner.engine.formats.test_expiry import COMPACT

MINUTE = timedelta(minutes=1)


def test_a_table_of_files_was_written_when_its_newest_file_was(engine: SparkEngine) -> None:
    began = datetime.now(UTC)
    for statement in (
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (id INT) USING parquet",
        "CREATE VIEW s.v AS SELECT 1 AS id",
    ):
        engine.fetch(statement)
    assert [engine.tables.last_write(name) for name in ("s.t", "s.v", "s.gone", "gone.t")] == [None] * 4

    engine.fetch("INSERT INTO s.t VALUES (1)")

    written = engine.tables.last_write("s.t")
    assert written and began - MINUTE < written < datetime.now(UTC) + MINUTE


def test_the_size_of_a_table_is_that_of_its_files_in_all_partitions(engine: SparkEngine, tmp_path: Path) -> None:
    engine.fetch("CREATE SCHEMA s")
    table = f"CREATE TABLE s.t (id INT, p STRING) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'"
    engine.fetch(table)
    engine.fetch("INSERT INTO s.t VALUES (1, 'a'), (2, NULL)")

    assert engine.tables.size("s.t") == sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert engine.tables.size("s.gone") is None


@pytest.mark.prove
@pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")
def test_what_brings_no_rows_leaves_a_table_as_old_as_it_is(engine: SparkEngine) -> None:
    engine.fetch("CREATE SCHEMA s")
    engine.fetch(f"CREATE TABLE s.t (id INT) USING {FORMAT}")
    assert engine.tables.last_write("s.t") is None
    engine.fetch("INSERT INTO s.t VALUES (1), (2)")
    engine.fetch("INSERT INTO s.t VALUES (3)")
    assert (engine.tables.size("s.t") or 0) > 100
    written = engine.tables.last_write("s.t")

    engine.fetch(COMPACT[FORMAT])
    engine.fetch("ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'b')")
    assert engine.tables.last_write("s.t") == written

    engine.fetch("INSERT INTO s.t VALUES (4)")
    after = engine.tables.last_write("s.t")
    assert written and after and after > written
