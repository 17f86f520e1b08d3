"""Coordination of threads that need one shared result, such as a schema, which the first of them computes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class FirstAlone:
    """A gate for each key: the first thread works alone; once it has succeeded, all others work at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: dict[str, threading.Lock] = {}
        self._done: set[str] = set()

    @contextmanager
    def turn(self, key: str) -> Iterator[bool]:
        """Enter alone, yielding True, until one such turn has ended without an error; then yield False to all."""
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
