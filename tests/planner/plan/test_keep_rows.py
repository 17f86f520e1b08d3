"""The columns of a table whose rows a forward-only change keeps: which of them are still what a query makes."""

from __future__ import annotations

from collections.abc import Mapping

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.forward_only import NOT_ASKED
from mergeplan.planner.snapshot.environment import Environment
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
    new = make_plan(kept, prod, prod, loaded, forward=FORWARD).new
    return make_plan(after, Environment("dev"), new, loaded, forward=NOT_ASKED)


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
