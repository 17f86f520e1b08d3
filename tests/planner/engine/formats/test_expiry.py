"""Old versions of tables with a log: which go, and which a later verb still finds. Run by `make prove-lakehouse`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mergeplan.planner.engine.protocol import Expiry
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT
from tests.planner.ageing import files, later

pytestmark = [pytest.mark.prove, pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")]

T = Table("s.t", (Column("id", "int"),), format=FORMAT)
WEEK = timedelta(days=7)
FIRST, SECOND = "aaaaaaaa00000000", "bbbbbbbb00000000"
COMPACT = {
    "delta": "OPTIMIZE s.t",
    "iceberg": "CALL spark_catalog.system.rewrite_data_files(table => 's.t', options => map('rewrite-all', 'true'))",
}


def ids(engine: SparkEngine, table: str = "s.t") -> list[object]:
    return [row[0] for row in engine.fetch(f"SELECT id FROM {table} ORDER BY id").rows]


def write_rows(engine: SparkEngine, *rows: int) -> None:
    engine.tables.create(T)
    for id in rows:
        engine.tables.replace(T, f"SELECT {id} id")


def merge(engine: SparkEngine, id: int, batch: str) -> None:
    engine.tables.merge(T, ("SELECT * FROM {0} UNION ALL SELECT " + str(id)).format, batch)


def test_versions_that_were_replaced_long_ago_go_with_their_files_and_once_is_enough(engine: SparkEngine) -> None:
    write_rows(engine, 1, 2, 3)
    before = files(engine, "s.t")
    now = later(engine, 6, "s.t")
    assert engine.tables.expire("s.t", WEEK, now) == Expiry()
    now = later(engine, 2, "s.t") if FORMAT == "delta" else later(engine, 8, "s.t")

    assert engine.tables.expire("s.t", WEEK, now) == Expiry(removed=True)

    assert (before, files(engine, "s.t"), ids(engine)) == (3, 1, [3])
    assert engine.tables.expire("s.t", WEEK, now) == Expiry()


def test_versions_stay_for_as_long_as_they_are_to_be_kept(engine: SparkEngine) -> None:
    write_rows(engine, 1, 2)
    now = later(engine, 40, "s.t")

    assert engine.tables.expire("s.t", timedelta(days=60), now) == Expiry()

    assert files(engine, "s.t") == 2


@pytest.mark.parametrize("days", [3, 40])
def test_what_a_merge_began_from_stays_for_its_repetition_and_for_taking_it_back(
    days: int, engine: SparkEngine
) -> None:
    write_rows(engine, 9, 1)
    later(engine, 40, "s.t")
    merge(engine, 2, FIRST)
    now = later(engine, days, "s.t") if FORMAT == "delta" else later(engine, 40, "s.t")

    done = engine.tables.expire("s.t", WEEK, now)

    assert done.removed is (FORMAT == "iceberg" or days == 3)
    merge(engine, 2, FIRST)
    assert ids(engine) == [1, 2]
    engine.tables.unmerge(T, FIRST[:8])
    assert ids(engine) == [1]


def test_the_next_merge_lets_go_of_what_the_one_before_it_began_from(engine: SparkEngine) -> None:
    write_rows(engine, 1)
    merge(engine, 2, FIRST)
    now = later(engine, 40, "s.t")
    merge(engine, 3, SECOND)

    assert engine.tables.expire("s.t", WEEK, now + timedelta(minutes=1)).removed

    assert ids(engine) == [1, 2, 3]
    engine.tables.unmerge(T, SECOND[:8])
    assert ids(engine) == [1, 2]


def test_a_compaction_by_hand_tells_nothing_of_batches(engine: SparkEngine) -> None:
    write_rows(engine, 1)
    merge(engine, 2, FIRST)
    engine.fetch(COMPACT[FORMAT])

    merge(engine, 2, FIRST)

    assert ids(engine) == [1, 2]
    engine.fetch(COMPACT[FORMAT])
    engine.tables.unmerge(T, FIRST[:8])
    assert ids(engine) == [1]


@pytest.mark.skipif(FORMAT != "delta", reason="only Delta shares files between tables")
def test_a_clone_may_be_cleaned_and_its_source_may_not(engine: SparkEngine) -> None:
    write_rows(engine, 1)
    clone = Table("s.clone", T.columns, format=FORMAT)
    engine.tables.take_over(clone, "s.t", ())
    engine.fetch("INSERT INTO s.clone VALUES (5)")
    engine.fetch("DELETE FROM s.clone WHERE id = 5")
    engine.tables.replace(T, "SELECT 2 id")
    now = later(engine, 10, "s.t", "s.clone")

    assert engine.tables.expire("s.clone", WEEK, now).removed

    assert (ids(engine, "s.clone"), ids(engine)) == ([1], [2])
    engine.tables.expire("s.t", WEEK, now)  # what `old_versions` never asks for: the danger is real
    with pytest.raises(QueryError):
        ids(engine, "s.clone")


@pytest.mark.skipif(FORMAT != "delta", reason="a property of Delta's")
def test_a_longer_retention_of_the_tables_own_counts_and_a_shorter_one_is_no_licence(engine: SparkEngine) -> None:
    own = "delta.deletedFileRetentionDuration"
    write_rows(engine, 1, 2)
    now = later(engine, 15, "s.t")
    engine.fetch(f"ALTER TABLE s.t SET TBLPROPERTIES ('{own}' = 'interval 20 days')")
    assert engine.tables.expire("s.t", WEEK, now) == Expiry()
    engine.fetch(f"ALTER TABLE s.t SET TBLPROPERTIES ('{own}' = 'interval 2 days')")
    assert own in engine.tables.expire("s.t", WEEK, now).kept
    engine.fetch(f"ALTER TABLE s.t UNSET TBLPROPERTIES ('{own}')")

    assert engine.tables.expire("s.t", WEEK, now).removed


@pytest.mark.skipif(FORMAT != "iceberg", reason="Iceberg's tags")
def test_what_a_tag_names_stays(engine: SparkEngine) -> None:
    write_rows(engine, 1, 2)
    first = engine.fetch("SELECT snapshot_id FROM s.t.snapshots ORDER BY committed_at").rows[0][0]
    spark = engine._sessions.shared.spark  # the statement for it needs Iceberg's extension
    table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "s.t")
    table.manageSnapshots().createTag("kept", first).commit()

    assert engine.tables.expire("s.t", WEEK, later(engine, 30, "s.t")) == Expiry()

    assert ids(engine, "s.t VERSION AS OF 'kept'") == [1]
