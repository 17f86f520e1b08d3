"""What a run computes: only what is chosen and ready, by the model's own clock and units."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mergeplan.planner.apply.backfill.auto_restatement import due_to_restate
from mergeplan.planner.intervals import Cron, Interval, Timeline, build_timeline, intersect_intervals
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.build import Plan, build_run
from mergeplan.planner.plan.forward_only import ForwardOnly
from mergeplan.planner.plan.schedule import EPOCH, Loaded, Window, contiguous_end
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, day, external, make_plan, model, project, promote

DAILY = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}
SHOP = project(
    external("s.raw", "id d"),
    model("s.days", "SELECT id, d FROM s.raw", **DAILY),
    model("s.total", "SELECT COUNT(*) AS n FROM s.days"),
    model("s.apart", "SELECT id FROM s.raw"),
)
LATER = day("2026-01-13")
HOLED = (Interval(day("2026-01-01"), day("2026-01-03")), Interval(day("2026-01-05"), day("2026-01-10")))


@pytest.mark.parametrize(
    ("first", "whole_up_to"),
    [("2026-01-01", "2026-01-03"), ("2026-01-03", "2026-01-03"), ("2026-01-04", ""), ("2026-01-06", "2026-01-10")],
)
def test_past_a_hole_nothing_counts_of_what_a_table_holds(first: str, whole_up_to: str) -> None:
    assert contiguous_end(HOLED, day(first)) == (day(whole_up_to) if whole_up_to else EPOCH)


def parse_properties(properties: str) -> Model:
    text = f"MODEL (name s.m, kind FULL, {properties});\nSELECT 1 AS x"
    parsed, _ = parse_model(text, "models/m.sql", Defaults(NOW))
    assert parsed is not None
    return parsed


def ran(window: Window | None = None, models: dict[str, Model] = SHOP, **asked: object) -> dict[str, Timeline]:
    """Model -> what a run of prod three days later computes."""
    prod, loaded = promote(models)
    plan: Plan = build_run(prod, loaded, window or Window(LATER), prod, **asked)  # type: ignore[arg-type]
    return {change.name: change.missing for change in plan.changes}


def test_only_what_is_chosen_runs_and_never_past_what_it_reads() -> None:
    assert ran(only={"s.total"}) == {}
    assert ran(only={"s.days", "s.total"}).keys() == {"s.days", "s.total"}
    assert ran(only={"s.apart"}).keys() == {"s.apart"}


def test_what_is_not_ready_waits_and_so_does_what_reads_it() -> None:
    until = (Interval(day("2026-01-01"), day("2026-01-12")),)

    intervals = ran(
        ready=lambda definition, time: intersect_intervals(time, until) if definition.name == "s.days" else time
    )

    assert intervals["s.days"] == (Interval(day("2026-01-10"), day("2026-01-12")),)
    assert intervals["s.total"][0].end == day("2026-01-12")
    assert intervals["s.apart"][0].end == day("2026-01-13")


def test_what_reads_a_table_that_is_not_ready_goes_no_further_than_it() -> None:
    prod, loaded = promote(SHOP)

    run = build_run(
        prod, loaded, Window(LATER), prod, ready=lambda definition, time: () if definition.name == "s.apart" else time
    )

    assert {change.name for change in run.changes} == {"s.days", "s.total"}
    assert run.late == {"s.apart": (Interval(EPOCH, day("2026-01-13")),)}


def test_a_unit_that_is_not_over_waits_for_its_signals_too() -> None:
    models = {**SHOP, "s.days": replace_settings(SHOP["s.days"], {"allow_partials": True})}
    prod, loaded = promote(models)
    whole = (Interval(EPOCH, day("2026-01-13")),)

    now = datetime(2026, 1, 13, 7, tzinfo=UTC)
    plan = build_run(prod, loaded, Window(now), prod, {"s.days"}, lambda _, time: intersect_intervals(time, whole))

    assert plan.changes[0].missing == (Interval(day("2026-01-10"), day("2026-01-13")),)
    assert plan.late == {"s.days": (Interval(day("2026-01-13"), day("2026-01-14")),)}


def test_a_start_leaves_older_days_missing() -> None:
    window = Window(LATER, start=day("2026-01-12"))

    assert ran(window)["s.days"] == (Interval(day("2026-01-12"), day("2026-01-13")),)


def test_part_of_a_unit_is_computed_and_not_needed() -> None:
    models = {**SHOP, "s.days": replace_settings(SHOP["s.days"], {"allow_partials": True})}
    prod, loaded = promote(models)

    plan = build_run(prod, loaded, Window(datetime(2026, 1, 13, 7, tzinfo=UTC)), prod, only={"s.days"})
    change = plan.changes[0]

    assert change.missing == (Interval(day("2026-01-10"), day("2026-01-14")),)
    assert change.needed[-1].end == day("2026-01-13")


def test_a_unit_that_just_began_or_lies_past_the_end_is_no_part_to_compute() -> None:
    partial = replace_settings(SHOP["s.days"], {"allow_partials": True})
    begun, ended = (
        {**SHOP, "s.days": partial},
        {**SHOP, "s.days": replace_settings(partial, {"end": day("2026-01-13")})},
    )
    whole = (Interval(day("2026-01-10"), day("2026-01-13")),)

    assert ran(Window(LATER), begun, only={"s.days"})["s.days"] == whole
    assert ran(Window(LATER.replace(hour=7)), ended, only={"s.days"})["s.days"] == whole
    assert ran(Window(LATER.replace(hour=7), end=LATER), begun, only={"s.days"})["s.days"] == whole


def test_a_table_without_days_is_computed_whole_for_part_of_a_unit() -> None:
    models = {**SHOP, "s.apart": replace_settings(SHOP["s.apart"], {"allow_partials": True})}

    intervals = ran(Window(NOW), models, only={"s.apart"})

    assert intervals["s.apart"] == (Interval(EPOCH, day("2026-01-11")),)


@pytest.mark.parametrize(
    ("properties", "due"),
    [
        ("cron '0 6 * * *', cron_tz 'America/New_York'", "2026-06-09"),
        ("cron_tz 'America/New_York', cron '0 5 * * *'", "2026-06-10"),
        ("cron '@daily', cron_tz UTC", "2026-06-10"),
        ("cron '@weekly', interval_unit day", "2026-06-07"),
    ],
)
def test_a_model_is_due_by_the_clock_of_its_zone(properties: str, due: str) -> None:
    assert parse_properties(properties).cron.due(datetime(2026, 6, 10, 9, 30, tzinfo=UTC)) == day(due)


def test_a_shorter_unit_than_the_crons_own_is_what_time_is_counted_in() -> None:
    cron = parse_properties("cron '@daily', interval_unit HOUR").cron

    assert cron.unit == "hour"
    assert len(list(cron.cuts(Interval(day("2026-01-01"), day("2026-01-02"))))) == 24


def test_a_model_restates_itself_when_its_cron_has_struck_since() -> None:
    weekly = {**SHOP, "s.days": replace_settings(SHOP["s.days"], {"auto_restatement_cron": Cron("@weekly")})}
    shown = promote(weekly)[0].snapshots

    assert due_to_restate(shown, {"s.days": day("2026-01-10")}, LATER) == ("s.days",)
    assert due_to_restate(shown, {"s.days": day("2026-01-11")}, LATER) == ()
    assert due_to_restate(shown, {}, LATER) == ()


def test_what_prod_showed_is_not_filled_from_a_preview_once_prod_has_moved_on() -> None:
    edited = SHOP | project(model("s.days", "SELECT id, d, 1 AS n FROM s.raw", **DAILY))
    prod, loaded = promote(SHOP)
    dev = make_plan(edited, Environment("dev"), prod, loaded, forward=ForwardOnly(every=True)).new
    moved = promote(SHOP | project(model("s.total", "SELECT COUNT(*) + 1 AS n FROM s.days")))[0]
    held = Loaded(
        {**loaded.timelines, dev.snapshots["s.days"].table: build_timeline(day("2026-01-09"), day("2026-01-10"))}
    )

    run = build_run(dev, held, Window(LATER), moved)

    tables = [environment.snapshots["s.total"].table for environment in (dev, prod, moved)]
    assert tables[0] == tables[1] != tables[2]
    assert {change.name for change in run.changes} == {"s.days", "s.apart"}


def test_a_table_of_prod_that_waits_for_a_signal_is_left_to_prods_own_run() -> None:
    """The code of a signal is that of the folder, where a pull request may edit it."""
    models = SHOP | {"s.days": replace_settings(SHOP["s.days"], {"signals": (SignalCall("landed"),)})}
    prod, loaded = promote(models)
    dev = make_plan(models | project(model("s.apart", "SELECT 1 AS id")), Environment("dev"), prod, loaded).new

    runs = [build_run(environment, loaded, Window(LATER), prod) for environment in (prod, dev)]

    assert ["s.days" in {change.name for change in run.changes} for run in runs] == [True, False]


@pytest.mark.parametrize("setting", [{"audits": (AuditCall("not_null", (("columns", "(id)"),)),)}, {"lookback": 2}])
def test_a_table_of_prod_is_not_filled_by_a_model_that_is_edited(setting: dict[str, Any]) -> None:
    """Its rows would be in prod without prod's own audits, before anybody has merged the edit."""
    prod, loaded = promote(SHOP | {"s.days": replace_settings(SHOP["s.days"], setting)})
    dev = make_plan(SHOP, Environment("dev"), prod, loaded).new

    run = build_run(dev, loaded, Window(LATER), prod)

    assert dev.snapshots["s.days"].table == prod.snapshots["s.days"].table
    assert {change.name for change in run.changes} == {"s.apart"}
