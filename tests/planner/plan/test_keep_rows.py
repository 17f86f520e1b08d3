"""The columns of a table whose rows a forward-only change keeps: which of them are still what a query makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.forward_only import NOT_ASKED
from tests.planner.building import make_plan, model, project, promote
from tests.planner.plan.test_forward_only_decisions import FORWARD, RAW, changes, daily

PRICE = model("s.price", "SELECT id, price FROM s.daily")
IDS = model("s.ids", "SELECT id FROM s.daily")
ODD = "SELECT CAST(id AS INT) AS n FROM raw.t"


def ignoring(columns: str, **fields: object) -> Model:
    return daily(columns, **{"on_destructive_change": "ignore", "on_additive_change": "ignore", **fields})


def plan_after(before: Mapping[str, Model], kept: Mapping[str, Model], after: Mapping[str, Model]) -> Plan:
    """The plan for prod, which a forward-only change brought from the first models to the second ones."""
    prod, loaded = promote(before)
    first = make_plan(kept, prod, prod, loaded, forward=FORWARD)
    held = {change.new.table: change.forward.rows for change in first.changes if change.new and change.forward}
    loaded = replace(loaded, timelines={**loaded.timelines, **held})
    return make_plan(after, first.new, first.new, loaded, forward=NOT_ASKED)


def test_a_column_that_was_ignored_and_comes_back_is_computed_for_the_days_between() -> None:
    whole, gone = (project(RAW, ignoring(columns), PRICE, IDS) for columns in ("id, day, price", "id, day"))

    assert {name: (c.rule, c.recomputed) for name, c in changes(plan_after(whole, gone, whole)).items()} == {
        "s.daily": ("column-altered", True),
        "s.price": ("reads-changed-column", True),
        "s.ids": ("reads-nothing-changed", False),
    }


def test_a_reader_is_judged_by_the_wider_type_that_an_ignored_change_left_in_the_table() -> None:
    union = "SELECT price AS p FROM s.daily{0} UNION ALL SELECT n FROM s.odd{1}"
    outside = f"SELECT p FROM ({union.format('', '')}) AS u WHERE typeof(p) = 'int'"
    inside = union.format(" WHERE typeof(price) = 'int'", " WHERE typeof(n) = 'int'")
    rules = []
    for policy in ("ignore", "allow"):  # with `allow` the table has the type of the query
        versions = [
            project(
                RAW, model("s.odd", ODD), model("s.union", sql),
                ignoring(f"id, day, CAST(price AS {kind}) AS price", on_destructive_change=policy),
            )
            for kind, sql in (("BIGINT", outside), ("INT", outside), ("INT", inside))
        ]  # fmt: skip
        rules.append(changes(plan_after(versions[0], versions[1], versions[2]))["s.union"].rule)

    assert rules == ["rows-changed", "same-query"]


def test_columns_that_are_no_longer_ignored_come_and_go() -> None:
    before, after = "id, day, price", "id, day, price * 2 AS twice"
    policies = {"on_destructive_change": "warn", "on_additive_change": "allow"}
    whole, kept, moved = ignoring(before), ignoring(after), ignoring(after, **policies)
    plan = plan_after(project(RAW, whole), project(RAW, kept), project(RAW, moved))
    change = changes(plan)["s.daily"]

    assert (change.rule, change.new and change.new.columns) == ("no-longer-ignored", ("id", "day", "twice"))
    assert change.reason.endswith("existing rows stay. Removes `price` and adds `twice`.")
    assert [warning.message.partition(",")[0] for warning in plan.warnings] == ["`s.daily` drops the column `price`"]
    described = ignoring(after, description="what was sold")
    assert changes(plan_after(project(RAW, whole), project(RAW, kept), project(RAW, described)))["s.daily"].rule == (
        "metadata-only"
    )
