from dataclasses import replace
from datetime import timedelta

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Interval, subtract_intervals
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model, Seed
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.build import Change, Plan, build_run
from mergeplan.planner.plan.category.override import end_of
from mergeplan.planner.plan.change import Category, ChangeKind
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, day, external, make_plan, model, project, promote

RAW = external("s.raw", "id x d")
DAILY = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}


def daily(extra: str = "") -> dict[str, Model]:
    return project(
        RAW,
        model("s.days", f"SELECT id, x, d{extra} FROM s.raw", **DAILY),
        model("s.total", "SELECT COUNT(*) AS n FROM s.days"),
    )


def change_named(plan: Plan, name: str) -> Change:
    return next(change for change in plan.changes if change.name == name)


def test_a_first_plan_needs_everything_up_to_the_last_beat() -> None:
    plan = make_plan(daily())

    assert change_named(plan, "s.days").missing == (Interval(day("2026-01-01"), day("2026-01-10")),)
    assert [view.name for view in plan.views.added] == ["s.days", "s.total"]


def test_a_plan_of_what_prod_already_shows_is_empty() -> None:
    prod, loaded = promote(daily())

    assert make_plan(daily(), base=prod, loaded=loaded).is_empty


def test_a_new_column_rebuilds_its_model_and_shares_the_child() -> None:
    prod, loaded = promote(daily())

    plan = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded)

    assert [change.name for change in plan.backfills] == ["s.days"]
    assert change_named(plan, "s.total").shares == "prod"
    assert sorted(view.name for view in plan.views.added) == ["s__dev.days", "s__dev.total"]


def test_what_was_built_in_dev_is_promoted_to_prod_without_computing_even_days_later() -> None:
    prod, loaded = promote(daily())
    dev = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded)
    built = Loaded(dict(loaded.timelines) | {c.new.table: c.needed for c in dev.backfills if c.new}, loaded.complete)

    plan = make_plan(daily(", 1 AS e"), base=prod, loaded=built, window=Window(NOW + timedelta(days=3)))

    assert plan.is_virtual
    assert plan.digest == dev.digest
    assert [view.name for view in plan.views.swapped] == ["s.days"]


def test_the_promise_differs_once_prod_has_moved() -> None:
    prod, loaded = promote(daily())
    moved, _ = promote(daily(", 2 AS other"))

    ours = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded)
    later = make_plan(daily(", 1 AS e"), base=moved, loaded=loaded)

    assert ours.digest != later.digest


def test_a_table_is_not_filled_past_what_its_parent_holds() -> None:
    prod, loaded = promote(daily())
    days = prod.snapshots["s.days"].table
    short = Loaded(dict(loaded.timelines) | {days: (Interval(day("2026-01-01"), day("2026-01-05")),)})
    added = daily() | project(model("s.copy", "SELECT id, d FROM s.days", **DAILY))

    plan = make_plan(added, Environment("dev"), prod, short)

    assert change_named(plan, "s.copy").missing == (Interval(day("2026-01-01"), day("2026-01-05")),)


def test_batches_already_loaded_are_not_missing() -> None:
    first = make_plan(daily())
    table = change_named(first, "s.days").new
    assert table is not None

    plan = make_plan(daily(), loaded=Loaded({table.table: (Interval(day("2026-01-01"), day("2026-01-04")),)}))

    assert change_named(plan, "s.days").missing == (Interval(day("2026-01-04"), day("2026-01-10")),)


def test_a_seed_is_loaded_once() -> None:

    seeds = project(model("s.seed", kind=Kind.SEED, columns="id", seed=Seed("seeds/s.csv", "d1", ("id",))))
    prod, loaded = promote(seeds)

    assert make_plan(seeds, base=prod, loaded=loaded, window=Window(NOW + timedelta(days=9))).is_virtual


def test_a_model_that_left_the_project_loses_its_view() -> None:
    prod, loaded = promote(daily())
    fewer = {name: m for name, m in daily().items() if name != "s.total"}

    assert [view.name for view in make_plan(fewer, base=prod, loaded=loaded).views.dropped] == ["s.total"]


def test_a_reader_of_a_model_that_left_is_a_blocker() -> None:
    prod, loaded = promote(daily())
    fewer = {name: m for name, m in daily().items() if name != "s.days"}

    plan = make_plan(fewer, base=prod, loaded=loaded)

    assert [blocker.message for blocker in plan.blockers] == [
        "`s.total` still reads `s.days`, which this change removes."
    ]


def test_a_model_that_left_and_is_still_read_is_removed_and_no_external_table() -> None:
    """Spark's catalog knows the view that prod still has: it is found there, and nobody declared it."""
    prod, loaded = promote(daily())
    view = replace(external("s.days", "id x d"), line=0)

    plan = make_plan(daily() | {"s.days": view}, base=prod, loaded=loaded)

    change = change_named(plan, "s.days")
    assert (change.change, change.category, change.new) == (ChangeKind.REMOVED, None, None)
    assert change.reason == "`s.days` is no longer in the project, and is still read."
    assert plan.blockers[0].message == "`s.total` still reads `s.days`, which this change removes."


def test_a_reason_names_some_of_many_columns_and_counts_the_others() -> None:
    prod, loaded = promote(daily())
    more = "".join(f", {number} AS c{number:02}" for number in range(30))

    change = change_named(make_plan(daily(more), base=prod, loaded=loaded), "s.days")

    assert "`c00`, `c01`" in change.reason
    assert "`c08` and 21 more" in change.reason
    assert len(change.columns.added) == 30


def test_a_word_holds_only_while_both_fingerprints_stay() -> None:

    prod, loaded = promote(daily())
    first = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded, categories={"s.days": Category.BREAKING})

    same = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded, words=first.overrides)
    other = make_plan(daily(", 2 AS e"), Environment("dev"), prod, loaded, words=first.overrides)

    assert same.overrides == first.overrides
    assert (other.overrides, other.unused_overrides) == ((), first.overrides)
    assert [end_of(override, other.changes) for override in other.unused_overrides] == ["edit"]


def test_an_override_that_a_merge_ended_is_not_said_to_be_ended_by_an_edit() -> None:
    prod, loaded = promote(daily())
    first = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded, categories={"s.days": Category.BREAKING})
    merged, held = promote(daily(", 3 AS f"))

    later = make_plan(daily(", 1 AS e"), Environment("dev"), merged, held, words=first.overrides)

    assert [end_of(override, later.changes) for override in later.unused_overrides] == ["base"]


def test_a_model_with_no_rows_of_its_own_needs_no_time() -> None:
    plan = make_plan(project(RAW, model("s.v", "SELECT id FROM s.raw", kind=Kind.VIEW)))

    assert change_named(plan, "s.v").missing == ()
    assert plan.is_virtual


def test_prod_cannot_be_planned_from_a_later_day_on() -> None:
    with pytest.raises(RequestError, match="prod must hold all its days"):
        make_plan(daily(), window=Window(NOW, start=day("2026-01-08")))


def test_a_window_narrows_the_days() -> None:
    plan = make_plan(daily(), Environment("dev"), window=Window(NOW, start=day("2026-01-08")))

    assert change_named(plan, "s.days").missing == (Interval(day("2026-01-08"), day("2026-01-10")),)


def test_a_table_made_of_some_days_only_is_a_preview_and_never_taken_for_the_whole_one() -> None:
    prod, loaded = promote(daily())
    edited = daily(", 1 AS e") | project(model("s.total", "SELECT COUNT(e) AS n FROM s.days"))
    short = make_plan(edited, Environment("dev"), prod, loaded, window=Window(NOW, start=day("2026-01-08")))
    built = Loaded(dict(loaded.timelines) | {c.new.table: c.missing for c in short.backfills if c.new})

    whole = make_plan(edited, base=prod, loaded=built)

    assert change_named(short, "s.total").preview
    assert not change_named(short, "s.days").preview
    assert change_named(whole, "s.days").missing == (Interval(day("2026-01-01"), day("2026-01-08")),)
    assert change_named(whole, "s.total").missing


def test_where_the_tables_of_some_days_and_of_all_drifted_the_next_ones_are_two_again() -> None:
    prod, loaded = promote(daily())
    edited = daily(", 1 AS e") | project(model("s.total", "SELECT COUNT(e) AS n FROM s.days"))

    def tables(known: Loaded) -> list[str]:
        some = make_plan(edited, Environment("dev"), prod, known, window=Window(NOW, start=day("2026-01-08")))
        return [
            snapshot.table
            for plan in (some, make_plan(edited, base=prod, loaded=known))
            if (snapshot := change_named(plan, "s.total").new)
        ]

    first = tables(loaded)
    then = tables(replace(loaded, drifted=frozenset(first)))
    third = tables(replace(loaded, drifted=frozenset((*first, *then))))

    assert len({*first, *then, *third}) == 6


def test_a_person_who_says_breaking_makes_no_whole_table_of_a_preview() -> None:
    prod, loaded = promote(daily())
    edited = daily(", 1 AS e") | project(model("s.total", "SELECT COUNT(e) AS n FROM s.days"))
    window, wanted = Window(NOW, start=day("2026-01-08")), {"s.total": Category.BREAKING}
    short = make_plan(edited, Environment("dev"), prod, loaded, window=window, categories=wanted)
    built = Loaded(dict(loaded.timelines) | {c.new.table: c.missing for c in short.backfills if c.new})

    whole = make_plan(edited, base=prod, loaded=built, words=short.overrides)

    assert change_named(short, "s.total").preview
    assert change_named(whole, "s.total").missing


def test_a_view_that_a_person_calls_breaking_is_another_one_over_another_table() -> None:
    def models(extra: str, more: str) -> dict[str, Model]:
        total = model("s.total", f"SELECT COUNT(*){more} AS n FROM s.days")
        return daily(extra) | project(total, model("s.shown", f"SELECT n{more} AS n FROM s.total", Kind.VIEW))

    prod, loaded = promote(models("", ""))
    edited, wanted = models(", 1 AS e", " + 1"), {"s.shown": Category.BREAKING}
    short = make_plan(
        edited, Environment("dev"), prod, loaded, window=Window(NOW, start=day("2026-01-08")), categories=wanted
    )

    whole = make_plan(edited, base=prod, loaded=loaded, words=short.overrides)

    assert short.new.snapshots["s.total"].table != whole.new.snapshots["s.total"].table
    assert short.new.snapshots["s.shown"].table != whole.new.snapshots["s.shown"].table


def test_changing_when_the_plan_is_made_within_a_day_keeps_its_id() -> None:
    later = Window(NOW + timedelta(hours=3))

    assert make_plan(daily()).id == make_plan(daily(), window=later).id
    assert make_plan(daily()).id != make_plan(daily(), target=replace(Environment("prod"), name="dev")).id


def test_a_run_leaves_prods_table_alone_where_it_would_read_other_tables() -> None:
    prod, loaded = promote(daily())
    plan = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded)
    filled = {c.new.table: c.needed for c in plan.changes if c.new and c.needed}
    both = Loaded({**loaded.timelines, **filled})

    run = build_run(plan.new, both, Window(day("2026-01-15")), prod)

    assert [change.name for change in run.changes] == ["s.days"]
    assert {change.name for change in build_run(prod, both, Window(day("2026-01-15")), prod).changes} >= {"s.total"}


def test_a_plan_that_only_shows_more_views_promotes() -> None:
    models = project(model("s.a", "SELECT 1 AS id"), model("s.b", "SELECT 2 AS id"))
    prod, loaded = promote(models)
    some = make_plan(models, Environment("dev"), prod, loaded).new
    dev = Environment("dev", some.snapshots, some.views, 1, "p1", NOW)

    again = make_plan(models, dev, prod, loaded)
    every = make_plan(models, dev, prod, loaded, include_unmodified=True)

    assert (again.promotes, again.is_empty) == (False, True)
    assert (every.promotes, every.is_empty, every.is_virtual) == (True, False, True)


def test_days_that_a_later_start_leaves_out_are_lost_and_those_of_a_request_are_not() -> None:
    prod, loaded = promote(daily())
    later = daily(", 1 AS e") | {
        "s.days": replace_settings(daily(", 1 AS e")["s.days"], {"start": day("2026-01-04")}),
    }
    window = Window(NOW, start=day("2026-01-08"))

    assert change_named(make_plan(later, base=prod, loaded=loaded), "s.days").lost == (
        Interval(day("2026-01-01"), day("2026-01-04")),
    )
    shown = make_plan(daily(", 1 AS e"), Environment("dev"), prod, loaded, window=window)
    assert change_named(shown, "s.days").lost == ()


@pytest.mark.parametrize("gone", [(1, 2), (4, 5), (1, 10)])
def test_prod_keeps_the_tables_over_one_that_lacks_days_until_it_is_whole(gone: tuple[int, int]) -> None:
    """An interrupted restatement leaves the gap. Readers are filled up to it, and prod showed them beyond it."""
    models = daily()
    edited = models | project(model("s.total", "SELECT COUNT(*) + 1 AS n FROM s.days"))
    prod, loaded = promote(models)
    days = prod.snapshots["s.days"].table
    hole = tuple(day(f"2026-01-{number:02}") for number in gone)
    lacking = Loaded({**loaded.timelines, days: subtract_intervals(loaded.timelines[days], (Interval(*hole),))})

    blocked = make_plan(edited, base=prod, loaded=lacking)

    assert ["`s.days` is not whole" in blocker.message for blocker in blocked.blockers] == [True]
    assert not make_plan(edited, Environment("dev"), prod, lacking).blockers
    assert not make_plan(edited, base=prod, loaded=loaded).blockers
