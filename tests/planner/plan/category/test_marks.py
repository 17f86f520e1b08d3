"""A person's `breaking`, and a finding of Spark's analyzer, hold after the plan in which they were said."""

from collections.abc import Callable

import pytest

from mergeplan.planner import serial
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Category
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Meaning
from tests.planner.building import NOW, external, make_plan, model, project, promote

FIRST, SAME = "SELECT id, x FROM s.v", "SELECT id, x FROM s.v WHERE 1 = 1"
VIEW = "SELECT id, x FROM s.raw"
Prod = tuple[Environment, Loaded]


def shop(a: str = SAME, view: str = VIEW, **fields: str) -> dict[str, Model]:
    reader = model("s.r", "SELECT id, x + 1 AS y FROM s.a")
    return project(external("s.raw", "id x d"), model("s.v", view, Kind.VIEW), model("s.a", a, **fields), reader)


def merge(plan: Plan, loaded: Loaded) -> Prod:
    timelines = dict(loaded.timelines) | {change.new.table: change.needed for change in plan.changes if change.new}
    prod = Environment("prod", plan.new.snapshots, plan.new.views, 1, plan.id, NOW)
    return prod, Loaded(timelines, frozenset(timelines))


def categorize_breaking() -> Prod:
    prod, loaded = promote(shop(FIRST))
    return merge(make_plan(shop(), prod, prod, loaded, categories={"s.a": Category.BREAKING}), loaded)


def refute() -> Prod:
    prod, loaded = promote(shop(FIRST))
    claim = next(change.claim for change in make_plan(shop(), prod, prod, loaded).changes)
    return merge(make_plan(shop(), prod, prod, loaded, refuted={claim: "Spark disagrees."}), loaded)


LATER = {
    "a parent with a column that is not read": shop(view="SELECT id, x, 1 AS more FROM s.raw"),
    "an edit that means the same": shop("SELECT id, x FROM s.v WHERE 2 = 2"),
    "a description": shop(description="rows"),
}


@pytest.mark.parametrize("merge_change", [categorize_breaking, refute])
@pytest.mark.parametrize("later", LATER)
def test_a_later_change_without_effect_keeps_the_tables(merge_change: Callable[[], Prod], later: str) -> None:
    prod, loaded = merge_change()

    plan = make_plan(LATER[later], prod, prod, loaded)

    assert plan.changes
    assert [plan.new.snapshots[name].version for name in ("s.a", "s.r")] == [
        prod.snapshots[name].version for name in ("s.a", "s.r")
    ]


@pytest.mark.parametrize("merge_change", [categorize_breaking, refute])
def test_a_change_that_is_taken_back_shows_the_tables_from_before_it(merge_change: Callable[[], Prod]) -> None:
    before, _ = promote(shop(FIRST))
    prod, loaded = merge_change()

    plan = make_plan(shop(FIRST), prod, prod, loaded)

    assert {(change.name, change.recomputed, change.missing) for change in plan.changes} == {
        ("s.a", True, ()),
        ("s.r", True, ()),
    }
    assert plan.new.snapshots["s.a"].version == before.snapshots["s.a"].version


def test_another_query_and_back_again_shows_the_table_of_the_change_that_was_breaking() -> None:
    prod, loaded = categorize_breaking()

    elsewhere = merge(make_plan(shop("SELECT id, x FROM s.v WHERE id > 2"), prod, prod, loaded), loaded)
    plan = make_plan(shop(), elsewhere[0], *elsewhere)

    assert plan.new.snapshots["s.a"].version == prod.snapshots["s.a"].version


def test_a_stored_mark_is_read_again() -> None:
    meaning = categorize_breaking()[0].snapshots["s.a"].meaning
    assert meaning is not None

    assert meaning.marks
    assert serial.decode_line(Meaning, serial.encode_line(meaning)) == meaning
