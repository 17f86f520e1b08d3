"""Edits of a model's schedule: what a plan computes, and what it leaves to the next run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mergeplan.planner.intervals import Cron, Timeline, build_timeline
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.build import Plan, build_run
from mergeplan.planner.plan.schedule import EPOCH, Loaded, Window
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, day, make_plan, model, project, promote

DUE = day("2026-01-10")  # of a daily model; of a weekly one, the Sunday before
SUNDAY = day("2026-01-04")


def daily(**fields: Any) -> Model:
    query = "SELECT id, d FROM raw.x WHERE d BETWEEN @start_date AND @end_date"
    return model("s.t", query, Kind.INCREMENTAL_BY_TIME_RANGE, time_column="d", start=day("2026-01-01"), **fields)


def plan_edit(old: Model, new: Model) -> tuple[Plan, Timeline]:
    """The plan for an edit of prod, and what the run after it computes."""
    prod, loaded = promote(project(old))
    plan = make_plan(project(new), base=prod, loaded=loaded)
    held = {**loaded.timelines, **{c.new.table: c.needed for c in plan.changes if c.new and c.needed}}
    run = build_run(plan.new, Loaded(held, frozenset(held)), Window(NOW))
    return plan, run.changes[0].missing if run.changes else ()


def test_after_an_end_is_removed_the_plan_fills_what_prod_showed_and_a_run_the_days_since() -> None:
    plan, due = plan_edit(daily(end=day("2026-01-03")), daily())

    assert plan.changes[0].needed == build_timeline(day("2026-01-01"), day("2026-01-03"))
    assert due == build_timeline(day("2026-01-03"), DUE)


def test_after_an_end_is_moved_to_a_past_day_the_plan_fills_all() -> None:
    plan, due = plan_edit(daily(end=day("2026-01-03")), daily(end=day("2026-01-05")))

    assert plan.changes[0].needed == build_timeline(day("2026-01-01"), day("2026-01-05"))
    assert due == ()


def test_a_cron_that_becomes_more_frequent_keeps_the_table_and_leaves_the_days_since_to_a_run() -> None:
    plan, due = plan_edit(daily(cron=Cron("@weekly")), daily())

    assert (plan.changes[0].rule, plan.changes[0].recomputed) == ("metadata-only", False)
    assert due == build_timeline(SUNDAY, DUE)


def test_readers_are_filled_no_further_than_the_end_of_a_model() -> None:
    read = "SELECT id, d FROM s.t WHERE d BETWEEN @start_date AND @end_date"
    models = project(daily(end=day("2026-01-03")), replace(daily(), name="s.r", sql=read, depends_on=("s.t",)))

    needed = {change.name: change.needed for change in make_plan(models).changes}

    assert needed["s.r"] == needed["s.t"] == build_timeline(day("2026-01-01"), day("2026-01-03"))


def test_days_of_a_table_that_a_coarser_cron_would_not_fill_yet_are_in_the_one_that_takes_its_place() -> None:
    sql = "SELECT id + 1 AS id, d FROM raw.x WHERE d BETWEEN @start_date AND @end_date"
    plan, due = plan_edit(daily(), replace(daily(cron=Cron("@weekly")), sql=sql))

    assert plan.changes[0].needed == build_timeline(day("2026-01-01"), DUE)
    assert due == ()


@pytest.mark.parametrize(("lookback", "first"), [(0, "2026-01-04"), (5, "2026-01-02")])
def test_a_shorter_lookback_holds_once_what_prod_looked_back_to_is_in_the_new_table(lookback: int, first: str) -> None:
    old, sql = daily(lookback=3), "SELECT id + 1 AS id, d FROM raw.x WHERE d BETWEEN @start_date AND @end_date"
    prod, loaded = promote(project(old))
    edited = project(replace(daily(lookback=lookback), sql=sql))
    new = make_plan(edited, base=prod, loaded=loaded).changes[0].new
    assert new
    held = {**loaded.timelines, new.table: build_timeline(day("2026-01-01"), day("2026-01-07"))}

    merge = make_plan(edited, base=prod, loaded=replace(loaded, timelines=held))

    assert merge.changes[0].missing == build_timeline(day(first), DUE)


def test_a_run_beside_prod_looks_back_as_far_as_prod_does() -> None:
    sql = "SELECT id + 1 AS id, d FROM raw.x WHERE d BETWEEN @start_date AND @end_date"
    prod, _ = promote(project(daily(lookback=3)))
    dev, loaded = promote(project(replace(daily(), sql=sql)), "dev")
    held = {table: build_timeline(day("2026-01-01"), day("2026-01-07")) for table in loaded.timelines}

    (due,) = build_run(dev, replace(loaded, timelines=held), Window(NOW), prod).changes

    assert (due.missing, due.lookback) == (build_timeline(day("2026-01-04"), DUE), 3)


def test_a_run_beside_prod_leaves_a_copy_of_a_history_to_the_plan_that_copies_it_again() -> None:
    old = model("s.h", "SELECT id FROM raw.x", Kind.INCREMENTAL_UNMANAGED, start=day("2026-01-01"))
    prod, loaded = promote(project(old))
    plan = make_plan(project(replace_settings(old, {"storage_format": "orc"})), Environment("dev"), prod, loaded)
    held = {
        **loaded.timelines,
        **{c.new.table: build_timeline(day("2026-01-01"), SUNDAY) for c in plan.changes if c.new},
    }

    assert [change.rule for change in plan.changes] == ["layout-changed"]
    assert build_run(plan.new, Loaded(held), Window(NOW), prod).changes == ()
    assert build_run(plan.new, Loaded(held), Window(NOW), Environment("prod")).changes != ()


def test_an_end_that_lies_ahead_leaves_the_unit_that_is_not_over_to_later_runs() -> None:
    models = project(daily(), model("s.all", "SELECT id FROM s.t"))
    ahead = Window(NOW, end=day("2026-01-20"))
    prod, loaded = promote(models)

    plan = make_plan(models, Environment("dev"), Environment("prod"), window=ahead)
    run = build_run(prod, loaded, ahead)

    assert [change.needed[-1].end for change in plan.changes] == [DUE, DUE]
    assert not run.changes


@pytest.mark.parametrize(("end", "count"), [("2026-01-10", 0), ("2026-01-11", 1), ("2026-01-20", 1)])
def test_a_run_with_an_end_computes_the_unit_that_is_not_over_where_partial_ones_are_allowed(
    end: str, count: int
) -> None:
    prod, loaded = promote(project(daily(allow_partials=True)))

    run = build_run(prod, loaded, Window(NOW, end=day(end)))

    today = build_timeline(day("2026-01-10"), day("2026-01-11"))
    assert [(change.needed[-1].end, change.missing) for change in run.changes] == [(DUE, today)] * count


def test_a_start_leaves_no_lookback_out_of_the_days_that_it_fills() -> None:
    """Late rows of earlier days come with it: recorded without them, no later plan or run would compute these."""
    read, layout = project(daily(lookback=1)), project(daily(lookback=1, storage_format="orc"))
    prod, loaded = promote(read)
    table = make_plan(layout, Environment("dev"), prod, loaded).changes[0].new
    assert table is not None
    filled = {name: build_timeline(day("2026-01-01"), day("2026-01-09")) for name in (table.table, *loaded.timelines)}
    late = Window(NOW, start=day("2026-01-09"))
    lookback = build_timeline(day("2026-01-08"), DUE)

    ran = build_run(prod, Loaded(filled), late)
    planned = make_plan(
        layout, Environment("dev"), prod, Loaded(loaded.timelines | {table.table: filled[table.table]}), window=late
    )

    assert [ran.changes[0].missing, planned.changes[0].missing] == [lookback, lookback]


@pytest.mark.parametrize(
    ("cron", "is_held_up"),
    [(Cron("0 3 * * *"), True), (Cron("@daily", "America/New_York"), True), (Cron("@weekly"), False)],
)
def test_a_reader_waits_for_a_day_that_a_table_gets_later_on(cron: Cron, is_held_up: bool) -> None:
    """Computed before, the day would stay empty; a table that runs more seldom than its readers holds none up."""
    read = "SELECT id, d FROM s.v WHERE d BETWEEN @start_date AND @end_date"
    reader = replace(daily(), name="s.r", sql=read, depends_on=("s.v",))
    view, whole = model("s.v", "SELECT id, d FROM s.t", Kind.VIEW), model("s.all", "SELECT id FROM s.t")
    prod, loaded = promote(project(daily(cron=cron), view, reader, whole))
    held = dict.fromkeys(loaded.timelines, build_timeline(EPOCH, day("2026-01-12")))

    early, late = (build_run(prod, Loaded(held), Window(day(f"2026-01-13 0{hour}:00"))) for hour in (1, 6))

    assert {change.name for change in early.changes} == (set() if is_held_up else {"s.all", "s.r"})
    assert "s.all" in {change.name for change in late.changes}
    assert {change.name: change.missing for change in late.changes}["s.r"] == build_timeline(
        day("2026-01-12"), day("2026-01-13")
    )


def test_readers_are_not_computed_past_the_days_that_a_start_leaves_out() -> None:
    """A rolling sum of a later day, computed without them, would never be computed again."""
    read = "SELECT id, d FROM s.t WHERE d BETWEEN @start_date AND @end_date"
    reader = replace(daily(), name="s.r", sql=read, depends_on=("s.t",))
    prod, loaded = promote(project(daily(), reader, model("s.all", "SELECT id FROM s.t")))
    held_time = build_timeline(EPOCH, day("2026-01-08"))

    run = build_run(prod, Loaded(dict.fromkeys(loaded.timelines, held_time)), Window(NOW, start=day("2026-01-09")))
    later = dict.fromkeys(loaded.timelines, build_timeline(day("2026-01-08"), day("2026-01-09")))
    preview = build_run(prod, Loaded(later), Window(NOW, start=day("2026-01-09")))

    assert [change.name for change in run.changes] == ["s.t"]
    assert {change.name for change in preview.changes} == {"s.t", "s.r", "s.all"}
