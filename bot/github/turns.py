"""Writes of one installation take turns: one at a time, with the rest between them that GitHub asks for."""

import heapq
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock for one writer at a time; writes that a person waits for go first, the others in order.

    A thread that holds the lock may take it again: its next write waits for its own pause, and no other comes between.
    """

    def __init__(self, rest_seconds: float) -> None:
        self._rest = rest_seconds
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int]] = []
        self._count = 0
        self._holder = 0
        self._depth = 0
        self._free_at = 0.0

    @contextmanager
    def turn(self, *, first: bool = False) -> Iterator[None]:
        """Hold the lock while something is chosen and written; when it begins, GitHub may be written to."""
        self._take_turn(first)
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

    def _take_turn(self, first: bool) -> None:
        me = threading.get_ident()
        with self._changed:
            self._count += 1
            ticket = (0 if first else 1, self._count)
            if self._holder != me:
                heapq.heappush(self._waiting, ticket)
            # The rest is waited out before the turn is given: who goes first is settled at its end.
            while not self._is_mine(me, ticket):
                held_by_other = self._holder not in (0, me)
                self._changed.wait(None if held_by_other else self._seconds_until_free() or None)
            if self._holder != me:
                heapq.heappop(self._waiting)
            self._holder = me
            self._depth += 1
            self._changed.notify_all()

    def _is_mine(self, me: int, ticket: tuple[int, int]) -> bool:
        if self._seconds_until_free() > 0:
            return False
        return self._holder == me or (not self._holder and self._waiting[0] == ticket)

    def _seconds_until_free(self) -> float:
        return max(0.0, self._free_at - time.monotonic())
