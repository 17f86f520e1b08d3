"""Audits newly asked of a table that is kept."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import AuditRan, Event
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.intervals import Interval
from tests.planner.shop import ALONE, NOW, plan_and_apply, write_shop
from tests.stores import open_store

TOTAL = "MODEL (name shop.total, kind FULL{});\nSELECT 7 AS total"


def audit_names(events: list[Event]) -> list[str]:
    return [event.result.name for event in events if isinstance(event, AuditRan)]


def test_a_new_audit_runs_once_on_the_table_that_is_kept(tmp_path: Path, engine: SparkEngine) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": TOTAL.format("")}), engine, store)
    project = write_shop(tmp_path, **ALONE | {"total": TOTAL.format(", audits (not_null(columns := (total)))")})
    in_dev: list[Event] = []
    in_prod: list[Event] = []

    dev = plan_and_apply(project, engine, store, "dev", emit=in_dev.append)
    prod = plan_and_apply(project, engine, store, emit=in_prod.append)

    assert dev.promoted and prod.promoted
    assert audit_names(in_dev) == ["not_null"]
    assert audit_names(in_prod) == []


def test_a_new_blocking_audit_that_finds_rows_forbids_the_promotion(tmp_path: Path, engine: SparkEngine) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": TOTAL.format("")}), engine, store)
    project = write_shop(tmp_path, **ALONE | {"total": TOTAL.format(", audits (forall(criteria := (total > 7)))")})

    outcome = plan_and_apply(project, engine, store)

    assert outcome.promoted is None
    assert "`forall` of `shop.total` found 1 row" in str(outcome.failures[0].error)
    assert store.environments.get("prod").revision == 1


def test_an_audit_that_comes_with_a_later_push_is_asked_of_the_table_that_an_earlier_one_built(
    tmp_path: Path, engine: SparkEngine
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": TOTAL.format("")}), engine, store)
    eight = TOTAL.replace("7", "8")
    asks = ", audits (forall(criteria := (total = 8)))"
    first, second, merge = list[Event](), list[Event](), list[Event]()
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": eight.format("")}), engine, store, "dev", emit=first.append)
    pushed = write_shop(tmp_path, **ALONE | {"total": eight.format(asks)})

    plan_and_apply(pushed, engine, store, "dev", emit=second.append)
    plan_and_apply(pushed, engine, store, emit=merge.append)

    assert [audit_names(first), audit_names(second), audit_names(merge)] == [[], ["forall"], []]


@pytest.mark.parametrize("kind", ["FULL", "VIEW"])
def test_a_blocking_audit_of_a_later_push_forbids_the_promotion_of_what_an_earlier_one_built(
    tmp_path: Path, engine: SparkEngine, kind: str
) -> None:
    store, total = open_store(f"sqlite:///{tmp_path / 'state.db'}"), TOTAL.replace("FULL", kind)
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": total.format("")}), engine, store)
    eight, asks = total.replace("7", "8"), ", audits (forall(criteria := (total > 8)))"
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": eight.format("")}), engine, store, "dev")

    project = write_shop(tmp_path, **ALONE | {"total": eight.format(asks)})
    outcomes = [plan_and_apply(project, engine, store, environment) for environment in ("dev", "prod")]

    assert [outcome.promoted for outcome in outcomes] == [None, None]


def test_a_merge_asks_no_audit_that_its_pull_request_asked_of_each_batch(tmp_path: Path, engine: SparkEngine) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": TOTAL.format("")}), engine, store)
    asks = ", audits (forall(criteria := (total = 8)))"
    project = write_shop(tmp_path, **ALONE | {"total": TOTAL.replace("7", "8").format(asks)})
    in_dev, in_prod = list[Event](), list[Event]()

    plan_and_apply(project, engine, store, "dev", emit=in_dev.append)
    plan_and_apply(project, engine, store, emit=in_prod.append)

    assert [audit_names(in_dev), audit_names(in_prod)] == [["forall"], []]


def test_rows_that_prod_writes_without_a_new_audit_are_asked_of_at_the_merge(
    tmp_path: Path, engine: SparkEngine
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    plan_and_apply(write_shop(tmp_path, **ALONE | {"total": TOTAL.format("")}), engine, store)
    project = write_shop(tmp_path, **ALONE | {"total": TOTAL.format(", audits (forall(criteria := (total = 7)))")})
    table = plan_and_apply(project, engine, store, "dev").plan.new.snapshots["shop.total"].table

    engine.fetch(f"INSERT INTO {table} VALUES (8)")
    with store.leases.hold(table_lease(table), "a run of prod") as lease:
        store.intervals.record(table, Interval(NOW, NOW + timedelta(days=1)), lease=lease)

    assert plan_and_apply(project, engine, store).promoted is None
