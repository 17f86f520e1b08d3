"""Threads that only wait for a forge."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAITING = set[int]()  # the threads of this process that wait for a turn, or for a thread that does


@contextmanager
def mark_waiting() -> Iterator[None]:
    """Mark this thread as one that only waits for GitHub: another may work meanwhile."""
    WAITING.add(threading.get_ident())
    try:
        yield
    finally:
        WAITING.discard(threading.get_ident())
