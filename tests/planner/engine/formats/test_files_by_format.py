"""Delta and Iceberg tables that are made of the same files, and what only looks so. Run by `make prove-lakehouse`."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mergeplan.planner.checks.diff.diff_query import DiffOptions
from mergeplan.planner.checks.diff.table_diff import TableDiff, are_same_files, compare_tables
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT

pytestmark = [pytest.mark.prove, pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")]
delta = pytest.mark.skipif(FORMAT != "delta", reason="of Delta")
iceberg = pytest.mark.skipif(FORMAT != "iceberg", reason="of Iceberg")

COLUMNS = (Column("day", "date"), Column("id", "int"), Column("name", "string"))
NAMES = ("day", "id", "name")
DAILY = Table("s.one", COLUMNS, time_partitioning(COLUMNS, "day", "", 86_400, use_hidden_column=True), format=FORMAT)
ROWS = "SELECT date_add(date'2026-01-01', cast(id AS int)) day, cast(id AS int) id, 'a' name FROM range(5)"
ALL = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))
MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"


@pytest.fixture
def five_days(engine: SparkEngine) -> SparkEngine:
    """A table with five days in as many files."""
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, ROWS, ALL)
    return engine


def second(engine: SparkEngine) -> None:
    """Another table of the same files: a clone, or one that another catalog would have by its metadata file."""
    if FORMAT == "delta":
        engine.fetch("DROP TABLE IF EXISTS s.other")
        engine.fetch("CREATE TABLE s.other SHALLOW CLONE s.one")
        return
    newest = engine.fetch("SELECT file FROM s.one.metadata_log_entries ORDER BY timestamp DESC").rows[0][0]
    engine.fetch("DROP TABLE IF EXISTS s.other")  # not its files
    engine.fetch(f"CALL spark_catalog.system.register_table(table => 's.other', metadata_file => '{newest}')")


def same(engine: SparkEngine, where: str = "", columns: tuple[str, ...] = NAMES) -> bool:
    return are_same_files(engine, ("s.one", "s.other"), columns, where)


def diff(engine: SparkEngine) -> TableDiff:
    return compare_tables(engine, ("a", "b"), ("s.one", "s.other"), DiffOptions(), by_files=True)


def test_a_table_names_the_state_that_made_it_though_it_takes_over_another(five_days: SparkEngine) -> None:
    owned = replace(DAILY, name="s.other", owner="0123456789abcdef")
    five_days.tables.take_over(owned, DAILY.name, (ALL,))

    assert (five_days.catalog.owner("s.other"), five_days.catalog.owner("s.one")) == (owned.owner, "")
    assert same(five_days) or FORMAT == "iceberg"


def test_tables_of_the_same_files_are_said_to_be_so_though_no_file_can_be_read(five_days: SparkEngine) -> None:
    second(five_days)
    for file in folder(five_days).rglob("*.parquet"):
        file.unlink()

    difference = diff(five_days)

    assert (difference.same, difference.same_files) == (True, True)


def test_a_table_is_the_same_as_itself_whatever_its_features(five_days: SparkEngine) -> None:
    if FORMAT == "delta":
        five_days.fetch("ALTER TABLE s.one SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        five_days.fetch("DELETE FROM s.one WHERE id = 2")

    assert are_same_files(five_days, ("s.one", "s.one"), NAMES)


def test_a_commit_to_either_table_makes_them_other_files(five_days: SparkEngine) -> None:
    second(five_days)
    five_days.fetch(
        "INSERT INTO s.one (day, id, name, mergeplan_period) VALUES (date'2026-01-01', 9, 'b', '2026-01-01')"
    )

    assert not same(five_days)
    assert (diff(five_days).same_files, diff(five_days).rows.only) == (False, (1, 0))
    assert same(five_days, "mergeplan_period > '2026-01-01'") is (FORMAT == "delta")


@delta
def test_rows_that_a_deletion_vector_hides_are_read(five_days: SparkEngine) -> None:
    five_days.fetch("ALTER TABLE s.one SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    five_days.fetch("INSERT INTO s.one SELECT date'2026-01-01', id + 10, 'b', '2026-01-01' FROM range(50)")
    second(five_days)
    before = set(five_days._sessions.run("SELECT * FROM s.other").inputFiles())
    five_days.fetch("DELETE FROM s.other WHERE id IN (11, 25)")

    assert set(five_days._sessions.run("SELECT * FROM s.other").inputFiles()) == before  # the same files by their names
    assert (diff(five_days).same_files, diff(five_days).rows.same) == (False, False)


@delta
def test_a_column_that_was_dropped_and_added_again_is_read(five_days: SparkEngine) -> None:
    five_days.fetch(f"ALTER TABLE s.one SET TBLPROPERTIES ({MAPPED})")
    second(five_days)
    five_days.fetch("ALTER TABLE s.other DROP COLUMN name")
    five_days.fetch("ALTER TABLE s.other ADD COLUMN name string")

    assert set(five_days._sessions.run("SELECT * FROM s.other").inputFiles()) == set(
        five_days._sessions.run("SELECT * FROM s.one").inputFiles()
    )
    assert (diff(five_days).same_files, diff(five_days).rows.same) == (False, False)


@delta
def test_a_wider_type_is_read(five_days: SparkEngine) -> None:
    second(five_days)
    five_days.fetch("ALTER TABLE s.other SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    five_days.fetch("ALTER TABLE s.other ALTER COLUMN id TYPE bigint")

    assert not same(five_days, columns=("id",))
    assert not same(five_days, columns=("name",))  # its log tells how files are read now


@delta
def test_a_column_that_only_the_clone_has_leaves_the_others_the_same(five_days: SparkEngine) -> None:
    second(five_days)
    five_days.fetch("ALTER TABLE s.other ADD COLUMNS (more int)")

    assert same(five_days)
    assert not same(five_days, columns=("id", "more"))


@iceberg
@pytest.mark.parametrize(
    "edits",
    [
        ["DELETE FROM s.other WHERE id = 2"],
        ["ALTER TABLE s.other DROP COLUMN name", "ALTER TABLE s.other ADD COLUMN name string"],
        ["ALTER TABLE s.other ALTER COLUMN id TYPE bigint"],
        ["ALTER TABLE s.other SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')", "DELETE FROM s.other"],
    ],
)
def test_whatever_is_committed_to_an_iceberg_table_its_rows_are_read(five_days: SparkEngine, edits: list[str]) -> None:
    second(five_days)
    assert same(five_days)

    for edit in edits:
        five_days.fetch(edit)

    assert not same(five_days)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_done_to_two_tables_the_same_files_hold_the_same_rows(five_days: SparkEngine, seed: int) -> None:
    rng, known = random.Random(seed), 0  # noqa: S311  # reproducible
    second(five_days)
    for _ in range(8):
        edit_table(five_days, rng, rng.choice(["s.one", "s.other"]))
        said = same(five_days)
        first, other = (five_days.fetch(f"SELECT day, id, name FROM {table} ORDER BY ALL").rows for table in EACH)
        assert not said or first == other
        known += said
    assert known or seed


EACH = ("s.one", "s.other")
VECTORS = "'delta.enableDeletionVectors' = 'true', 'write.delete.mode' = 'merge-on-read'"


def edit_table(engine: SparkEngine, rng: random.Random, name: str) -> None:
    """One edit of a table, or the other one made anew of the first one's files."""
    id, day = rng.randrange(5), f"2026-01-0{rng.randrange(1, 6)}"
    match rng.choice(["again", "again", "add", "delete", "update", "vectors", "column", "compact", "rewrite"]):
        case "again":
            second(engine)
        case "add":
            engine.fetch(
                f"INSERT INTO {name} (day, id, name, mergeplan_period) VALUES (date'{day}', {id}, 'b', '{day}')"
            )
        case "delete":
            engine.fetch(f"DELETE FROM {name} WHERE id = {id} AND name = 'b'")
        case "update":
            engine.fetch(f"UPDATE {name} SET name = 'c' WHERE id = {id}")
        case "vectors":
            engine.fetch(f"ALTER TABLE {name} SET TBLPROPERTIES ({VECTORS})")
        case "column":
            engine.fetch(f"ALTER TABLE {name} ADD COLUMNS (c{rng.randrange(10**9)} int)")
        case "compact" if FORMAT == "delta":
            engine.fetch(f"OPTIMIZE {name}")
        case _:
            engine.fetch(f"INSERT INTO {name} (day, id, name, mergeplan_period) "
                         f"SELECT day, id, name, mergeplan_period FROM {name} WHERE id = {id} LIMIT 1")  # fmt: skip


def folder(engine: SparkEngine) -> Path:
    """Where the first table lies."""
    detail = dict(row[:2] for row in engine.fetch("DESCRIBE TABLE EXTENDED s.one").rows)
    return Path(unquote(urlparse(str(detail["Location"])).path))
