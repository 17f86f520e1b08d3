"""What a plan is said to cost, after a first plan has told what its tables cost, on a real Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.apply.backfill.estimate import forecast_costs
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.plan.schedule import Window
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import DAY, FIRST
from tests.planner.shop import FILES, NOW, make_plan, plan_and_apply, write_shop

LOUDER = FILES["models/daily.sql"].replace("price FROM", "price + 1 AS price FROM")


@pytest.fixture
def second(tmp_path: Path, engine: SparkEngine, store: StateStore) -> Plan:
    """Five days are in prod; three of another version are asked for in dev."""
    plan_and_apply(write_shop(tmp_path / "shop"), engine, store)
    changed = write_shop(tmp_path / "shop", daily=LOUDER)
    return make_plan(changed, store, "dev", Window(NOW, FIRST + 2 * DAY, FIRST + 5 * DAY))


@pytest.mark.prove
def test_a_second_version_costs_the_first_ones_share(second: Plan, store: StateStore) -> None:
    change = next(change for change in second.changes if change.name == "shop.daily")
    assert change.old
    first = store.costs.load([change.old.table])[change.old.table]

    costs = forecast_costs(second, store, None, NOW)

    assert (first.units, first.rows) == (5, 3)
    assert costs["shop.daily"].seconds == pytest.approx(first.seconds * 3 / 5)
    assert (costs["shop.daily"].rows, costs["shop.daily"].bytes) == (2, None)


@pytest.mark.prove
def test_bytes_are_told_where_what_is_read_stands(second: Plan, engine: SparkEngine, store: StateStore) -> None:
    before = engine.jobs()

    costs = forecast_costs(second, store, engine, NOW)

    assert costs["shop.daily"].bytes == engine.scan_bytes(f"SELECT * FROM {second.new.snapshots['shop.items'].table}")
    assert costs["shop.total"].bytes is None, "it reads what this plan is yet to fill"
    assert engine.jobs() == before


def test_a_first_plan_cannot_tell_but_for_the_seed(tmp_path: Path, engine: SparkEngine, store: StateStore) -> None:
    first = make_plan(write_shop(tmp_path / "shop"), store)

    costs = forecast_costs(first, store, engine, NOW)

    assert costs["shop.items"] == Estimate(0, None, None)
    assert costs["shop.daily"] == costs["shop.total"] == Estimate()
