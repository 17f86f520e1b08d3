"""A forward-only change of each kind beside plain ones: its rows stay, and the next run goes on from them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.plan.change import Category
from mergeplan.planner.state.store import StateStore
from tests.planner.daily import Daily

pytestmark = pytest.mark.prove

FIRST = ("1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-01'")
THEN = ("1, 'A', date'2026-01-02'", "3, 'c', date'2026-01-02'")
WHERE = " FROM raw.items WHERE at BETWEEN @start_date AND @end_date"
A, B, C, NEW = (1, "a", "01-01"), (2, "b", "01-01"), (3, "c", "01-02"), (1, "A", "01-02")
KINDS = {
    "by_key": ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id, forward_only true)", WHERE, [NEW, B, C]),
    "by_part": ("INCREMENTAL_BY_PARTITION, partitioned_by (id)", WHERE, [NEW, B, C]),
    "unmanaged": ("INCREMENTAL_UNMANAGED", WHERE, [NEW, A, B, C]),
    "cut_twice": (
        "INCREMENTAL_BY_TIME_RANGE (time_column at, forward_only true), partitioned_by (name)", WHERE, [NEW, A, B, C],
    ),
    "history": ("SCD_TYPE_2_BY_COLUMN (unique_key id, columns [name])", " FROM raw.items", [NEW, A, B, C]),
}  # fmt: skip


def models(more: str = "") -> list[str]:
    return [
        f"MODEL (name shop.{name}, kind {kind});\nSELECT id, name, at{more}{rest}"
        for name, (kind, rest, _) in KINDS.items()
    ]


@pytest.fixture
def daily(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Iterator[Daily]:
    folder = tmp_path_factory.mktemp("forward")
    store = StateStore(f"sqlite:///{folder}/state.db")
    yield Daily(folder / "shop", engine, store)
    store.close()


def test_rows_stay_and_the_next_run_goes_on_from_them(daily: Daily) -> None:
    daily.has(*FIRST)
    daily.run("2026-01-02", *models())
    before = daily.store.environments.get("prod").snapshots

    changed = daily.run("2026-01-02", *models(", id * 7 AS more"))
    assert changed.plan
    assert {change.category for change in changed.plan.changes} == {Category.FORWARD_ONLY}
    assert changed.filled.batches == 0
    for name in KINDS:
        assert daily.rows(f"shop.{name}", "id, name, at, more") == [(*A, None), (*B, None)]

    daily.has(*THEN)
    assert not daily.run("2026-01-03", *models(", id * 7 AS more")).failures
    for name, (_, _, rows) in KINDS.items():
        wanted = sorted((*row, row[0] * 7 if row in (NEW, C) else None) for row in rows)
        assert daily.rows(f"shop.{name}", "id, name, at, more") == wanted
        assert len(daily.rows(before[f"shop.{name}"].table, "id")) == 2
    for snapshot in daily.store.environments.get("prod").snapshots.values():
        if snapshot.kind.is_stored:
            daily.engine.tables.drop(snapshot.table)
    assert [len(daily.rows(before[f"shop.{name}"].table, "id")) for name in KINDS] == [2] * len(KINDS)
