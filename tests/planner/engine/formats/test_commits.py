"""Tables that commit by themselves: what only they do. Run by `make prove-lakehouse`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from tests.conftest import FORMAT

pytestmark = [pytest.mark.prove, pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")]

COLUMNS = (Column("day", "date"), Column("id", "int"))
DAILY = Table("s.old", COLUMNS, time_partitioning(COLUMNS, "day", "", 86_400), format=FORMAT)
KEYED = Table("s.keyed", COLUMNS, format=FORMAT)
ROWS = "SELECT date_add(date'2026-01-01', cast(id AS int)) day, cast(id AS int) id FROM range(5)"
ID = "0123456789abcdef"
ADDED = ["timestamp_ntz", "array<timestamp_ntz>", "struct<variant:int>"]
ADDED += ["variant"] if FORMAT == "delta" else []  # Iceberg has it from version 3 of its tables on


def days(first: int, after: int) -> Interval:
    return Interval(datetime(2026, 1, first, tzinfo=UTC), datetime(2026, 1, after, tzinfo=UTC))


def ids(engine: SparkEngine, table: str) -> list[object]:
    return [row[0] for row in engine.fetch(f"SELECT id FROM {table} ORDER BY id").rows]


def merge(engine: SparkEngine, id: int, batch: str) -> None:
    sql = "SELECT * FROM {0} UNION ALL SELECT date'2026-01-09', " + str(id)
    engine.tables.merge(KEYED, sql.format, batch)


def test_a_batch_is_merged_again_from_what_there_was_before_the_first_of_them(engine: SparkEngine) -> None:
    engine.tables.create(KEYED)
    engine.tables.replace(KEYED, "SELECT date'2026-01-01' day, 1 id")
    merge(engine, 2, "aaaaaaaa00000000")
    merge(engine, 3, "bbbbbbbb00000000")
    engine.fetch(f"DELETE FROM {KEYED.name} WHERE id = 1")  # somebody else's commit tells nothing of batches

    merge(engine, 3, "bbbbbbbb00000000")

    assert ids(engine, KEYED.name) == [1, 2, 3]
    for batch, left in (("aaaaaaaa", [1, 2, 3]), ("bbbbbbbb", [1, 2]), ("bbbbbbbb", [1, 2]), ("aaaaaaaa", [1])):
        engine.tables.unmerge(KEYED, batch)  # nothing, unless it is the last that the table holds
        assert ids(engine, KEYED.name) == left


def test_a_table_that_was_filled_anew_bears_no_batch(engine: SparkEngine) -> None:
    engine.tables.create(KEYED)
    engine.tables.replace(KEYED, "SELECT date'2026-01-01' day, 1 id")
    merge(engine, 2, ID)
    engine.tables.replace(KEYED, "SELECT date'2026-01-01' day, 7 id")

    engine.tables.unmerge(KEYED, ID[:8])

    assert ids(engine, KEYED.name) == [7]
    merge(engine, 8, ID)
    assert ids(engine, KEYED.name) == [7, 8]


@pytest.mark.skipif(FORMAT != "delta", reason="RESTORE is of Delta")
def test_a_table_that_was_restored_to_a_moment_has_the_batch_of_that_moment(engine: SparkEngine) -> None:
    engine.tables.create(KEYED)
    for id, batch in ((2, "aaaaaaaa00000000"), (3, "bbbbbbbb00000000")):
        merge(engine, id, batch)
    moments = {row[0]: row[1] for row in engine.fetch(f"DESCRIBE HISTORY {KEYED.name}").rows}
    engine.fetch(f"RESTORE TABLE {KEYED.name} TO TIMESTAMP AS OF '{moments[1]:%Y-%m-%d %H:%M:%S.%f}'")

    engine.tables.unmerge(KEYED, "bbbbbbbb")
    assert ids(engine, KEYED.name) == [2]
    engine.tables.unmerge(KEYED, "aaaaaaaa")
    assert ids(engine, KEYED.name) == []


def test_a_batch_into_a_table_that_never_held_a_row_is_repeated_and_taken_back(engine: SparkEngine) -> None:
    engine.tables.create(KEYED)
    for _ in range(2):
        merge(engine, 2, ID)
        assert ids(engine, KEYED.name) == [2]

    engine.tables.unmerge(KEYED, ID[:8])

    assert ids(engine, KEYED.name) == []


@pytest.mark.parametrize("wider", ["int", "bigint"])
def test_a_table_that_takes_over_goes_its_own_way(wider: str, engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, ROWS, days(1, 6))
    columns = (Column("day", "date"), Column("id", wider), Column("more", "string"))
    new = replace(DAILY, name="s.new", columns=columns)

    engine.tables.take_over(new, DAILY.name, (days(2, 4), days(5, 6)))

    rows = engine.fetch("SELECT id, more FROM s.new ORDER BY id").rows
    assert rows == ((1, None), (2, None), (4, None))
    assert engine.schema("SELECT id, more FROM s.new") == (Column("id", wider), Column("more", "string"))
    engine.tables.replace_interval(new, "SELECT date'2026-01-03' day, 9 id, 'x' more", days(3, 6))
    assert (ids(engine, "s.new"), ids(engine, "s.old")) == ([1, 9], [0, 1, 2, 3, 4])
    engine.tables.drop("s.new")
    assert ids(engine, "s.old") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ADDED)
def test_a_column_of_any_type_is_added_to_rows_that_stay(kind: str, engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, ROWS, days(1, 4))
    new = replace(DAILY, name="s.new", columns=(*COLUMNS, Column("more", kind)))

    engine.tables.take_over(new, DAILY.name, (days(1, 4),))
    engine.tables.replace_interval(new, f"SELECT *, cast(NULL AS {kind}) more FROM ({ROWS})", days(4, 6))

    assert engine.fetch("SELECT id, more IS NULL FROM s.new ORDER BY id").rows == tuple((n, True) for n in range(5))


def test_what_a_drop_that_was_cut_off_left_is_not_taken_for_rows(engine: SparkEngine) -> None:
    for _ in range(2):
        assert engine.tables.create(DAILY)
        assert ids(engine, DAILY.name) == []
        engine.tables.replace_interval(DAILY, ROWS, days(1, 6))
        engine.tables.drop(DAILY.name)
