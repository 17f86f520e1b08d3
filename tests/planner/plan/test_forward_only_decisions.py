"""Which changes are forward-only, what that does to those that read them, and what a plan promises of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Interval, subtract_intervals
from mergeplan.planner.model.checks import AuditCall, Checks
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.plan.build import Plan, build_run
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.plan.forward_only import ForwardOnly, is_wider, merge_columns
from mergeplan.planner.plan.schedule import Window
from mergeplan.planner.plan.stages import build_stages
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, external, make_plan, model, project, promote

RANGED = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "day", "start": datetime(2026, 1, 1, tzinfo=UTC)}
RAW = external("raw.t", "id day price")
FORWARD = ForwardOnly(every=True)


def daily(columns: str = "id, day, price", **fields: object) -> Model:
    sql = f"SELECT {columns} FROM raw.t WHERE day BETWEEN @start_ds AND @end_ds"
    return model("s.daily", sql, **{**RANGED, **fields})  # type: ignore[arg-type]


def plan_of(
    before: tuple[Model, ...],
    after: tuple[Model, ...],
    forward: ForwardOnly = FORWARD,
    name: str = "prod",
    **asked: object,
) -> Plan:
    prod, loaded = promote(project(RAW, *before))
    target = prod if name == "prod" else Environment(name)
    return make_plan(project(RAW, *after), target, prod, loaded, forward=forward, **asked)


def changes(plan: Plan) -> dict[str, Change]:
    return {change.name: change for change in plan.changes}


TOTAL = model("s.total", "SELECT SUM(price) AS total FROM s.daily")
COUNT = model("s.count", "SELECT COUNT(*) AS n FROM s.daily")
LOADED = (Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 10, tzinfo=UTC)),)
DOUBLED = daily("id, day, price * 2 AS price")


def test_a_forward_only_plan_keeps_the_rows_of_what_was_edited_and_of_what_reads_it() -> None:
    by_name = changes(plan_of((daily(), TOTAL, COUNT), (DOUBLED, TOTAL, COUNT)))

    assert {name: (str(c.category), c.rule) for name, c in by_name.items()} == {
        "s.daily": ("forward_only", "forward-only-plan"),
        "s.total": ("forward_only", "reads-forward-only"),
        "s.count": ("indirect_non_breaking", "reads-nothing-changed"),
    }
    assert not any(change.missing or change.recomputed for change in by_name.values())
    assert by_name["s.daily"].reason == (
        "The plan is forward-only: existing rows stay. Alters `price`; the rows stay the same ones."
    )


def test_what_another_change_touches_too_is_computed() -> None:
    other = model("s.other", "SELECT 1 AS one")
    reader = model("s.reader", "SELECT SUM(price) + MAX(one) AS x FROM s.daily CROSS JOIN s.other")
    kept = daily(forward_only=True)
    by_name = changes(
        plan_of(
            (kept, other, reader),
            (daily("id, day, price * 2 AS price", forward_only=True), model("s.other", "SELECT 2 AS one"), reader),
            ForwardOnly(),
        )
    )

    assert by_name["s.daily"].rule == "forward-only-model"
    assert by_name["s.reader"].category is Category.INDIRECT_BREAKING
    assert by_name["s.reader"].missing


@pytest.mark.parametrize("edit", [{"kind": Kind.FULL}, {"time_column": "id"}, {"storage_format": "orc"}], ids=str)
def test_a_change_that_cannot_go_on_with_the_rows_is_planned_as_usual(edit: dict[str, object]) -> None:
    change = changes(plan_of((daily(),), (daily("id, day, price * 2 AS price", **edit),)))["s.daily"]

    assert change.category is Category.BREAKING
    assert change.missing


def test_a_person_says_so_of_one_model_and_outweighs_the_plan() -> None:
    said = {"s.daily": Category.FORWARD_ONLY}
    change = changes(plan_of((daily(),), (DOUBLED,), ForwardOnly(), categories=said))["s.daily"]
    assert (change.category, change.rule, change.missing) == (Category.FORWARD_ONLY, "categorized", ())

    said = {"s.daily": Category.BREAKING}
    change = changes(plan_of((daily(),), (DOUBLED,), categories=said))["s.daily"]
    assert change.category is Category.BREAKING
    assert change.missing


def test_a_person_cannot_say_it_of_a_change_of_kind() -> None:
    with pytest.raises(RequestError) as error:
        plan_of((daily(),), (daily(kind=Kind.FULL),), ForwardOnly(), categories={"s.daily": Category.FORWARD_ONLY})

    assert error.value.message == (
        "`s.daily` cannot be forward-only: its kind changed from INCREMENTAL_BY_TIME_RANGE to FULL."
    )


@pytest.mark.parametrize(
    ("forward", "told"),
    [
        (ForwardOnly(since=NOW), "A forward-only plan alone has an effective date."),
        (
            ForwardOnly(every=True, since=datetime(2030, 1, 1, tzinfo=UTC)),
            "The effective date 2030-01-01 is in the future.",
        ),
        (ForwardOnly(every=True, destructive=("s.none",)), "`s.none` selects no model."),
    ],
    ids=["not forward-only", "future", "no such model"],
)
def test_a_request_that_makes_no_sense_is_refused(forward: ForwardOnly, told: str) -> None:
    with pytest.raises(RequestError) as error:
        plan_of((daily(),), (DOUBLED,), forward)

    assert error.value.message == told


def test_a_rebuild_later_computes_whoever_read_the_kept_rows() -> None:
    prod, loaded = promote(project(RAW, daily(), TOTAL))
    first = make_plan(project(RAW, DOUBLED, TOTAL), prod, prod, loaded, forward=FORWARD)
    more = daily("id, day, price * 2 AS price, id AS again")
    then = make_plan(project(RAW, more, TOTAL), first.new, first.new, loaded)

    assert {name: (str(c.category), bool(c.missing)) for name, c in changes(then).items()} == {
        "s.daily": ("breaking", True),
        "s.total": ("indirect_breaking", True),
    }


def test_taking_the_change_back_never_finds_the_table_that_drifted() -> None:
    prod, loaded = promote(project(RAW, daily()))
    kept = make_plan(project(RAW, DOUBLED), prod, prod, loaded, forward=FORWARD).new.snapshots["s.daily"]
    built = make_plan(project(RAW, DOUBLED), prod, prod, loaded).new.snapshots["s.daily"]

    assert len({prod.snapshots["s.daily"].table, kept.table, built.table}) == 3
    assert kept.forced
    assert kept.visible_digest.columns["price"] != built.visible_digest.columns["price"]
    assert kept.visible_digest.columns["id"] == built.visible_digest.columns["id"]


def test_an_added_model_that_reads_a_preview_is_one_and_promised_as_what_prod_computes() -> None:
    after = (DOUBLED, TOTAL, model("s.new", "SELECT MAX(price) AS most FROM s.daily"))
    here, there = plan_of((daily(), TOTAL), after, name="dev"), plan_of((daily(), TOTAL), after)

    assert {name for name, change in changes(here).items() if change.preview} == {"s.daily", "s.total", "s.new"}
    assert [c.name for c in there.changes if c.missing] == ["s.new"]
    assert here.digest == there.digest
    assert not {c.new.table for c in here.changes if c.new} & {c.new.table for c in there.changes if c.new}


def test_a_preview_is_held_to_the_rows_and_columns_that_prod_will_go_on_with() -> None:
    before, after = daily(on_destructive_change="warn"), daily("id, day", on_destructive_change="warn")
    forward = ForwardOnly(every=True, additive=("s.daily",))
    here = changes(plan_of((before,), (after,), forward, "dev"))["s.daily"]
    there = changes(plan_of((before,), (after,), forward))["s.daily"]

    assert here.preview
    assert there.keeps_rows
    assert there.forward
    assert here.forward == replace(there.forward, lands=there.new)
    assert (there.forward.rows, there.forward.destructive) == (LOADED, "warn")


def test_a_preview_ends_where_the_table_ends_whose_place_it_takes() -> None:
    late = Window(NOW + timedelta(days=9), end=NOW + timedelta(days=8))
    prod, loaded = promote(project(RAW, daily()))
    (change,) = make_plan(project(RAW, DOUBLED), Environment("dev"), prod, loaded, forward=FORWARD, window=late).changes

    assert change.preview
    assert change.needed[-1].end == LOADED[0].end


def test_a_preview_of_a_whole_table_is_computed_whole_however_much_of_it_there_is() -> None:
    plan = plan_of((daily(), TOTAL), (DOUBLED, TOTAL), name="dev")
    total = changes(plan)["s.total"]
    assert total.new and total.needed
    prod, loaded = promote(project(RAW, daily(), TOTAL))
    part = (Interval(total.needed[0].start, total.needed[0].end - timedelta(days=1)),)
    there = replace(loaded, timelines={**loaded.timelines, total.new.table: part})
    again = make_plan(project(RAW, DOUBLED, TOTAL), Environment("dev"), prod, there, forward=FORWARD)

    assert changes(again)["s.total"].missing == total.needed


def test_a_view_over_a_preview_is_another_one_when_anything_that_it_reads_moves() -> None:
    shown = model("s.shown", "SELECT price, one FROM s.daily CROSS JOIN s.other", Kind.VIEW)
    other = model("s.other", "SELECT 1 AS one")

    def view(there: Model) -> str:
        change = changes(
            plan_of((daily(forward_only=True), other, shown), (edited, there, shown), ForwardOnly(), "dev")
        )
        assert change["s.daily"].preview and change["s.shown"].new
        return change["s.shown"].new.table

    edited = daily("id, day, price * 2 AS price", forward_only=True)
    assert view(other) != view(replace(other, storage=replace(other.storage, storage_format="orc")))


def test_a_run_fills_a_preview_from_where_it_began_and_no_earlier_day() -> None:
    prod, loaded = promote(project(RAW, daily()))
    plan = make_plan(project(RAW, DOUBLED), Environment("dev"), prod, loaded, forward=FORWARD)
    (change,) = plan.changes
    assert change.new
    held = replace(loaded, timelines={**loaded.timelines, change.new.table: change.missing})
    (due,) = build_run(plan.new, held, Window(NOW + timedelta(days=1)), prod).changes

    assert (len(change.missing), [str(interval) for interval in due.missing]) == (1, ["2026-01-10 - 2026-01-10"])


def two_forms(later: str) -> Model:
    sql = (
        "SELECT * FROM (SELECT id, day, price FROM raw.t) AS first_run WHERE NOT EXISTS (SELECT 1 FROM s.daily)\n"
        f"UNION ALL SELECT * FROM (SELECT id, day, price FROM raw.t WHERE {later}) AS later_run"
        " WHERE EXISTS (SELECT 1 FROM s.daily)"
    )
    made = model("s.daily", sql, Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",), reads_itself=True)
    return replace(made, depends_on=("raw.t",))


def test_a_preview_of_an_edit_of_later_runs_shows_prods_rows_and_computes_nothing() -> None:
    """Its readers' previews, too; one that was edited itself is computed from them."""
    before = (two_forms("day > '2026-01-01'"), TOTAL, COUNT)
    after = (two_forms("day > '2026-01-02'"), TOTAL, model("s.count", "SELECT COUNT(id) AS n FROM s.daily"))
    here, there = plan_of(before, after, ForwardOnly(), "dev"), plan_of(before, after, ForwardOnly())
    by_name = changes(here)

    assert {name for name, change in by_name.items() if change.preview and change.keeps_rows} == {"s.daily", "s.total"}
    assert [change.name for change in here.changes if change.missing] == ["s.count"]
    assert by_name["s.daily"].new and by_name["s.daily"].new.is_preview
    assert here.digest == there.digest


def test_previews_may_stay_empty() -> None:
    plan = plan_of((daily(),), (DOUBLED,), ForwardOnly(every=True, preview=False), "dev")

    assert changes(plan)["s.daily"].preview
    assert plan.backfills == ()


@pytest.mark.parametrize(
    ("destructive", "blocked", "warned"), [("error", 1, 0), ("warn", 0, 1), ("allow", 0, 0), ("ignore", 0, 0)]
)
def test_a_column_that_goes_is_blocked_told_or_left(destructive: str, blocked: int, warned: int) -> None:
    fields = {"forward_only": True, "on_destructive_change": destructive}
    plan = plan_of((daily(**fields),), (daily("id, day", **fields),), ForwardOnly())

    assert (len(plan.blockers), len(plan.warnings)) == (blocked, warned)


def test_a_column_that_comes_can_be_forbidden_and_allowed_for_once() -> None:
    before, after = daily(on_additive_change="error"), daily("id, day, price, id AS again", on_additive_change="error")
    (blocker,) = plan_of((before,), (after,)).blockers

    assert blocker.message == (
        "`s.daily` adds the column `again`, and its change is forward-only. Allow it with `--allow-additive-model "
        "s.daily` or `on_additive_change allow`, or rebuild the table."
    )
    assert plan_of((before,), (after,), ForwardOnly(every=True, additive=("s.daily",))).blockers == ()


@pytest.mark.parametrize(
    ("policy", "types"),
    [
        ("ignore ignore", {"id": "bigint", "price": "float", "gone": "int"}),
        ("warn ignore", {"id": "int", "price": "float"}),
        ("ignore allow", {"id": "bigint", "price": "double", "new": "int", "gone": "int"}),
    ],
)
def test_what_goes_narrows_or_widens_stays_as_it_was_where_that_is_ignored(policy: str, types: dict[str, str]) -> None:
    before = (Column("id", "bigint"), Column("price", "float"), Column("gone", "int"))
    after = (Column("id", "int"), Column("price", "double"), Column("new", "int"))

    merged = {column.name: column.type for column in merge_columns(before, after, *policy.split())}

    assert merged == types


@pytest.mark.parametrize(
    "wider", ["int bigint", "smallint decimal(7,2)", "float double", "decimal(10,2) decimal(12,4)"]
)
def test_files_are_read_as_a_wider_type_and_as_no_other(wider: str) -> None:
    old, new = wider.split()

    assert is_wider(old, new)
    assert not is_wider(new, old)
    assert not is_wider(old, "string")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("decimal(10,2)", "decimal(10,4)"),  # two whole digits fewer
        ("decimal(10,2)", "decimal(12,5)"),
        ("decimal(10,2)", "decimal(12,1)"),
        ("int", "decimal(10,1)"),
        ("bigint", "decimal(19,0)"),
        ("bigint", "double"),
        ("decimal(10,2)", "double"),
    ],
)
def test_a_type_with_fewer_digits_on_either_side_is_not_wider(old: str, new: str) -> None:
    assert not is_wider(old, new)


def test_a_table_with_an_effective_date_made_of_some_days_is_never_taken_for_the_whole_one() -> None:
    since, start = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 8, tzinfo=UTC)
    before, after = (daily(), TOTAL), (DOUBLED, TOTAL)

    short = plan_of(before, after, ForwardOnly(True, since), "dev", window=Window(NOW, start))
    whole = plan_of(before, after, ForwardOnly(True, since))

    assert changes(short)["s.total"].preview
    assert short.new.snapshots["s.total"].table != whole.new.snapshots["s.total"].table
    assert short.new.snapshots["s.daily"].table == whole.new.snapshots["s.daily"].table


def test_days_before_an_effective_date_that_a_restatement_took_are_those_of_prod_and_no_run_computes_them() -> None:
    prod, loaded = promote(project(RAW, daily()))
    edited, later = project(RAW, DOUBLED), ForwardOnly(True, datetime(2026, 1, 5, tzinfo=UTC))
    there = make_plan(edited, Environment("dev"), prod, loaded, forward=later).new
    taken = (Interval(datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)),)
    left = {there.snapshots["s.daily"].table: subtract_intervals(LOADED, taken)}
    loaded = replace(loaded, timelines={**loaded.timelines, **left})

    merge = changes(make_plan(edited, prod, prod, loaded, forward=later))["s.daily"]

    assert (merge.missing, merge.copies) == (taken, taken)
    assert not build_run(there, loaded, Window(NOW), prod).changes


@pytest.mark.parametrize(
    ("before", "rule"),
    [
        (daily("id, day, price"), "reads-nothing-changed"),
        (daily("id, day, current_timestamp() AS price"), "reads-forward-only"),
    ],
    ids=["a pure table", "a clock"],
)
def test_rows_that_are_computed_again_are_the_old_ones_only_if_they_were_the_querys(before: Model, rule: str) -> None:
    more = replace(before, sql=before.sql.replace("SELECT id,", "SELECT id * 7 AS extra, id,"))
    later = ForwardOnly(True, datetime(2026, 1, 5, tzinfo=UTC))

    assert changes(plan_of((before, TOTAL), (more, TOTAL), later))["s.total"].rule == rule


def test_kept_rows_that_are_computed_again_concern_whoever_reads_them() -> None:
    prod, loaded = promote(project(RAW, daily(), TOTAL))
    kept = make_plan(project(RAW, DOUBLED, TOTAL), prod, prod, loaded, forward=FORWARD)
    prod, loaded = replace(kept.new, revision=2), replace(loaded, timelines={**loaded.timelines, **kept.relies})
    more = replace(DOUBLED, sql=DOUBLED.sql.replace("SELECT id,", "SELECT id * 7 AS extra, id,"))

    later = ForwardOnly(True, datetime(2026, 1, 5, tzinfo=UTC))
    by_name = changes(make_plan(project(RAW, more, TOTAL), prod, prod, loaded, forward=later))

    assert by_name["s.total"].rule == "reads-forward-only", "the days since then hold prices times two from now on"


@pytest.mark.parametrize("days", [9, 5])
def test_a_table_of_a_merge_that_failed_takes_rows_over_again_if_prod_has_more_by_then(days: int) -> None:
    prod, loaded = promote(project(RAW, daily()))
    models, timelines = project(RAW, DOUBLED), dict(loaded.timelines)
    first = changes(make_plan(models, base=prod, loaded=loaded, forward=FORWARD))["s.daily"]
    assert first.new and first.forward
    timelines[first.new.table] = (Interval(LOADED[0].start, LOADED[0].start + timedelta(days=days)),)

    again = changes(make_plan(models, base=prod, loaded=replace(loaded, timelines=timelines), forward=FORWARD))

    assert again["s.daily"].missing == ()
    assert again["s.daily"].takes_over == LOADED


def test_a_table_filled_in_order_gets_a_preview_whatever_the_effective_date() -> None:
    keyed = model("s.keyed", "SELECT id, price FROM raw.t", Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",))
    edited = replace(keyed, sql="SELECT id, price * 2 AS price FROM raw.t")

    asked = ForwardOnly(True, datetime(2026, 1, 5, tzinfo=UTC))

    assert changes(plan_of((keyed,), (edited,), asked, "dev"))["s.keyed"].preview
    assert changes(plan_of((keyed,), (edited,), asked))["s.keyed"].missing == ()


def test_an_audit_that_a_later_push_adds_is_about_the_days_since_an_effective_date() -> None:
    (prod, loaded), since = promote(project(RAW, daily())), NOW - timedelta(days=3)
    forward, edited = ForwardOnly(every=True, since=since), daily("id, day, price * 2 AS price")
    (built,) = make_plan(project(RAW, edited), Environment("dev"), prod, loaded, forward=forward).changes
    assert built.new
    held = replace(loaded, timelines={**loaded.timelines, built.new.table: built.needed})
    audit = AuditCall("forall")
    pushed = project(RAW, replace(edited, checks=Checks((audit,))))

    (kept,) = build_stages(make_plan(pushed, Environment("dev"), prod, held, forward=forward)).audit.tables

    assert (kept.calls, kept.needed[0].start) == ((audit,), since.replace(hour=0))
