"""Writes of one installation: never two at once, never sooner than GitHub likes, and who waits for a person first."""

from __future__ import annotations

import re
import threading
import time
from itertools import pairwise

from mergeplan.bot.github.turns import Ticket, Turns
from tests.bot.conftest import COLUMN, Bench, until

REST = 0.05


def test_writes_of_many_threads_come_one_by_one_with_a_rest_between_them() -> None:
    """Each begins a rest after the one before has ended; none is lost."""
    turns, spans = Turns(REST), list[tuple[float, float]]()

    def write() -> None:
        with turns.turn():
            began = time.monotonic()
            time.sleep(0.005)
            turns.wrote()
            spans.append((began, time.monotonic()))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(spans) == 8
    assert all(later[0] - sooner[1] > REST * 0.9 for sooner, later in pairwise(spans))


def test_who_waits_for_a_persons_sake_goes_first_and_the_others_in_their_order() -> None:
    turns, order, entered = Turns(REST), list[str](), threading.Event()

    def write(name: str, first: bool) -> None:
        with turns.turn(first=first):
            order.append(name)
            turns.wrote()

    def wait_for_queue(count: int) -> None:
        until(lambda: len(turns._waiting) == count, 10)

    with turns.turn():
        threads = []
        for count, (name, first) in enumerate((("a", False), ("b", False), ("eyes", True)), start=1):
            threads.append(threading.Thread(target=write, args=(name, first)))
            threads[-1].start()
            wait_for_queue(count)
        entered.set()
    for thread in threads:
        thread.join()

    assert order == ["eyes", "a", "b"]


def test_a_new_plan_goes_before_what_shows_none_also_if_it_comes_while_that_waits() -> None:
    turns, order, late = Turns(REST), list[str](), {"a", "b"}

    def write(name: str) -> None:
        with turns.turn(is_late=lambda: name in late):
            order.append(name)
            turns.wrote()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b", "plan")]
    with turns.turn():
        for count, thread in enumerate(threads, start=1):
            thread.start()
            until(lambda count=count: len(turns._waiting) == count, 10)  # type: ignore[misc]
        late.discard("b")
    for thread in threads:
        thread.join()

    assert order == ["b", "plan", "a"]


def test_a_plan_that_comes_while_no_one_writes_is_seen_without_a_call() -> None:
    """A late writer lets another go first, which has not looked yet; then its plan comes, and it is its turn itself."""
    turns, looked, has_plan, wrote = Turns(REST), threading.Event(), threading.Event(), threading.Event()

    def is_late() -> bool:
        looked.set()
        return not has_plan.is_set()

    def write() -> None:
        with turns.turn(is_late=is_late):
            wrote.set()

    with turns.turn():
        threading.Thread(target=write, daemon=True).start()
        until(lambda: len(turns._waiting) == 1, 10)
        turns._waiting.append(Ticket(2, time.monotonic(), first=False, is_late=lambda: False))
    assert looked.wait(10) and not wrote.wait(REST)

    has_plan.set()
    assert wrote.wait(10)


def test_a_turn_in_which_nothing_was_written_costs_no_rest() -> None:
    """And within a turn the next write of the same thread waits for its rest, not for itself."""
    turns = Turns(30.0)
    for _ in range(3):
        with turns.turn(), turns.turn():
            pass

    quick = Turns(REST)
    with quick.turn():
        with quick.turn():
            quick.wrote()
        at = time.monotonic()
        with quick.turn():
            assert time.monotonic() - at > REST * 0.9


def test_what_was_overtaken_while_it_waited_is_never_written(bench: Bench) -> None:
    """The plan is done before the checks' turns have come: most of them say once what is, and nothing else before."""
    bench.context.forge.owners.connect("ann/shop").turns._rest = 1.0
    number = bench.open(COLUMN)
    bench.idle()
    writes = [
        call for call in bench.github.calls if call.method != "GET" and re.search("/check-runs|^/graphql", call.path)
    ]

    assert bench.plan(number)
    assert {run.status for run in bench.checks(bench.head(number)).values()} == {"completed"}
    assert len(writes) - PROD_CHECKS < 4


PROD_CHECKS = 2  # of the first build
