"""Delta and Iceberg tables that are made of the same files, and what only looks so. Run by `make prove-lakehouse`."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mergeplan.planner.checks.diff.diff_query import DiffOptions
from mergeplan.planner.checks.diff.same_files import are_same_files
from mergeplan.planner.checks.diff.table_diff import TableDiff, compare_tables
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
def filled(engine: SparkEngine) -> SparkEngine:
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


def test_tables_of_the_same_files_are_said_to_be_so_though_no_file_can_be_read(filled: SparkEngine) -> None:
    second(filled)
    for file in folder(filled).rglob("*.parquet"):
        file.unlink()

    found = diff(filled)

    assert (found.same, found.same_files) == (True, True)


def test_a_table_is_the_same_as_itself_whatever_its_features(filled: SparkEngine) -> None:
    if FORMAT == "delta":
        filled.fetch("ALTER TABLE s.one SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        filled.fetch("DELETE FROM s.one WHERE id = 2")

    assert are_same_files(filled, ("s.one", "s.one"), NAMES)


def test_a_commit_to_either_table_makes_them_other_files(filled: SparkEngine) -> None:
    second(filled)
    filled.fetch("INSERT INTO s.one (day, id, name, mergeplan_period) VALUES (date'2026-01-01', 9, 'b', '2026-01-01')")

    assert not same(filled)
    assert (diff(filled).same_files, diff(filled).rows.only) == (False, (1, 0))
    assert same(filled, "mergeplan_period > '2026-01-01'") is (FORMAT == "delta")


@delta
def test_rows_that_a_deletion_vector_hides_are_read(filled: SparkEngine) -> None:
    filled.fetch("ALTER TABLE s.one SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    filled.fetch("INSERT INTO s.one SELECT date'2026-01-01', id + 10, 'b', '2026-01-01' FROM range(50)")
    second(filled)
    before = set(filled._sessions.run("SELECT * FROM s.other").inputFiles())
    filled.fetch("DELETE FROM s.other WHERE id IN (11, 25)")

    assert set(filled._sessions.run("SELECT * FROM s.other").inputFiles()) == before  # the same files by their names
    assert (diff(filled).same_files, diff(filled).rows.same) == (False, False)


@delta
def test_a_column_that_was_dropped_and_added_again_is_read(filled: SparkEngine) -> None:
    filled.fetch(f"ALTER TABLE s.one SET TBLPROPERTIES ({MAPPED})")
    second(filled)
    filled.fetch("ALTER TABLE s.other DROP COLUMN name")
    filled.fetch("ALTER TABLE s.other ADD COLUMN name string")

    assert set(filled._sessions.run("SELECT * FROM s.other").inputFiles()) == set(
        filled._sessions.run("SELECT * FROM s.one").inputFiles()
    )
    assert (diff(filled).same_files, diff(filled).rows.same) == (False, False)


@delta
def test_a_wider_type_is_read(filled: SparkEngine) -> None:
    second(filled)
    filled.fetch("ALTER TABLE s.other SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    filled.fetch("ALTER TABLE s.other ALTER COLUMN id TYPE bigint")

    assert not same(filled, columns=("id",))
    assert not same(filled, columns=("name",))  # its log tells how files are read now


@delta
def test_a_column_that_only_the_clone_has_leaves_the_others_the_same(filled: SparkEngine) -> None:
    second(filled)
    filled.fetch("ALTER TABLE s.other ADD COLUMNS (more int)")

    assert same(filled)
    assert not same(filled, columns=("id", "more"))


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
def test_whatever_is_committed_to_an_iceberg_table_its_rows_are_read(filled: SparkEngine, edits: list[str]) -> None:
    second(filled)
    assert same(filled)

    for edit in edits:
        filled.fetch(edit)

    assert not same(filled)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_done_to_two_tables_the_same_files_hold_the_same_rows(filled: SparkEngine, seed: int) -> None:
    rng, known = random.Random(seed), 0  # noqa: S311  # reproducible
    second(filled)
    for _ in range(8):
        edited(filled, rng, rng.choice(["s.one", "s.other"]))
        said = same(filled)
        first, other = (filled.fetch(f"SELECT day, id, name FROM {each} ORDER BY ALL").rows for each in EACH)
        assert not said or first == other
        known += said
    assert known or seed


EACH = ("s.one", "s.other")
VECTORS = "'delta.enableDeletionVectors' = 'true', 'write.delete.mode' = 'merge-on-read'"


def edited(engine: SparkEngine, rng: random.Random, name: str) -> None:
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
