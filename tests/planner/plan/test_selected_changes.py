"""What a request asks for besides the project: only some changes, only some tables, nothing computed, no gaps."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Cron, Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.build import Change, Plan
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.plan.selected_changes import find_unselected, select_models
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, day, external, make_plan, model, project, promote

DAILY = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}
SHOP = project(
    external("s.raw", "id x d"),
    model("s.days", "SELECT id, x, d FROM s.raw", **DAILY),
    model("s.total", "SELECT COUNT(x) AS n FROM s.days"),
    model("s.apart", "SELECT 1 AS one"),
)
EARLY = day("2026-01-05")
HOLED = (Interval(day("2026-01-01"), day("2026-01-04")), Interval(day("2026-01-06"), day("2026-01-10")))
EDITED = SHOP | project(
    model("s.days", "SELECT id, x || '!' AS x, d FROM s.raw", **DAILY),
    model("s.apart", "SELECT 2 AS one"),
    model("s.new", "SELECT one FROM s.apart"),
)


def changes_by_name(plan: Plan) -> dict[str, Change]:
    return {change.name: change for change in plan.changes}


def plan_chosen(*selectors: str, edited: dict[str, Model] = EDITED) -> Plan:
    prod, loaded = promote(SHOP)
    return make_plan(select_models(edited, prod, selectors), Environment("dev"), prod, loaded)


def test_only_the_chosen_changes_count() -> None:
    assert changes_by_name(plan_chosen("s.days")).keys() == {"s.days", "s.total"}
    assert changes_by_name(plan_chosen("s.apart+")).keys() == {"s.apart", "s.new"}
    assert changes_by_name(plan_chosen("^s.days")).keys() == {"s.apart", "s.new"}


def test_an_external_table_that_was_not_chosen_is_declared_as_before() -> None:
    wider = EDITED | project(external("s.raw", "id x d more"), model("s.star", "SELECT * FROM s.raw"))
    prod, loaded = promote(SHOP | project(model("s.star", "SELECT * FROM s.raw")))

    def names_computed(*selectors: str) -> set[str]:
        plan = make_plan(select_models(wider, prod, selectors), Environment("dev"), prod, loaded)
        return {change.name for change in plan.backfills}

    assert names_computed("s.apart") == {"s.apart"}
    assert names_computed("s.apart", "s.raw") == {"s.apart", "s.star"}


def test_a_chosen_model_may_read_a_table_that_no_model_makes() -> None:
    more = EDITED | project(model("s.newer", "SELECT 1 AS one FROM other.undeclared"))

    assert changes_by_name(plan_chosen("s.newer", edited=more)).keys() == {"s.newer"}


def test_a_model_that_is_gone_goes_only_when_it_is_chosen() -> None:
    fewer = {name: definition for name, definition in SHOP.items() if name != "s.apart"}

    assert [view.name for view in plan_chosen("s.days", edited=fewer).views.dropped] == []
    assert changes_by_name(plan_chosen("s.apart", edited=fewer))["s.apart"].rule == "removed"


def test_a_chosen_model_that_reads_one_that_is_nowhere_is_refused() -> None:
    more = EDITED | project(model("s.newer", "SELECT one FROM s.new"))

    with pytest.raises(RequestError, match=r"`s\.newer` reads `s\.new`, which is neither selected nor in `prod`"):
        plan_chosen("s.newer", edited=more)


def test_only_the_asked_for_tables_and_what_they_read_are_computed() -> None:
    prod, loaded = promote(SHOP)

    plan = make_plan(EDITED, Environment("dev"), prod, loaded, backfill=frozenset({"s.new"}))

    assert {change.name for change in plan.backfills} == {"s.apart", "s.new"}
    assert changes_by_name(plan)["s.days"].needed == ()
    with pytest.raises(RequestError, match="prod must hold all its rows"):
        make_plan(EDITED, base=prod, loaded=loaded, backfill=frozenset({"s.new"}))


def test_a_table_that_is_left_empty_is_never_taken_for_the_whole_one() -> None:
    prod, loaded = promote(SHOP)
    plan = make_plan(EDITED, Environment("dev"), prod, loaded, empty_backfill=True)
    recorded = {change.new.table: change.recorded for change in plan.changes if change.new and change.recorded}
    there = Loaded({**loaded.timelines, **recorded}, loaded.complete | recorded.keys())

    whole = make_plan(EDITED, base=prod, loaded=there)
    again = make_plan(EDITED, Environment("dev"), prod, there, empty_backfill=True)

    assert plan.is_virtual
    assert {name for name, change in changes_by_name(plan).items() if change.recorded} == {
        "s.days",
        "s.total",
        "s.apart",
        "s.new",
    }
    assert {change.name for change in whole.backfills} == {"s.days", "s.total", "s.apart", "s.new"}
    assert again.new.snapshots == plan.new.snapshots


def test_what_is_missing_of_a_table_that_is_shown_elsewhere_is_computed_and_not_said_to_be_there() -> None:
    prod, loaded = promote(SHOP)
    more = SHOP | project(model("s.later", "SELECT id, d FROM s.days", **DAILY))
    other = make_plan(more, Environment("other"), prod, loaded)
    later = changes_by_name(other)["s.later"].new
    assert later
    there = replace(
        loaded, timelines={**loaded.timelines, later.table: HOLED}, complete=loaded.complete | {later.table}
    )

    plan = make_plan(more, Environment("dev"), prod, there, empty_backfill=True)

    change = changes_by_name(plan)["s.later"]
    assert change.new and change.new.table == later.table
    assert (change.missing, change.recorded) == ((Interval(day("2026-01-04"), day("2026-01-06")),), ())


def test_what_does_not_feel_the_edit_keeps_its_rows_though_what_it_reads_is_left_empty() -> None:
    prod, loaded = promote(SHOP)
    more = SHOP | project(model("s.days", "SELECT id, x, d, 1 AS y FROM s.raw", **DAILY))

    plan = make_plan(more, prod, prod, loaded, empty_backfill=True)

    assert {name for name, change in changes_by_name(plan).items() if change.recorded} == {"s.days"}
    assert changes_by_name(plan)["s.total"].shares == "prod"
    assert plan.new.snapshots["s.total"].forced


def test_a_plan_of_prod_warns_of_what_the_next_run_computes_from_a_table_that_is_left_empty() -> None:
    readers = project(
        model("s.shown", "SELECT n FROM s.total", Kind.VIEW),
        model("s.kept", "SELECT id, d FROM s.days", **DAILY),
        model("s.late", "SELECT id, d FROM s.days", **DAILY, lookback=1),
    )
    prod, loaded = promote(SHOP | readers)
    more = SHOP | readers | project(model("s.days", "SELECT id, x, d, 1 AS y FROM s.raw", **DAILY))

    plan = make_plan(more, prod, prod, loaded, empty_backfill=True)

    assert [warning.message for warning in plan.warnings] == [
        "`--empty-backfill` leaves tables empty from which `s.late`, `s.total`, `s.shown` are computed: they lose the "
        "rows that they show now, by the next run at the latest."
    ]
    assert make_plan(more, prod, prod, loaded).warnings == ()
    assert make_plan(more, Environment("dev"), prod, loaded, empty_backfill=True).warnings == ()


def test_a_table_that_was_left_empty_stays_what_it_is_until_its_query_changes() -> None:
    prod, loaded = promote(SHOP)
    plan = make_plan(EDITED, prod, prod, loaded, empty_backfill=True)
    recorded = {change.new.table: change.recorded for change in plan.changes if change.new and change.recorded}
    shown = Environment("prod", plan.new.snapshots, plan.new.views, 2, plan.id, NOW)
    there = Loaded({**loaded.timelines, **recorded}, frozenset(recorded))
    described = EDITED | project(replace_settings(EDITED["s.apart"], {"description": "one"}))

    assert make_plan(EDITED, base=shown, loaded=there).is_empty
    assert make_plan(described, base=shown, loaded=there).is_virtual
    assert {change.name for change in make_plan(SHOP, base=shown, loaded=there).backfills} == set()


def test_a_gap_is_refused_when_none_is_wanted() -> None:
    prod, loaded = promote(SHOP)
    window = Window(NOW, end=day("2026-01-05"))

    plan = make_plan(EDITED, Environment("dev"), prod, loaded, window=window, no_gaps=True)

    assert [blocker.message for blocker in plan.blockers] == [
        "`s.days` would lack 2026-01-05 - 2026-01-09, which `prod` shows now."
    ]
    assert make_plan(EDITED, Environment("dev"), prod, loaded, no_gaps=True).blockers == ()
    assert make_plan(EDITED, Environment("dev"), prod, loaded, window=window).blockers == ()


@pytest.mark.parametrize(
    ("window", "as_of", "skips", "lost"),
    [
        (Window(NOW, end=day("2026-01-05")), None, False, "2026-01-05 - 2026-01-09, which prod shows now. Leave out"),
        (Window(EARLY), EARLY, False, "2026-01-05 - 2026-01-09, which prod shows now. Leave out"),
        (Window(NOW), None, True, "2026-01-01 - 2026-01-09, which prod shows now. Leave out `--skip-backfill`."),
    ],
)
def test_prod_keeps_the_days_that_it_shows(window: Window, as_of: datetime | None, skips: bool, lost: str) -> None:
    prod, loaded = promote(SHOP)

    blockers = make_plan(EDITED, prod, prod, loaded, window=window, as_of=as_of, skip_backfill=skips).blockers

    messages = [blocker.message for blocker in blockers]
    assert [message for message in messages if message.startswith(f"`s.days` would lack {lost}")]
    assert make_plan(SHOP, prod, prod, loaded, window=window, as_of=as_of, skip_backfill=skips).blockers == ()


def test_a_plan_that_began_before_prod_was_filled_is_not_blocked() -> None:
    """The run fills the new table's last days, too."""
    prod, loaded = promote(SHOP)

    assert make_plan(EDITED, prod, prod, loaded, window=Window(EARLY)).blockers == ()


def test_an_end_that_costs_no_day_is_allowed_in_prod() -> None:
    prod, loaded = promote(SHOP)

    assert make_plan(EDITED, prod, prod, loaded, window=Window(NOW, end=day("2026-01-10"))).blockers == ()


def test_so_many_units_are_computed_at_least() -> None:
    prod, loaded = promote(SHOP)
    window = Window(NOW, start=day("2026-01-09"), min_intervals=3)

    plan = make_plan(EDITED, Environment("dev"), prod, loaded, window=window)

    assert changes_by_name(plan)["s.days"].missing == (Interval(day("2026-01-07"), day("2026-01-10")),)


def test_unmodified_models_are_shown_too_when_asked_for() -> None:
    prod, loaded = promote(SHOP)

    plan = make_plan(EDITED, Environment("dev"), prod, loaded, include_unmodified=True)

    assert plan.new.views == {"s.days", "s.total", "s.apart", "s.new"}
    assert make_plan(SHOP, Environment("dev"), prod, loaded).new.views == frozenset()


def test_the_difference_can_be_told_of_the_queries_that_run() -> None:
    prod, loaded = promote(SHOP)

    plan = make_plan(EDITED, Environment("dev"), prod, loaded, diff_rendered=True)

    assert "-  1 AS one\n+  2 AS one" in changes_by_name(plan)["s.apart"].diff
    assert changes_by_name(plan)["s.total"].diff == ""


def test_without_the_crons_all_whole_units_are_due() -> None:
    weekly = project(replace_settings(SHOP["s.apart"], {"cron": Cron("@weekly")}))
    window = Window(NOW + timedelta(days=2))

    assert make_plan(weekly, window=window).changes[0].missing[0].end == day("2026-01-11")
    late = replace(window, ignore_cron=True)
    assert make_plan(weekly, window=late).changes[0].missing[0].end == day("2026-01-12")


def test_changed_models_that_were_not_chosen_are_named() -> None:
    prod, _ = promote(SHOP)
    removed = {name: model for name, model in EDITED.items() if name != "s.total"}

    def unselected(*selectors: str, edited: dict[str, Model] = EDITED) -> tuple[str, ...]:
        return find_unselected(edited, select_models(edited, prod, selectors))

    assert unselected("s.days") == ("s.apart", "s.new")
    assert unselected("s.apart+") == ("s.days",)
    assert unselected("s.days", edited=removed) == ("s.apart", "s.new", "s.total")
    assert unselected("*") == ()
