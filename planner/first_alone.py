"""Threads that all need a thing that the first of them makes, or finds out: a schema, what a catalog knows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class FirstAlone:
    """The first thread works alone, for each key; when it has succeeded, all others work at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: dict[str, threading.Lock] = {}
        self._done: set[str] = set()

    @contextmanager
    def turn(self, key: str) -> Iterator[bool]:
        """A context that is entered alone, with True, until one that was so entered has ended without an error."""
        with self._lock:
            first = self._first.setdefault(key, threading.Lock())
        first.acquire()
        if key in self._done:
            first.release()
            yield False
            return
        try:
            yield True
            self._done.add(key)
        finally:
            first.release()
