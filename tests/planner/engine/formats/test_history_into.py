"""SCD type 2 by MERGE INTO: it leaves what the SELECT of all versions would, and files without a changed row alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mergeplan.planner.engine.protocol import MergeInto
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import PartitionColumn, Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column, History
from mergeplan.planner.tables.merge.relations import MergeBatch
from mergeplan.planner.tables.merge.scd_type_2 import versions, versions_into
from tests.conftest import FORMAT

pytestmark = [pytest.mark.prove, pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")]

COLUMNS = (Column("id", "int"), Column("na`me", "string"), Column("at", "timestamp"))
KEPT = (Column("valid_from", "timestamp"), Column("valid_to", "timestamp"))
BY_ID = PartitionColumn("id", "int", "id", hidden=False)
BY_END = PartitionColumn("valid_to", "timestamp", "valid_to", hidden=False)
TABLE = Table("s.versions", (*COLUMNS, *KEPT), format=FORMAT)
HISTORIES = {
    "by time": History(updated_at="at"),
    "by time, deletes": History(updated_at="at", invalidates_deleted=True, begins_when_seen=True),
    "by column": History(columns=("na`me",)),
    "by all columns, deletes": History(invalidates_deleted=True),
}
KEYS = {"column": ("id",), "expression": ("coalesce(ID % 3, -1)",), "two": ("id", "upper(`na``me`)")}
Row = tuple[int | None, str | None, int | None]
BATCHES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1, 2, 3])
        ),
        max_size=5,
        unique_by=lambda row: row[0],  # NULL is a key like any other
    ),
    min_size=2,
    max_size=4,
)


def batch_of(rows: Sequence[Row], base: str, keys: tuple[str, ...] = ("id",)) -> MergeBatch:
    listed = ", ".join(f"({sql(id_)}, {sql(name)}, {moment(at)})" for id_, name, at in rows)
    values = f"VALUES {listed} AS t(id, `na``me`, at)" if rows else "(SELECT 1 id, 'a' `na``me`, NULL at) WHERE false"
    query = f"SELECT id, `na``me`, CAST(at AS timestamp) AS at FROM {values}"
    return MergeBatch("shop.t", query, base, COLUMNS, keys)


def sql(value: object) -> str:
    return "NULL" if value is None else repr(value)


def moment(day: int | None) -> str:
    return "NULL" if day is None else f"'2026-01-0{day}'"


def run_time(run: int) -> datetime:
    return datetime(2026, 1, 1 + run, 11, tzinfo=UTC)


def merge_rule(rows: Sequence[Row], history: History, run: int, keys: tuple[str, ...] = ("id",)) -> MergeInto:
    rule = versions_into(batch_of(rows, TABLE.name, keys), history, run_time(run))
    assert rule is not None
    return rule


def begin(engine: SparkEngine, table: Table, rows: Sequence[Row], history: History, keys: tuple[str, ...]) -> None:
    engine.tables.drop(table.name)
    engine.tables.create(table)
    engine.tables.replace(table, versions(batch_of(rows, "", keys), history, run_time(0)))


def refuse_base(base: str) -> str:
    raise AssertionError(f"all rows of {base} are written again")


def table_rows(engine: SparkEngine, of: str = TABLE.name) -> tuple[tuple[object, ...], ...]:
    return engine.fetch(f"SELECT id, `na``me`, at, valid_from, valid_to FROM {of} ORDER BY ALL").rows


def merge_batch(engine: SparkEngine, table: Table, run: int, rows: Sequence[Row], history: History, *keys: str) -> None:
    """The batch is merged, and the table holds what the SELECT says."""
    wanted = table_rows(engine, f"({versions(batch_of(rows, table.name, keys), history, run_time(run))})")
    engine.tables.merge(table, refuse_base, f"aaaaaaa{run}00000000", merge_rule(rows, history, run, keys))
    assert table_rows(engine) == wanted


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("parts", [(), (BY_ID,), (BY_END,)], ids=["plain", "by a column", "by its end"])
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_merges_leave_what_the_select_of_all_versions_says(
    engine: SparkEngine, history: History, parts: tuple[PartitionColumn, ...], batches: list[list[Row]]
) -> None:
    table = replace(TABLE, parts=parts, listed=bool(parts))
    begin(engine, table, batches[0], history, ("id",))
    for run, rows in enumerate(batches[1:], start=1):
        merge_batch(engine, table, run, rows, history, "id")


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_a_key_may_be_an_expression_or_several(engine: SparkEngine, history: History, keys: tuple[str, ...]) -> None:
    begin(engine, TABLE, [(1, "a", 1), (2, "b", 1), (None, "c", 1)], history, keys)
    merge_batch(engine, TABLE, 1, [(1, "a", 2), (2, "x", 2), (6, "c", 1)], history, *keys)
    merge_batch(engine, TABLE, 2, [(2, "b", 3), (None, "c", 3)], history, *keys)


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_versions_in_force_that_became_of_one_key_all_end(engine: SparkEngine, history: History) -> None:
    """A MERGE refuses several rows for one row of the table: all rows are written again."""
    begin(engine, TABLE, [(1, "a", 1), (1, "b", 1), (2, "a", 1), (2, "b", 1)], history, ("id", "`na``me`"))

    def select(base: str) -> str:
        return versions(batch_of([(1, "b", 2)], base), history, run_time(1))

    expected = table_rows(engine, f"({select(TABLE.name)})")
    engine.tables.merge(TABLE, select, "aaaaaaa100000000", merge_rule([(1, "b", 2)], history, 1))
    assert table_rows(engine) == expected


def test_a_merge_that_another_run_did_meanwhile_is_not_done_twice(engine: SparkEngine) -> None:
    history, rows = HISTORIES["by all columns, deletes"], [(1, "x", 1), (3, "c", 1)]
    begin(engine, TABLE, [(1, "a", 1), (2, "b", 1)], history, ("id",))
    engine.fetch(f"CREATE OR REPLACE TEMPORARY VIEW before AS {merge_rule(rows, history, 1).rows}")
    computed = engine.fetch("SELECT * FROM before").rows
    merge_batch(engine, TABLE, 1, rows, history, "id")
    wanted = table_rows(engine)
    listed = ", ".join(
        "(" + ", ".join("NULL" if cell is None else f"'{str(cell).removesuffix('+00:00')}'" for cell in row) + ")"
        for row in computed
    )
    again = f"SELECT * FROM VALUES {listed} AS t(id, `na``me`, at, valid_from, valid_to, mergeplan_does)"
    engine.tables.merge(TABLE, refuse_base, "bbbbbbbb00000000", replace(merge_rule(rows, history, 1), rows=again))
    assert table_rows(engine) == wanted


def test_files_without_a_version_that_ends_stay(engine: SparkEngine) -> None:
    table, history = replace(TABLE, parts=(BY_ID,), listed=True), HISTORIES["by time"]
    begin(engine, table, [(1, "a", 1), (2, "b", 1), (3, "c", 1)], history, ("id",))
    path = "_metadata.file_path" if FORMAT == "delta" else "_file"
    files = {row[0] for row in engine.fetch(f"SELECT DISTINCT {path} FROM {TABLE.name}").rows}
    merge_batch(engine, table, 1, [(1, "a", 2), (2, "b", 1), (3, "c", 1), (4, "d", 1)], history, "id")

    stayed = files & {row[0] for row in engine.fetch(f"SELECT DISTINCT {path} FROM {TABLE.name}").rows}
    assert len(stayed) == 2


def test_two_rows_of_one_key_are_refused_and_nothing_is_written(engine: SparkEngine) -> None:
    history = HISTORIES["by column"]
    begin(engine, TABLE, [(1, "a", 1)], history, ("id",))
    before = table_rows(engine)
    with pytest.raises(QueryError, match="returns more than one row for the key"):
        merge_batch(engine, TABLE, 1, [(2, "a", 1), (2, "b", 1)], history, "id")
    with pytest.raises(QueryError, match="returns more than one row for the key"):
        twice = replace(
            merge_rule([(1, "b", 1)], history, 1), rows=merge_rule([(2, "a", 1), (2, "b", 1)], history, 1).rows
        )
        engine.tables.merge(TABLE, refuse_base, "aaaaaaaa00000000", twice)
    assert table_rows(engine) == before
