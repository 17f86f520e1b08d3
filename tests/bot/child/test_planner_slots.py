"""Turns of planners: how many run at once, for whom, and which of them has a Spark alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from mergeplan.bot.child.planner_slots import PlannerSlots, SparkTurns
from tests.bot.conftest import until

SHOP = "ann/shop"


def test_one_owner_does_not_hold_all_places_while_others_are_known() -> None:
    slots = PlannerSlots(2)
    with ExitStack() as running:

        def start(owner: str, *, only: bool = False) -> str:
            return running.enter_context(slots.take(owner, is_only_owner=only, should_stop=lambda: "full"))

        assert [start("ann"), start("ann"), start("bob"), start("bob", only=True)] == ["", "full", "", "full"]
    with slots.take("ann", is_only_owner=True, should_stop=lambda: "full") as stopped:
        assert not stopped


def never() -> str:
    return ""


@contextmanager
def turn_of_another(turns: SparkTurns, run_id: str, *, alone: bool) -> Iterator[list[str]]:
    """A thread that asks for a turn, and gives it back at the end of the block; the list says what has it."""
    has_turn, end = list[str](), threading.Event()

    def hold() -> None:
        with turns.take(SHOP, run_id, alone=alone, should_stop=lambda: "over" * end.is_set()) as stopped:
            if not stopped:
                has_turn.append(run_id)
                end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    yield has_turn
    end.set()
    thread.join(60)


def test_plans_of_a_repository_share_its_spark_and_others_have_their_own() -> None:
    turns = SparkTurns()
    with turn_of_another(turns, "a", alone=False) as first, turn_of_another(turns, "b", alone=False) as second:
        until(lambda: first and second)
        with turns.take("ann/other", "c", alone=True, should_stop=never) as stopped:
            assert stopped == ""


def test_a_run_alone_waits_for_those_under_way_and_holds_the_next_ones() -> None:
    turns = SparkTurns()
    with turn_of_another(turns, "a", alone=False) as shared:
        until(lambda: shared)
        with turn_of_another(turns, "b", alone=True) as alone:
            until(lambda: SHOP in turns._alone)
            with turns.take(SHOP, "c", alone=False, should_stop=lambda: "superseded") as stopped:
                assert (stopped, alone) == ("superseded", [])


def test_a_turn_alone_that_is_given_back_lets_the_others_go_on() -> None:
    turns = SparkTurns()
    with turns.take(SHOP, "a", alone=True, should_stop=never) as alone:
        assert alone == ""
    with turns.take(SHOP, "b", alone=False, should_stop=never), turn_of_another(turns, "c", alone=False) as shared:
        until(lambda: shared)
