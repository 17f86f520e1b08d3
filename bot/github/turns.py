"""Writes of one installation take turns: one at a time, with the rest between them that GitHub asks for."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mergeplan.bot.forge.waiting import mark_waiting

LATE_SECONDS = 10.0  # by which a write that shows no plan goes after those that do; it is never kept for longer
LOOK_SECONDS = 0.1  # a plan that comes changes who is next, and wakes no one


@dataclass(eq=False)
class Ticket:
    """A thread's place among those that wait; `is_late` may become False meanwhile."""

    count: int
    since: float
    first: bool
    is_late: Callable[[], bool]

    @property
    def place(self) -> tuple[bool, float, int]:
        return not self.first, self.since + (LATE_SECONDS if self.is_late() else 0.0), self.count


class Turns:
    """A lock for one writer at a time; reactions go first, then new plans before what they can wait for, in order.

    A thread that holds the lock may take it again: its next write waits for its own pause, and no other comes between.
    """

    def __init__(self, rest_seconds: float) -> None:
        self._rest = rest_seconds
        self._changed = threading.Condition()
        self._waiting: list[Ticket] = []
        self._count = 0
        self._holder = 0
        self._depth = 0
        self._free_at = 0.0

    @contextmanager
    def turn(self, *, first: bool = False, is_late: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Hold the lock while something is chosen and written; when it begins, GitHub may be written to."""
        self._take_turn(first, is_late)
        try:
            yield
        finally:
            with self._changed:
                self._depth -= 1
                if not self._depth:
                    self._holder = 0
                    self._changed.notify_all()

    def wrote(self) -> None:
        """Note, as the holder, that GitHub has answered a write."""
        with self._changed:
            self._free_at = time.monotonic() + self._rest

    def _take_turn(self, first: bool, is_late: Callable[[], bool]) -> None:
        me = threading.get_ident()
        with mark_waiting(), self._changed:
            self._count += 1
            ticket = Ticket(self._count, time.monotonic(), first, is_late)
            if self._holder != me:
                self._waiting.append(ticket)
            # The rest is waited out before the turn is given: who goes first is settled at its end.
            while not self._is_mine(me, ticket):
                held_by_other = self._holder not in (0, me)
                self._changed.wait(None if held_by_other else self._seconds_until_free() or LOOK_SECONDS)
            if self._holder != me:
                self._waiting.remove(ticket)
            self._holder = me
            self._depth += 1
            self._changed.notify_all()

    def _is_mine(self, me: int, ticket: Ticket) -> bool:
        if self._seconds_until_free() > 0:
            return False
        return self._holder == me or (not self._holder and min(self._waiting, key=lambda one: one.place) is ticket)

    def _seconds_until_free(self) -> float:
        return max(0.0, self._free_at - time.monotonic())
