"""A table that was built once is found again by what it means: by a revert, in any environment, under other text."""

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.snapshot.environment import Environment

from .building import NOW, day, external, make_plan, model, project, promote

pytestmark = pytest.mark.prove

RAW = external("s.raw", "id price d")
ASKED = "SELECT d, id, price FROM s.raw WHERE d BETWEEN @start_date AND @end_date"


def shop(daily: str = ASKED, total: str = "SELECT SUM(price) AS t FROM s.daily") -> dict[str, Model]:
    ranged = model("s.daily", daily, Kind.INCREMENTAL_BY_TIME_RANGE, time_column="d", start=day("2026-01-01"))
    return project(RAW, ranged, model("s.total", total))


def history(*projects: dict[str, Model]) -> tuple[Environment, Loaded]:
    """Prod after these projects one after another, with the tables of all of them still there."""
    prod, timelines = Environment("prod"), {}
    for models in projects:
        loaded = Loaded(dict(timelines), frozenset(timelines))
        plan = make_plan(models, prod, prod, loaded)
        timelines |= {change.new.table: change.needed for change in plan.changes if change.new and change.needed}
        prod = Environment("prod", plan.new.snapshots, plan.new.views, prod.revision + 1, plan.id, NOW)
    return prod, Loaded(timelines, frozenset(timelines))


def test_a_revert_finds_its_old_tables() -> None:
    prod, loaded = history(shop(), shop(ASKED + " AND price > 0"))

    plan = make_plan(shop(), prod, prod, loaded)

    assert {change.name for change in plan.changes if change.recomputed} == {"s.daily", "s.total"}
    assert (plan.is_virtual, plan.promotes) == (True, True)


def test_a_revert_computes_only_the_days_since() -> None:
    prod, loaded = history(shop(), shop(ASKED + " AND price > 0"))
    table = promote(shop())[0].snapshots["s.daily"].table
    short = dict(loaded.timelines)
    first = short[table][0]
    short[table] = (type(first)(first.start, day("2026-01-07")),)

    plan = make_plan(shop(), prod, prod, Loaded(short, loaded.complete))
    daily = next(change for change in plan.changes if change.name == "s.daily")

    assert [str(interval) for interval in daily.missing] == ["2026-01-07 - 2026-01-09"]


def test_a_revert_beneath_an_edit_finds_the_edited_readers_old_table() -> None:
    other = "SELECT SUM(price) AS t, COUNT(*) AS n FROM s.daily"
    prod, loaded = history(shop(total=other), shop(ASKED + " AND price > 0", other), shop(ASKED + " AND price > 0"))

    plan = make_plan(shop(total=other), prod, prod, loaded)

    assert plan.is_virtual


def test_another_text_of_the_same_meaning_has_the_same_table_in_any_environment() -> None:
    one, _ = promote(shop())
    two, _ = promote(shop(ASKED.replace("s.raw", "s.raw AS r").replace("d BETWEEN", "r.d BETWEEN")))

    assert {name: snapshot.version for name, snapshot in one.snapshots.items()} == {
        name: snapshot.version for name, snapshot in two.snapshots.items()
    }
