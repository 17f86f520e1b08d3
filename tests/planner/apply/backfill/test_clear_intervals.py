"""How a restatement begins: all of it is forgotten or nothing, and nobody computes from what is being restated."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import LeaseHeld, PlanMoved
from mergeplan.planner.model.model import Column
from mergeplan.planner.snapshot.content_hash import Content
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days
from tests.planner.shop import make_plan, plan_and_apply, write_shop

A, B = "mergeplan__s.s__a__1", "mergeplan__s.s__b__1"


@pytest.fixture
def store_with_table(store: StateStore) -> StateStore:
    for table in (A, B):
        store.tables.register(table, [Column("id", "int")])
        store.intervals.record(table, days(1, 9))
        store.passed_audits.record(table, "audit")
        with store.leases.hold(table_lease(table), "test") as lease:
            store.contents.record(table, {("id",): {"2026-01-01": Content(1, "a"), "": Content(9, "b")}}, lease=lease)
    return store


def test_what_is_restated_is_forgotten_in_every_table_at_once_with_what_was_known_of_it(
    store_with_table: StateStore,
) -> None:
    with ExitStack() as held:
        leases = [
            held.enter_context(store_with_table.leases.hold(name, "test"))
            for name in ("prod", table_lease(A), table_lease(B))
        ]
        store_with_table.restatements.begin("p1", "prod", {A: (days(3, 4),), B: (days(1, 9),)}, leases=leases)

    assert store_with_table.intervals.load_timelines([A, B]) == {A: (days(1, 2), days(5, 9)), B: ()}
    assert not store_with_table.contents.load([A])[A].known
    assert not store_with_table.passed_audits.names_for(A)
    assert store_with_table.plans.get("p1").tables == (A, B)


def test_who_lost_a_lease_forgets_nothing(store_with_table: StateStore) -> None:
    with store_with_table.leases.hold("prod", "test") as lease, pytest.raises(LeaseHeld):
        store_with_table.restatements.begin("p1", "prod", {A: (days(3, 4),)}, leases=[lease, Lease(table_lease(A), 99)])

    assert store_with_table.intervals.load_timelines([A]) == {A: (days(1, 9),)}


def test_nothing_is_computed_from_a_table_that_is_being_restated(engine: SparkEngine, tmp_path: Path) -> None:
    store = StateStore(f"sqlite:///{tmp_path}/state.db")
    project = write_shop(tmp_path / "shop", shown="", apart="")
    plan_and_apply(project, engine, store)
    days_table = store.environments.get("prod").snapshots["shop.daily"].table
    total = "MODEL (name shop.total, kind FULL);\nSELECT count(*) AS total FROM shop.daily"
    edited = write_shop(tmp_path / "shop", total=total, shown="", apart="")
    plan = make_plan(edited, store, "dev")
    store.intervals.forget(days_table, days(2, 3))

    with pytest.raises(
        PlanMoved, match=f"`{days_table}` lacks 2026-01-02 - 2026-01-03 now: it is being computed again"
    ):
        plan_and_apply(edited, engine, store, "dev", plan=plan)

    assert not store.environments.get("dev").exists
    store.close()
