"""Jobs that do not wait for each other, and a pace that is kept."""

import threading
import time
from collections.abc import Callable, Mapping

AT_ONCE = 8  # jobs of all owners together; GitHub wants no more than 100 calls at a time


class Apart:
    """A runner that gives each job its own thread; one that still runs is not started again."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._running: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._room = threading.Semaphore(at_once)

    def run(self, jobs: Mapping[tuple[str, str], Callable[[], object]], seconds: float) -> None:
        """Start the jobs and wait for their end, at most that long; a late job goes on by itself."""
        threads = [thread for key, job in jobs.items() if (thread := self._start_thread(key, job))]
        deadline = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start_thread(self, key: tuple[str, str], job: Callable[[], object]) -> threading.Thread | None:
        with self._lock:
            if key in self._running:
                return None
            self._running.add(key)

        def work() -> None:
            try:
                with self._room:
                    job()
            finally:
                with self._lock:
                    self._running.discard(key)

        thread = threading.Thread(target=work, name=f"apart-{key}", daemon=True)
        thread.start()
        return thread


class Pace:
    """No more than so many calls a minute, after a short burst.

    >>> pace = Pace(60, burst_seconds=2.0)
    >>> [pace.take(1, now=100.0) for _ in range(4)]
    [0.0, 0.0, 0.0, 1.0]
    """

    def __init__(self, per_minute: int, burst_seconds: float = 5.0) -> None:
        self._gap = 60.0 / per_minute
        self._burst = burst_seconds
        self._next = 0.0

    def take(self, calls: int, now: float) -> float:
        """Return the seconds to wait before that many calls."""
        wait = max(0.0, self._next - now - self._burst)
        self._next = max(self._next, now) + calls * self._gap
        return wait
