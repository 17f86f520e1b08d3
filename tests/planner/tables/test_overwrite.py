"""Partitions replaced by rows that are read from the table itself: a batch that was cut off anywhere counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.apply.events import AuditRan, Event
from mergeplan.planner.engine.formats import hive_files
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT
from tests.planner.daily import Daily

pytestmark = pytest.mark.prove

BY_DAY = "INCREMENTAL_BY_PARTITION, partitioned_by (at)"
WHOLE = "INCREMENTAL_UNMANAGED (insert_overwrite true)"
UNMANAGED = f"{WHOLE}, partitioned_by (at)"
BY_KEY = "INCREMENTAL_BY_UNIQUE_KEY (unique_key at, delete_insert true)"
# Each batch adds one to `n` of the day before, and of rows without a day: a batch that is done twice would add two.
QUERY = """SELECT id, n + 1 AS n, at FROM shop.t WHERE at = date_sub(@start_date, 1) OR at IS NULL
UNION ALL SELECT id, 0 AS n, at FROM raw.items WHERE at BETWEEN @start_date AND @end_date"""
DAYS = ("1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-02'", "3, 'c', date'2026-01-03'")
PARTITIONED = [(1, 1, "01-01"), (2, 1, "01-02"), (3, 0, "01-03")]


def written(kind: str, query: str = QUERY) -> str:
    return f"MODEL (name shop.t, kind {kind}, audits (not_null(columns := (id))));\n{query}"


@pytest.fixture
def daily(tmp_path: Path, engine: SparkEngine) -> Iterator[Daily]:
    store = StateStore(f"sqlite:///{tmp_path}/state.db")
    yield Daily(tmp_path / "shop", engine, store)
    store.close()


def dies(event: Event) -> None:
    """Ends the run after a batch was written and before it is recorded."""
    if isinstance(event, AuditRan):
        raise KeyError("killed")


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (BY_DAY, PARTITIONED),
        (UNMANAGED, PARTITIONED),
        (BY_KEY, PARTITIONED),
        (WHOLE, [(2, 1, "01-02"), (3, 0, "01-03")]),
    ],
)
def test_a_batch_that_is_repeated_after_a_crash_counts_once(
    kind: str, rows: list[tuple[object, ...]], daily: Daily
) -> None:
    daily.has(*DAYS)
    daily.run("2026-01-03", written(kind))
    for _ in range(2):
        with pytest.raises(KeyError):
            daily.run("2026-01-04", written(kind), emit=dies)

    daily.run("2026-01-04", written(kind))

    assert daily.rows() == rows


@pytest.mark.skipif(FORMAT != "", reason="a commit of a format with a log is whole")
@pytest.mark.parametrize("statement", [1, 2, 3, 4])
def test_a_run_that_ends_between_two_partitions_is_mended(
    statement: int, daily: Daily, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the statements that point partitions at the batch, and back, some have run."""
    daily.has("9, 'z', NULL", *DAYS)
    first = QUERY.replace("@end_date", "@end_date OR (at IS NULL AND @start_date = date'2026-01-01')")
    daily.run("2026-01-03", written(BY_DAY, first))
    for name in ("point_partitions", "point_back"):
        with monkeypatch.context() as patch, pytest.raises(KeyError):
            patch.setattr(hive_files, name, interrupted(getattr(hive_files, name), statement))
            daily.run("2026-01-04", written(BY_DAY, first))

    assert not daily.run("2026-01-04", written(BY_DAY, first)).failures
    assert daily.rows() == [*PARTITIONED, (9, 2, None)]
    daily.has(*DAYS, "4, 'd', date'2026-01-04'")
    daily.run("2026-01-05", written(BY_DAY, first))
    assert daily.rows() == [*PARTITIONED[:2], (3, 1, "01-03"), (4, 0, "01-04"), (9, 3, None)]


def interrupted(pointing: Any, statement: int) -> Any:
    """The same, which ends the run with its nth statement."""

    def point(run: Any, *arguments: Any) -> None:
        count = 0

        def counting(sql: str) -> Any:
            nonlocal count
            count += sql.startswith("ALTER")
            if count == statement and sql.startswith("ALTER"):
                raise KeyError("killed")
            return run(sql)

        pointing(counting, *arguments)
        raise KeyError("killed")

    return point


def test_what_a_crash_left_does_not_come_along_when_the_model_is_edited(daily: Daily) -> None:
    daily.has(*DAYS)
    daily.run("2026-01-03", written(BY_DAY))
    with pytest.raises(KeyError):
        daily.run("2026-01-04", written(BY_DAY), emit=dies)

    edited = written(BY_DAY, QUERY.replace("n + 1", "n + 10"))
    daily.run("2026-01-04", edited)
    daily.run("2026-01-04", edited)

    assert daily.rows() == [(1, 1, "01-01"), (2, 10, "01-02"), (3, 0, "01-03")]


@pytest.mark.parametrize("kind", [BY_DAY, WHOLE])
def test_a_batch_in_which_an_audit_finds_rows_leaves_the_table_as_it_was(kind: str, daily: Daily) -> None:
    daily.has(*DAYS[:2], "NULL, 'c', date'2026-01-03'")
    daily.run("2026-01-03", written(kind))
    before = daily.rows()

    failed = daily.run("2026-01-04", written(kind))

    assert [failure.model for failure in failed.failures] == ["shop.t"]
    assert daily.rows() == before


def test_a_restatement_fills_it_from_its_first_day(daily: Daily) -> None:
    daily.has(*DAYS)
    daily.run("2026-01-03", written(BY_DAY))
    daily.run("2026-01-04", written(BY_DAY))
    daily.has(DAYS[0].replace("1", "7", 1), *DAYS[1:])
    with daily.store.leases.hold(f"table:{(table := next(iter(daily.store.tables.all())))}", "test") as lease:
        for interval in daily.store.intervals.load_timelines([table])[table]:
            daily.store.intervals.forget(table, interval, lease=lease)

    daily.run("2026-01-04", written(BY_DAY))

    assert daily.rows() == [(2, 1, "01-02"), (3, 0, "01-03"), (7, 1, "01-01")]


@pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")
@pytest.mark.parametrize("kind", [BY_KEY, "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", BY_DAY])
def test_a_table_goes_on_in_another_format(kind: str, daily: Daily) -> None:
    query = "SELECT id, 0 AS n, at FROM raw.items WHERE at BETWEEN @start_date AND @end_date AND NOT EXISTS ("
    query += "SELECT 1 FROM shop.t WHERE n = 7)"
    files = written(f"{kind}, table_format hive", query)
    daily.has(*DAYS)
    daily.run("2026-01-03", files)

    assert not daily.run("2026-01-03", files.replace("hive", FORMAT)).failures
    assert not daily.run("2026-01-04", files.replace("hive", FORMAT)).failures
    assert daily.rows() == [(1, 0, "01-01"), (2, 0, "01-02"), (3, 0, "01-03")]
