"""Two physical plans compared: what is worse, and where nothing is, what is better."""

from __future__ import annotations

import random
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mergeplan.planner.checks.physical_diff import Cost, PhysicalChange, compare_plans
from mergeplan.planner.checks.physical_plan import PhysicalPlan, Scan
from tests.planner.checks.plans import READ, plan

NAMES = st.lists(st.sampled_from("abc"), unique=True).map(lambda names: tuple(sorted(names)))
SCANS = st.builds(Scan, st.sampled_from("abc"), st.sampled_from([True, False, None]), st.sampled_from([True, False]))
PLANS = st.builds(
    PhysicalPlan,
    st.lists(SCANS, max_size=4).map(tuple),
    *[st.lists(NAMES, max_size=3).map(tuple) for _ in fields(PhysicalPlan)[1:]],
)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("pruned", "unpruned", [(Cost.PRUNING, 0, 1, ("shop.orders",), ("day",))]),
        ("join", "cross", [(Cost.CARTESIAN_PRODUCT, 0, 1, ("shop.items", "shop.orders"))]),
        ("join", "sorted", [(Cost.BROADCAST, 0, 1, ("shop.orders",))]),
        ("windows", "one_window", [(Cost.ONE_TASK, 0, 1, ("shop.orders",))]),
        ("windows", "grouped", [(Cost.SHUFFLE, 1, 2, (), ("day", "id"))]),
        ("global", "python", [(Cost.PYTHON, 0, 1, ("shop.orders",))]),
        ("range", "cross", [(Cost.CARTESIAN_PRODUCT, 0, 1, ("shop.items", "shop.orders"))]),
    ],
)  # fmt: skip
def test_what_an_edit_makes_expensive_is_reported(old: str, new: str, changes: list[tuple[Any, ...]]) -> None:
    assert compare_plans(plan(old), plan(new)) == tuple(PhysicalChange(*change) for change in changes)


def test_a_table_that_is_read_once_more_and_whole_is_reported_but_not_one_that_was_never_pruned() -> None:
    chosen, whole = Scan("a", True, True, ("day",)), Scan("a", False, False)

    assert compare_plans(PhysicalPlan((chosen,)), PhysicalPlan((chosen, whole))) == (
        PhysicalChange(Cost.PRUNING, 0, 1, ("a",), ("day",)),
    )
    assert compare_plans(PhysicalPlan((whole,)), PhysicalPlan((whole, whole))) == ()
    assert compare_plans(PhysicalPlan((chosen,)), PhysicalPlan((Scan("b", False, False),))) == ()
    assert compare_plans(PhysicalPlan((chosen,)), PhysicalPlan((Scan("a", None, None),))) == ()


def test_good_news_stands_alone() -> None:
    """Fewer shuffles are none beside a new cartesian product."""
    both = PhysicalPlan(cartesian=(("a", "b"),))

    assert [change.cost for change in compare_plans(plan("sorted"), both)] == [Cost.CARTESIAN_PRODUCT]
    (better,) = compare_plans(plan("unpruned"), plan("pruned"))
    assert (better.cost, better.before, better.after) == (Cost.PRUNING, 1, 0)


def test_columns_are_reported_of_new_shuffles_only() -> None:
    old, renamed = PhysicalPlan(shuffles=(("id",),)), PhysicalPlan(shuffles=(("key",),))
    more = PhysicalPlan(shuffles=(("key",), ("day",)))

    assert compare_plans(old, renamed) == ()
    assert compare_plans(old, more) == (PhysicalChange(Cost.SHUFFLE, 1, 2),)
    assert compare_plans(renamed, more) == (PhysicalChange(Cost.SHUFFLE, 1, 2, (), ("day",)),)


@pytest.mark.parametrize(("form", "name"), READ)
def test_a_plan_does_not_differ_from_itself(form: str, name: str) -> None:
    assert compare_plans(plan(name, form), plan(name, form)) == ()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS, PLANS, st.randoms())
def test_only_how_often_counts_and_turned_round_bad_is_good(
    old: PhysicalPlan, new: PhysicalPlan, chance: random.Random
) -> None:
    mixed = PhysicalPlan(*(tuple(chance.sample(value, len(value))) for value in vars(new).values()))

    assert compare_plans(new, mixed) == ()
    assert compare_plans(old, mixed) == compare_plans(old, new)
    assert {change.after > change.before for change in compare_plans(old, new)} in ({True}, {False}, set())
    if not any(change.after > change.before for change in compare_plans(old, new)):
        assert [change.cost for change in compare_plans(old, new)] == [
            change.cost for change in compare_plans(new, old)
        ]
