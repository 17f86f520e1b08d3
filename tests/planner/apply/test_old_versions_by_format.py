"""The janitor among tables that build on each other: what was shown, cloned or interrupted is there after it.

Run by `make prove-lakehouse`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.old_versions import OldVersions, remove_old_versions
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.apply.promotion.rollback import apply_rollback, build_rollback
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT
from tests.planner.ageing import later
from tests.planner.builders import environment
from tests.planner.daily import Daily
from tests.planner.shop import NOW

pytestmark = [pytest.mark.prove, pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")]

WEEK = timedelta(days=7)
KINDS = {
    "by_key": ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id, forward_only true)", "BETWEEN @start_date AND @end_date"),
    "by_time": (
        "INCREMENTAL_BY_TIME_RANGE (time_column at, forward_only true)", "BETWEEN @start_date AND @end_date",
    ),
    "full": ("FULL", "IS NOT NULL"),
}  # fmt: skip
FIRST, SECOND = "1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-02'"


def models(more: str = "") -> list[str]:
    text = "MODEL (name shop.{}, kind {});\nSELECT id, name, at{} FROM raw.items WHERE at {}"
    return [text.format(name, kind, more, where) for name, (kind, where) in KINDS.items()]


@pytest.fixture
def daily(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Iterator[Daily]:
    folder = tmp_path_factory.mktemp("old")
    store = StateStore(f"sqlite:///{folder}/state.db")
    yield Daily(folder / "shop", engine, store)
    store.close()


def prod_snapshots(daily: Daily) -> dict[str, Snapshot]:
    return dict(daily.store.environments.get(PROD).snapshots)


def swept(daily: Daily, engine: SparkEngine) -> OldVersions:
    """What the janitor removes forty days later."""
    tables = [name for name, table in daily.store.tables.all().items() if table.columns]
    return remove_old_versions(daily.store, engine, WEEK, later(engine, 40, *tables))


def names(daily: Daily) -> list[list[object]]:
    return [[row[0] for row in daily.rows(f"shop.{name}", "name")] for name in KINDS]


def test_clones_and_what_they_are_of_are_as_before_and_prod_can_go_back(daily: Daily, engine: SparkEngine) -> None:
    daily.has(FIRST)
    daily.run("2026-01-02", *models())
    before = prod_snapshots(daily)
    with daily.store.leases.hold("old", "test") as lease:  # somebody still looks at the tables that prod leaves
        wanted = Wanted(daily.store.environments.get("old"), environment("old", *before.values()))
        promote_views(daily.store, engine, lease, wanted, emit=ignore_event)
    daily.run("2026-01-02", *models(", id * 7 AS more"))
    for name in KINDS:  # the sources go on: only an old version of them has the files that the clones read
        engine.fetch(f"DELETE FROM {before[f'shop.{name}'].table}")

    kept = {retained.table for retained in swept(daily, engine).kept}

    clones = {before[f"shop.{name}"].table for name in ("by_key", "by_time")}
    assert kept.issuperset(clones) if FORMAT == "delta" else True
    assert names(daily) == [["a"]] * 3
    daily.has(FIRST, SECOND)
    daily.run("2026-01-03", *models(", id * 7 AS more"))
    assert names(daily) == [["a", "b"]] * 3
    with daily.store.leases.hold(PROD, "test") as lease:
        apply_rollback(daily.store, engine, lease, build_rollback(daily.store, "prod", None, NOW), emit=ignore_event)
    assert names(daily) == [[]] * 3


def test_a_batch_that_was_interrupted_is_finished_long_after_and_once(
    daily: Daily, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily.has(FIRST)
    daily.run("2026-01-02", *models())
    daily.has(FIRST, "1, 'A', date'2026-01-02'", SECOND)

    def fail_state(*_: Any, **__: Any) -> None:
        raise QueryError("the state is away")  # the batch is committed, and nobody knows

    with monkeypatch.context() as patched:
        patched.setattr(daily.store.intervals, "record", fail_state)
        assert len(daily.run("2026-01-03", *models()).failures) == len(KINDS)
    swept(daily, engine)
    assert not daily.run("2026-01-03", *models()).failures

    assert names(daily) == [["A", "b"], ["A", "a", "b"], ["A", "a", "b"]]
