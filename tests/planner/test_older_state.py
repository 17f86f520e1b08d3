"""A state that is restored from before its tables were last written: no row of a batch that it lacks counts twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.planner.daily import Daily

FROM = "FROM raw.items AS i WHERE i.at BETWEEN @start_date AND @end_date"
ADDS = "unique_key name, when_matched (WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n)"
APPENDED = (
    f"MODEL (name shop.added, kind INCREMENTAL_UNMANAGED);\nSELECT id, at {FROM}",
    "MODEL (name shop.totals, kind INCREMENTAL_UNMANAGED);\n"
    f"SELECT id + coalesce((SELECT max(total) FROM shop.totals), 0) AS total, at {FROM}",
)
MERGED = (
    f"MODEL (name shop.keyed, kind INCREMENTAL_BY_UNIQUE_KEY ({ADDS}));\nSELECT name, count(*) AS n {FROM} GROUP BY 1",
    "MODEL (name shop.parts, kind INCREMENTAL_BY_PARTITION, partitioned_by [name]);\n"
    f"SELECT name, count(*) + coalesce((SELECT max(n) FROM shop.parts), 0) AS n {FROM} GROUP BY 1",
)


@pytest.fixture
def daily(tmp_path: Path, engine: SparkEngine) -> Iterator[Daily]:
    """Six days of items."""
    daily = Daily(tmp_path / "shop", engine, StateStore(f"sqlite:///{tmp_path}/state.db"))
    daily.has(*(f"{day}, 'a', date'2026-01-0{day}'" for day in range(1, 7)))
    yield daily
    daily.store.close()


def restore_third_day(daily: Daily, *models: str) -> None:
    state, copy = (daily.root.parent / name for name in ("state.db", "copy.db"))
    for day in (3, 4, 5, 6):
        assert not daily.run(f"2026-01-0{day}", *models).failures
        if day == 3:
            daily.store.close()
            shutil.copy(state, copy)
            daily.store = StateStore(f"sqlite:///{state}")
    daily.store.close()
    shutil.copy(copy, state)
    daily.store = StateStore(f"sqlite:///{state}")


def test_batches_that_an_older_state_lacks_are_replaced(daily: Daily) -> None:
    restore_third_day(daily, *APPENDED)
    assert not daily.run("2026-01-06").failures

    assert daily.rows("shop.added", "id") == [(1,), (2,), (3,), (4,), (5,)]
    assert daily.rows("shop.totals", "total") == [(1,), (3,), (6,), (10,), (15,)]


def test_a_merge_that_would_count_twice_is_refused(daily: Daily) -> None:
    restore_third_day(daily, *MERGED)
    failures = daily.run("2026-01-06").failures

    assert [failure.model for failure in failures] == ["shop.keyed", "shop.parts"]
    assert all("after 2026-01-03 00:00 UTC that the state lacks" in str(one.error) for one in failures)
    assert daily.rows("shop.keyed") == daily.rows("shop.parts", "name, n") == [("a", 5)]
