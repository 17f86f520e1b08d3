"""The layers below a pull request, by the open pull requests as GitHub lists them."""

from __future__ import annotations

from dataclasses import replace

from mergeplan.bot.pull_parts import Layer, PullStack, StackBase
from mergeplan.bot.pulls.stacks import LAYERS_MAX, build_stack_base, find_layers, find_pulls_above, line_up
from mergeplan.bot.records import Pull, PullRecord, PullState
from tests.bot.changing import change_record

SHOP = "ann/shop"


def pull(number: int, head: str, base: str) -> Pull:
    return Pull(number, "", "wim", True, False, "", f"{number:040x}", False, base, "", head)


def numbers(top: Pull, *others: Pull) -> list[int]:
    return [layer.number for layer in find_layers(top, (top, *others), "main")]


ONE, TWO, THREE = pull(1, "one", "main"), pull(2, "two", "one"), pull(3, "three", "two")


def test_the_layers_are_those_that_lead_to_the_prod_branch_the_lowest_first() -> None:
    assert numbers(THREE, TWO, ONE) == [1, 2]
    assert numbers(ONE, TWO, THREE) == []
    assert find_layers(TWO, (ONE, TWO), "main") == (Layer(1, f"{1:040x}"),)


def test_what_leads_nowhere_or_in_a_circle_has_no_layers() -> None:
    assert numbers(THREE, TWO) == []
    assert numbers(pull(1, "one", "two"), pull(2, "two", "one")) == []
    assert numbers(pull(1, "one", "one")) == []


def test_a_fork_is_no_layer_and_may_stand_on_layers() -> None:
    assert numbers(TWO, replace(ONE, is_fork=True)) == []
    assert numbers(replace(TWO, is_fork=True), ONE) == [1]
    assert find_pulls_above(replace(ONE, is_fork=True), (TWO,)) == ()


def test_of_several_pull_requests_of_a_branch_that_into_the_prod_branch_counts() -> None:
    assert numbers(TWO, pull(7, "one", "release"), pull(9, "one", "main")) == [9]


def test_a_stack_that_is_too_high_has_no_layers() -> None:
    tower = [pull(1, "b1", "main"), *(pull(n, f"b{n}", f"b{n - 1}") for n in range(2, LAYERS_MAX + 3))]

    assert len(numbers(tower[LAYERS_MAX], *tower)) == LAYERS_MAX
    assert numbers(tower[LAYERS_MAX + 1], *tower) == []


def test_a_layer_waits_while_the_one_below_is_to_be_planned() -> None:
    planned = PullRecord(SHOP, 1, PullState.PLANNED, ONE.head)
    stale = replace(planned, stack=PullStack(planned_on=StackBase((Layer(9, "f" * 40),))))
    layers = (Layer(1, ONE.head),)
    states = [
        planned,
        change_record(planned, head="e" * 40),
        change_record(planned, state=PullState.PLANNING),
        change_record(planned, state=PullState.CANCELLED),
        stale,
        change_record(planned, prod_revision=7),
    ]
    bases = [build_stack_base(layers, {1: state}.__getitem__, 0) for state in states]

    assert [base.waits_for for base in bases] == [0, 1, 1, 0, 1, 1]


def test_a_stack_is_lined_up_from_the_lowest_and_a_circle_of_records_ends() -> None:
    above = {1: (2, 4), 2: (3,), 3: (1,), 4: ()}
    records = {number: PullRecord(SHOP, number, stack=PullStack(above=above[number])) for number in above}

    assert line_up(1, (), records.__getitem__) == (1, 2, 4, 3)
    assert line_up(4, (), records.__getitem__) == ()
