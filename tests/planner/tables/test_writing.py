"""Batches that build on each other, on a real Spark: what a crash, an audit and another layout leave of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import AuditRan, BatchDone, Event
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.planner.daily import Daily

pytestmark = pytest.mark.prove

COUNTED = """MODEL (name shop.counted, kind INCREMENTAL_BY_UNIQUE_KEY (
  unique_key id, batch_size 1, when_matched (WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n)
), audits (not_null(columns := (id))));
SELECT id, count(*) AS n, max(name) AS name FROM raw.items WHERE at BETWEEN @start_date AND @end_date GROUP BY id"""
KNOWN = """MODEL (name shop.known, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *),
  audits (not_null(columns := (id))));
SELECT id, name FROM raw.items"""
REGIONS = """MODEL (name shop.t, kind INCREMENTAL_BY_PARTITION, partitioned_by (name, bucket(2, id)));
SELECT id, name, at FROM raw.items"""


@pytest.fixture
def daily(tmp_path: Path, engine: SparkEngine) -> Iterator[Daily]:
    store = StateStore(f"sqlite:///{tmp_path}/state.db")
    yield Daily(tmp_path / "shop", engine, store)
    store.close()


def dies(event: Event) -> None:
    """Ends the run after a batch was written and before it is recorded."""
    if isinstance(event, AuditRan):
        raise KeyError("killed")


def test_a_batch_that_is_repeated_after_a_crash_counts_once(daily: Daily) -> None:
    daily.has("1, 'a', date'2026-01-01'")
    daily.run("2026-01-02", COUNTED, KNOWN)
    daily.has("1, 'A', date'2026-01-02'", "2, 'b', date'2026-01-02'")

    with pytest.raises(KeyError):
        daily.run("2026-01-03", COUNTED, KNOWN, emit=dies)
    daily.has("1, 'A', date'2026-01-02'", "1, 'Z', date'2026-01-03'")
    daily.run("2026-01-03", COUNTED)

    assert daily.rows("shop.counted") == [(1, 2, "a")]
    daily.has("1, 'Z', date'2026-01-03'")
    daily.run("2026-01-04", COUNTED, KNOWN)
    assert daily.rows("shop.counted") == [(1, 3, "a")]
    assert daily.rows("shop.known")[0] == (1, "Z", "01-04 05", None)


PLAIN = "MERGEPLAN_TABLE_FORMAT" not in os.environ  # tables of Delta and Iceberg are of parquet files
LAID_OUT = "storage_format orc" if PLAIN else "partitioned_by (name)"
COPIED = COUNTED.replace("audits", f"{LAID_OUT}, audits")
AHEAD = COUNTED.replace("batch_size 1", "forward_only true").replace("max(name)", "concat(max(name), '!')")
LOG = """MODEL (name shop.log, kind INCREMENTAL_UNMANAGED, audits (not_null(columns := (id))));
SELECT id, 1 AS n, name FROM raw.items WHERE at BETWEEN @start_date AND @end_date"""


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        (COUNTED, COPIED, [(1, 2, "a"), (2, 1, "c")]),
        (COUNTED.replace("batch_size 1", "forward_only true"), AHEAD, [(1, 2, "a"), (2, 1, "c!")]),
        (COUNTED, COUNTED.replace("batch_size 1", "batch_size 1, lookback 1"), [(1, 3, "a"), (2, 1, "c")]),
        (LOG, LOG.replace("audits", "clustered_by (id), audits"), [(1, 1, "a"), (1, 1, "b"), (2, 1, "c")]),
        (LOG, LOG.replace("name FROM", "concat(name, '!') AS name FROM"), [(1, 1, "a"), (1, 1, "b!"), (2, 1, "c!")]),
    ][: None if "MERGEPLAN_CASES" in os.environ else 2],  # all of them by `make prove`
)
def test_what_a_crash_left_unrecorded_does_not_come_along_when_the_model_is_edited(
    before: str, after: str, rows: list[tuple[object, ...]], daily: Daily
) -> None:
    daily.has("1, 'a', date'2026-01-01'")
    daily.run("2026-01-02", before)
    daily.has("1, 'a', date'2026-01-01'", "1, 'b', date'2026-01-02'", "2, 'c', date'2026-01-02'")
    with pytest.raises(KeyError):
        daily.run("2026-01-03", before, emit=dies)

    daily.run("2026-01-03", after)
    daily.run("2026-01-03", after)

    assert daily.rows("shop.log" if "shop.log" in before else "shop.counted", "id, n, name") == rows


def test_a_batch_in_which_an_audit_finds_rows_leaves_the_table_as_it_was(daily: Daily) -> None:
    daily.has("1, 'a', date'2026-01-01'")
    daily.run("2026-01-02", COUNTED, KNOWN)
    daily.has("1, 'A', date'2026-01-02'", "NULL, 'b', date'2026-01-02'")

    failed = daily.run("2026-01-03", COUNTED, KNOWN)

    assert {failure.model for failure in failed.failures} == {"shop.counted", "shop.known"}
    assert daily.rows("shop.counted") == [(1, 1, "a")]
    assert daily.rows("shop.known") == [(1, "a", "ever", None)]


def test_another_layout_of_a_table_with_history_copies_it_and_goes_on(daily: Daily) -> None:
    daily.has("1, 'a', date'2026-01-01'")
    daily.run("2026-01-02", KNOWN)
    daily.has("1, 'b', date'2026-01-02'")
    daily.run("2026-01-03", KNOWN)
    events = list[Event]()
    more = ", partitioned_by (months(valid_from)), clustered_by (name)" if PLAIN else ""
    anew = KNOWN.replace("audits", f"{LAID_OUT}{more}, audits")
    daily.run("2026-01-03", anew, emit=events.append)
    daily.has("1, 'c', date'2026-01-03'")

    daily.run("2026-01-04", anew)

    assert [event.copied for event in events if isinstance(event, BatchDone)] == [True]
    assert daily.rows("shop.known") == [
        (1, "a", "ever", "01-03 05"),
        (1, "b", "01-03 05", "01-04 05"),
        (1, "c", "01-04 05", None),
    ]


def test_a_batch_by_partition_takes_the_place_of_those_it_returns(daily: Daily) -> None:
    daily.has("1, 'it''s a/b=c', date'2026-01-01'", "2, 'b', date'2026-01-01'", "3, NULL, date'2026-01-01'")
    daily.run("2026-01-02", REGIONS)
    daily.has("4, NULL, date'2026-01-02'", "6, 'b', date'2026-01-02'", "5, 'it''s a/b=c', date'2026-01-02'")

    daily.run("2026-01-03", REGIONS)

    ids = {row[0] for row in daily.rows()}
    buckets = {i: daily.engine.fetch(f"SELECT pmod(hash({i}), 2)").rows[0][0] for i in range(1, 7)}
    replaced = {old for old, new in ((1, 5), (2, 6), (3, 4)) if buckets[old] == buckets[new]}
    assert ids == {1, 2, 3, 4, 5, 6} - replaced
    assert len(daily.rows(columns="id")) == len(ids)


def test_a_whole_table_cut_by_columns_and_expressions_moves_as_one(daily: Daily) -> None:
    cut = "partitioned_by (name, months(at), bucket(2, id), truncate(10, id)), clustered_by (id)"
    whole = f"MODEL (name shop.t, kind FULL, {cut});\nSELECT id, name, at FROM raw.items"
    ranged = f"MODEL (name shop.r, kind INCREMENTAL_BY_TIME_RANGE (time_column at), {cut});\n"
    ranged += "SELECT id, name, at FROM raw.items WHERE at BETWEEN @start_date AND @end_date"
    daily.has("1, 'x y/%', date'2026-01-01'", "22, NULL, date'2026-01-01'")
    daily.run("2026-01-02", whole, ranged)
    daily.has("22, 'c', date'2026-01-02'", "3, 'x y/%', date'2026-01-02'")

    daily.run("2026-01-03", whole, ranged)

    old, new = [(1, "x y/%", "01-01"), (22, None, "01-01")], [(3, "x y/%", "01-02"), (22, "c", "01-02")]
    assert daily.rows(columns="id, name, at") == new
    assert daily.rows("shop.r", "id, name, at") == sorted(old + new, key=lambda row: (row[0], row[1] or ""))
