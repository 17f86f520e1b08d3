"""Restatements in a copy: rows of an unedited model are computed again in a new table, which a merge promotes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mergeplan.planner.intervals import build_timeline, subtract_intervals
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Category, Days
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, day, external, make_plan, model, project, promote

DAILY = model(
    "s.daily", "SELECT id, at FROM s.raw WHERE at BETWEEN @start_ts AND @end_ts", Kind.INCREMENTAL_BY_TIME_RANGE,
    time_column="at", start=day("2026-01-01"),
)  # fmt: skip
TOTAL = model("s.total", "SELECT count(*) AS n FROM s.daily")
RAW = external("s.raw", "id at")
DAYS = Days(day("2026-01-02"), day("2026-01-04"))
ASKED_AT = datetime(2026, 1, 10, 13, tzinfo=UTC)
PR = Environment("pr_1")


def restate(models: dict[str, Model], days: Days = DAYS, name: str = "s.daily", **request: Any) -> Plan:
    """The plan of a pull request over prod with these models, which asks for days of one."""
    prod, loaded = promote(models)
    options = {"restated": {name: days}, "restated_at": ASKED_AT, "who": "ann"}
    return make_plan(models, PR, prod, loaded, **(options | request))


def test_the_days_are_computed_in_a_new_table_and_the_others_copied() -> None:
    plan = restate(project(RAW, DAILY, TOTAL))
    daily, total = plan.changes

    assert (daily.rule, daily.category, daily.recomputed) == ("restated", Category.BREAKING, True)
    assert daily.reason == "@ann restates its rows from 2026-01-02 00:00 up to 2026-01-04 00:00."
    assert daily.new and daily.old and daily.new.table != daily.old.table
    assert subtract_intervals(daily.missing, daily.copies) == build_timeline(DAYS.start or NOW, DAYS.end or NOW)
    assert plan.relies[daily.old.table]  # a restatement of prod meanwhile ends the plan
    assert (total.category, total.copies) == (Category.INDIRECT_BREAKING, ())


@pytest.mark.parametrize("kind", [Kind.FULL, Kind.INCREMENTAL_BY_UNIQUE_KEY])
def test_a_table_that_is_computed_as_a_whole_is_so_here(kind: Kind) -> None:
    by_key = {"unique_key": ("id",)} if kind is Kind.INCREMENTAL_BY_UNIQUE_KEY else {}
    whole = model("s.whole", "SELECT id FROM s.raw", kind, start=day("2026-01-01"), **by_key)
    (change,) = restate(project(RAW, whole), name="s.whole").changes

    assert (change.copies, change.missing == change.needed != ()) == ((), True)


def test_the_same_request_gives_the_same_table_and_another_one_another() -> None:
    models = project(RAW, DAILY)
    tables = [restate(models).changes[0].new, restate(models).changes[0].new]
    later = restate(models, restated_at=NOW).changes[0].new
    (kept,) = restate(models).overrides
    prod, loaded = promote(models)
    again = make_plan(models, Environment("pr_2"), prod, loaded, words=(kept,)).changes[0].new

    assert tables[0] and later and again and tables[0] == tables[1]
    assert tables[0].table == again.table != later.table


def test_a_request_ends_when_prod_shows_another_table_or_the_model_is_edited() -> None:
    models = project(RAW, DAILY)
    (kept,) = restate(models).overrides
    prod, loaded = promote(models)
    edited = models | {"s.daily": replace(DAILY, sql="SELECT id + 1 AS id, at FROM s.raw")}
    moved = make_plan(edited, PR, prod, loaded, words=(kept,))
    other, filled = promote(edited)
    elsewhere = make_plan(edited, PR, other, filled, words=(kept,))

    assert [change.rule == "restated" for change in (*moved.changes, *elsewhere.changes)] == [False]
    assert moved.unused_overrides == elsewhere.unused_overrides == (kept,)


def test_after_the_merge_the_table_is_as_before_for_everybody() -> None:
    models = project(RAW, DAILY, TOTAL)
    plan = restate(models)
    merged = Environment("prod", plan.new.snapshots, plan.new.views, 2, plan.id, NOW)
    _, loaded = promote(models)

    environment = replace(PR, snapshots=plan.new.snapshots, revision=1)
    later = make_plan(models, environment, merged, loaded, words=plan.overrides)
    assert (later.changes, later.unused_overrides) == ((), ())


def test_a_table_that_a_restatement_made_is_restated_like_any_other() -> None:
    """It is not exchanged for the table before it, whose rows are the old ones."""
    models = project(RAW, DAILY, TOTAL)
    first = restate(models)
    merged = Environment("prod", first.new.snapshots, first.new.views, 2, first.id, NOW)
    filled = {change.new.table: change.needed for change in first.changes if change.new}
    loaded = Loaded({**promote(models)[1].timelines, **filled}, frozenset(filled))

    daily = make_plan(models, PR, merged, loaded, restated={"s.daily": DAYS}, restated_at=NOW).changes[0]

    assert daily.new and daily.old and daily.rule == "restated"
    assert daily.new.table not in loaded.timelines
    assert subtract_intervals(daily.missing, daily.copies) == build_timeline(DAYS.start or NOW, DAYS.end or NOW)


LATER = {
    "a column that is not read": external("s.raw", "id at more"),
    "a text that means the same": replace(DAILY, sql=f"{DAILY.sql} AND 1 = 1"),
}


@pytest.mark.parametrize("later", LATER)
def test_a_later_change_without_effect_keeps_the_restated_table_and_its_readers(later: str) -> None:
    view = model("s.v", "SELECT * FROM s.raw", Kind.VIEW)
    models = project(RAW, view, replace(DAILY, sql=DAILY.sql.replace("s.raw", "s.v"), depends_on=("s.v",)), TOTAL)
    first = restate(models)
    merged = Environment("prod", first.new.snapshots, first.new.views, 2, first.id, NOW)
    edited = replace(LATER[later], sql=LATER[later].sql.replace("s.raw", "s.v"))

    plan = make_plan(models | {edited.name: replace(edited, depends_on=models[edited.name].depends_on)}, merged, merged)

    assert plan.changes
    assert [plan.new.snapshots[name].version for name in ("s.daily", "s.total")] == [
        merged.snapshots[name].version for name in ("s.daily", "s.total")
    ]


REFUSED = {
    "its table holds rows that its query no longer returns": model(
        "s.log", "SELECT id FROM s.raw", Kind.INCREMENTAL_UNMANAGED, start=day("2026-01-01")
    ),
    "its `disable_restatement` is true": replace_settings(DAILY, {"disable_restatement": True}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_restated_in_a_copy_is_said(reason: str) -> None:
    refused = REFUSED[reason]
    plan = restate(project(RAW, refused), name=refused.name)

    assert [warning.message.partition(": ")[2].startswith(f"{reason}.") for warning in plan.warnings] == [True]
    assert plan.changes == ()


def test_what_is_recomputed_anyway_is_not_copied() -> None:
    """The days outside of those that are asked for would be rows of the old query."""
    models = project(RAW, DAILY)
    prod, loaded = promote(models)
    edited = models | {"s.daily": replace(DAILY, sql=DAILY.sql.replace("id,", "id + 1 AS id,"))}
    plan = make_plan(edited, PR, prod, loaded, restated={"s.daily": DAYS})
    (change,) = plan.changes
    assert change.new
    built = Loaded({**loaded.timelines, change.new.table: change.needed}, loaded.complete | {change.new.table})
    again = make_plan(edited, PR, prod, built, restated={"s.daily": DAYS})

    assert (change.rule == "restated", change.copies, plan.warnings) == (False, (), ())
    assert "it has a new table here anyway" in again.warnings[0].message  # and its rows may be old


def test_a_reader_that_is_selected_too_follows_without_a_warning() -> None:
    models = project(RAW, DAILY, TOTAL)
    prod, loaded = promote(models)
    plan = make_plan(models, PR, prod, loaded, restated={"s.daily": DAYS, "s.total": DAYS})

    assert [change.rule == "restated" for change in plan.changes] == [True, False]
    assert plan.warnings == ()
