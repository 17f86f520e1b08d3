"""What tells the states of a table apart. Of Delta and Iceberg by `make prove-lakehouse`."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.conftest import FORMAT

lakehouse = pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")
WRITES = (
    "INSERT INTO s.others VALUES (3, 'c')",
    "DELETE FROM s.others WHERE id = 1",
    "UPDATE s.others SET name = 'd' WHERE id = 2",
    "ALTER TABLE s.others ADD COLUMNS (more int)",
    "ALTER TABLE s.others SET TBLPROPERTIES ('a' = 'b')",
    "TRUNCATE TABLE s.others",
)


def create(engine: SparkEngine, form: str) -> None:
    engine.fetch("CREATE SCHEMA IF NOT EXISTS s")
    engine.fetch("DROP TABLE IF EXISTS s.others")
    engine.fetch(f"CREATE TABLE s.others (id int, name string) USING {form}")
    engine.fetch("INSERT INTO s.others VALUES (1, 'a'), (2, 'b')")


def test_files_without_a_log_a_view_and_nothing_have_no_version(engine: SparkEngine) -> None:
    create(engine, "parquet")
    engine.fetch("CREATE OR REPLACE VIEW s.seen AS SELECT id FROM s.others")

    assert [engine.tables.version(name) for name in ("s.others", "s.seen", "s.nothing")] == ["", "", ""]


@lakehouse
@pytest.mark.prove
def test_every_write_makes_another_version_and_reading_makes_none(engine: SparkEngine) -> None:
    create(engine, FORMAT)
    seen = [engine.tables.version("s.others")]
    assert seen[0]
    for statement in WRITES:
        engine.fetch("SELECT count(*) FROM s.others")
        assert engine.tables.version("s.others") == seen[-1]
        engine.fetch(statement)
        seen.append(engine.tables.version("s.others"))
    create(engine, FORMAT)
    seen.append(engine.tables.version("s.others"))

    assert len({*seen}) == len(seen) == len(WRITES) + 2
