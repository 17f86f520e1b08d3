"""What a table would cost is judged by its own batches, else by those of the version it replaces."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mergeplan.planner.errors import TooCostly
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.costs import Cost, CostLimit, Estimate, TableHistory, estimate_cost, units
from tests.planner.builders import days
from tests.planner.building import change_of, day, model, project

BEFORE = Cost(units=6, rows=600, seconds=12)


def daily(sql: str = "SELECT id, day FROM raw.orders", **fields: Any) -> Model:
    settings: dict[str, Any] = {
        "kind": Kind.INCREMENTAL_BY_TIME_RANGE,
        "time_column": "day",
        "start": day("2026-01-01"),
        **fields,
    }
    return model("shop.daily", sql, **settings)


def changed_daily(after: Model, before: Model | None = None) -> Change:
    return change_of(project(before or daily()), project(after))["shop.daily"]


def test_a_new_version_costs_as_much_per_day_as_the_one_it_replaces() -> None:
    change = changed_daily(daily("SELECT id + 1 AS id, day FROM raw.orders"))
    assert change.old and change.old.table != (change.new and change.new.table)

    assert change.missing == (days(1, 9),)
    assert estimate_cost(change, {change.old.table: BEFORE}, {}) == Estimate(None, 900, 18)


def test_its_own_batches_count_before_the_old_versions() -> None:
    change = changed_daily(daily("SELECT id + 1 AS id, day FROM raw.orders"))
    assert change.old and change.new

    costs = {change.old.table: BEFORE, change.new.table: Cost(3, 3, 1)}

    assert estimate_cost(change, costs, {"shop.daily": 7}) == Estimate(7, 9, 3)


def test_a_full_refresh_costs_what_the_last_one_did() -> None:
    change = changed_daily(model("shop.daily", "SELECT 2 AS id"), model("shop.daily", "SELECT 1 AS id"))
    assert change.old

    assert estimate_cost(change, {change.old.table: Cost(1, 50, 2.5)}, {}) == Estimate(None, 50, 2.5)


@pytest.mark.parametrize("before", [daily(cron=Cron("@hourly")), model("shop.daily", "SELECT id, day FROM raw.orders")])
def test_a_version_that_was_cut_otherwise_tells_nothing(before: Model) -> None:
    change = changed_daily(daily("SELECT id + 1 AS id, day FROM raw.orders"), before)
    assert change.old

    assert estimate_cost(change, {change.old.table: BEFORE}, {}) == Estimate()


def test_what_was_never_computed_is_not_known() -> None:
    change = changed_daily(daily("SELECT id + 1 AS id, day FROM raw.orders"))

    assert estimate_cost(change, {}, {"shop.daily": None}) == Estimate(None, None, None)


def test_time_is_counted_in_units_of_the_cron() -> None:
    three_days = (days(1, 1), days(3, 4))

    assert units(daily(), three_days) == 3
    assert units(daily(cron=Cron("@hourly")), three_days) == timedelta(days=3) // timedelta(hours=1)
    assert units(model("shop.total", "SELECT 1 AS id"), three_days) == 1


def test_a_limit_refuses_what_is_known_to_be_more_and_counts_nothing_that_is_not_known() -> None:
    known, unknown = Estimate(600, 10, 5.0), Estimate(None, None, None)

    CostLimit().check([known, known])
    CostLimit(1200, 10.0).check([known, unknown, known])
    with pytest.raises(TooCostly, match=r"read at least 1,200 bytes, and 1,199 are allowed"):
        CostLimit(1199).check([known, unknown, known])
    with pytest.raises(TooCostly, match=r"take about 10 seconds of batches, and 9 are allowed"):
        CostLimit(seconds=9).check([known, known])


@pytest.mark.parametrize(
    ("fields", "covered", "count", "rows"),
    [
        ({"kind": Kind.FULL, "time_column": ""}, 1, 1, 50),
        ({}, 6, 3, 50),
        ({}, 7, 3, None),  # a day was computed again in another batch
        ({"kind": Kind.INCREMENTAL_BY_UNIQUE_KEY, "time_column": "", "unique_key": ("id",)}, 6, 3, None),
    ],
)
def test_the_rows_of_a_table_are_known_where_its_batches_add_up(
    fields: dict[str, Any], covered: int, count: int, rows: int | None
) -> None:
    history = TableHistory(Cost(covered, 50, 1), count, day("2026-01-09"), ())

    assert history.count_rows(daily(**fields), (days(1, 6),)) == rows
