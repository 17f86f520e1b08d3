"""Plans that meet at a table on a real Spark: it is written by one at a time, and once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import BatchDone, Event, ModelUpToDate, TableAwaited
from mergeplan.planner.apply.executor import ApplyOptions, apply
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import NOW, make_plan, plan_and_apply, rows, write_shop

APART = dict.fromkeys(("items", "daily", "total", "shown"), "")  # leaves `apart`


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "shop"


@pytest.mark.prove
def test_two_plans_that_share_a_table_build_it_once(root: Path, engine: SparkEngine, store: StateStore) -> None:
    project = write_shop(root)
    plans = [make_plan(project, store, name) for name in ("one", "two")]
    begun, events = threading.Event(), {"one": list[Event](), "two": list[Event]()}

    def emit(name: str) -> Callable[[Event], None]:
        def hear(event: Event) -> None:
            events[name].append(event)
            if isinstance(event, BatchDone):
                begun.set()

        return hear

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(plan_and_apply, project, engine, store, "one", emit("one"), plans[0])
        assert begun.wait(300)
        second = pool.submit(plan_and_apply, project, engine, store, "two", emit("two"), plans[1])
        outcomes = [first.result(timeout=600), second.result(timeout=600)]

    assert sum(outcome.filled.batches for outcome in outcomes) == 8
    assert ModelUpToDate in {type(event) for event in events["two"]}
    assert all(outcome.promoted for outcome in outcomes)
    assert rows(engine, "SELECT total FROM shop__two.shown") == [(60,)]


def test_a_table_that_another_process_writes_is_awaited(root: Path, engine: SparkEngine, store: StateStore) -> None:
    project, events, awaited = write_shop(root, **APART), list[Event](), threading.Event()
    plan = make_plan(project, store)
    table = plan.new.snapshots["shop.apart"].table

    def hear(event: Event) -> None:
        events.append(event)
        if isinstance(event, TableAwaited):
            awaited.set()

    def hold() -> None:
        with store.leases.hold(f"table:{table}", "plan 12"):
            held.set()
            awaited.wait(60)

    held = threading.Event()
    create_first = make_plan(project, store, skip_backfill=True)
    with store.leases.hold("prod", "test") as lease:
        apply(create_first, project, engine, store, lease, ApplyOptions(NOW, lambda e: None, complete=False))
    plan = replace(plan, old=store.environments.get("prod"))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        assert held.wait(60)
        outcome = plan_and_apply(project, engine, store, emit=hear, plan=plan)

    assert TableAwaited("shop.apart", table, "plan 12") in events
    assert not outcome.failures
