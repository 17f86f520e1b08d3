"""Early cut-off: what reads a table that came out the same is not computed again; what reads another one is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import BatchDone, Compared, Event
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import FILES, make_plan, plan_and_apply, rows, write_shop

pytestmark = pytest.mark.prove

DAILY = FILES["models/daily.sql"].replace("batch_size 1", "batch_size 7")
SAME = DAILY.replace("SELECT id, day, price", "SELECT id, day, price + id - id AS price")
OTHER = DAILY.replace("SELECT id, day, price", "SELECT id, day, price + CASE WHEN id = 3 THEN 1 ELSE 0 END AS price")
READERS = {
    "total": "MODEL (name shop.total, kind FULL);\nSELECT sum(price) AS total FROM shop.daily",
    "grand": "MODEL (name shop.grand, kind FULL);\nSELECT total + 1 AS more FROM shop.total",
}


@pytest.fixture
def store(tmp_path: Path, project: str) -> Iterator[StateStore]:
    """A state store of one sort: what it keeps of contents is tested on both by themselves."""
    opened = StateStore(f"sqlite:///{tmp_path}/state.db", project)
    yield opened
    opened.close()


def models_computed(events: list[Event]) -> set[str]:
    return {event.model for event in events if isinstance(event, BatchDone)}


def test_a_changed_model_with_the_same_rows_ends_the_recomputation(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    plan_and_apply(write_shop(tmp_path, **READERS, daily=DAILY), engine, store)
    prod = store.environments.get("prod").snapshots
    project, events = write_shop(tmp_path, **READERS, daily=SAME), list[Event]()

    outcome = plan_and_apply(project, engine, store, "dev", events.append)
    dev = store.environments.get("dev").snapshots
    merge = make_plan(project, store)

    assert models_computed(events) == {"shop.daily"}
    assert [(e.reader, e.spared) for e in events if isinstance(e, Compared)] == [("shop.total", True)]
    assert [dev[name].table for name in ("shop.total", "shop.grand")] == [
        prod[name].table for name in ("shop.total", "shop.grand")
    ]
    assert outcome.plan is not None
    assert outcome.plan.spared == {"shop.total", "shop.grand"}
    assert (merge.digest, merge.is_virtual) == (outcome.plan.digest, True)


def test_a_changed_model_with_other_rows_is_followed(tmp_path: Path, engine: SparkEngine, store: StateStore) -> None:
    plan_and_apply(write_shop(tmp_path, **READERS, daily=DAILY), engine, store)
    events = list[Event]()

    plan_and_apply(write_shop(tmp_path, **READERS, daily=OTHER), engine, store, "dev", events.append)

    assert models_computed(events) == {"shop.daily", "shop.total", "shop.grand"}
    assert rows(engine, "SELECT more FROM shop__dev.grand") == [(62,)]


def test_a_table_that_was_written_since_is_not_taken_for_what_it_was(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    plan_and_apply(write_shop(tmp_path, **READERS, daily=DAILY), engine, store)
    project = write_shop(tmp_path, **READERS, daily=SAME)
    outcome = plan_and_apply(project, engine, store, "dev")
    snapshot = store.environments.get("prod").snapshots["shop.daily"]
    assert snapshot.kind is Kind.INCREMENTAL_BY_TIME_RANGE
    held = store.intervals.load_timelines([snapshot.table])[snapshot.table]
    store.intervals.record(snapshot.table, held[0])  # as a run or a restatement does that wrote it again

    merge = make_plan(project, store)

    assert outcome.plan is not None
    assert merge.digest != outcome.plan.digest
    assert [change.name for change in merge.backfills] == ["shop.total", "shop.grand"]


def test_days_that_came_out_the_same_are_copied_and_the_others_computed(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    by_day = DAILY.replace("shop.daily", "shop.later").replace("shop.items", "shop.daily")
    plan_and_apply(write_shop(tmp_path, later=by_day, daily=DAILY), engine, store)
    events = list[Event]()

    plan_and_apply(write_shop(tmp_path, later=by_day, daily=OTHER), engine, store, "dev", events.append)

    later = {str(e.interval): e.copied for e in events if isinstance(e, BatchDone) and e.model == "shop.later"}
    assert [interval for interval, copied in later.items() if not copied] == ["2026-01-04 - 2026-01-04"]
    assert rows(engine, "SELECT id, price FROM shop__dev.later ORDER BY id") == [(1, 10), (2, 20), (3, 31)]


@pytest.mark.parametrize(("lookback", "is_copied"), [(1, True), (0, False)])
def test_days_are_copied_only_if_the_reader_looks_back_as_far_as_what_it_reads(
    tmp_path: Path, engine: SparkEngine, store: StateStore, lookback: int, is_copied: bool
) -> None:
    """Late rows may have come into the other table after the reader's day was computed."""
    looking = [text.replace("batch_size 7", "batch_size 7, lookback 1") for text in (DAILY, OTHER)]
    by_day = DAILY.replace("shop.daily", "shop.later").replace("shop.items", "shop.daily")
    by_day = by_day.replace("batch_size 7", f"batch_size 7, lookback {lookback}")
    plan_and_apply(write_shop(tmp_path, later=by_day, daily=looking[0]), engine, store)
    events = list[Event]()

    plan_and_apply(write_shop(tmp_path, later=by_day, daily=looking[1]), engine, store, "dev", events.append)

    assert any(event.copied for event in events if isinstance(event, BatchDone)) is is_copied
    assert rows(engine, "SELECT id, price FROM shop__dev.later ORDER BY id") == [(1, 10), (2, 20), (3, 31)]


def test_a_reader_that_looks_beyond_its_day_is_computed_for_every_day(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    last = DAILY.replace("shop.daily", "shop.later").replace(
        "SELECT id, day, price FROM shop.items",
        "SELECT id, day, (SELECT MAX(price) FROM shop.daily) AS price FROM shop.daily",
    )
    plan_and_apply(write_shop(tmp_path, later=last, daily=DAILY), engine, store)
    events = list[Event]()

    plan_and_apply(write_shop(tmp_path, later=last, daily=OTHER), engine, store, "dev", events.append)

    assert not any(event.copied for event in events if isinstance(event, BatchDone))
    assert rows(engine, "SELECT DISTINCT price FROM shop__dev.later") == [(31,)]
