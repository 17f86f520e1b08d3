"""Places for planners that run: as many as there are workers; one owner does not hold all while others are known."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from mergeplan.bot.child.planner_process import POLL_SECONDS


class PlannerSlots:
    """The places of a service; `waiting` surrounds each wait for one."""

    def __init__(self, workers: int, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._workers = workers
        self._waiting = waiting
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def take(self, owner: str, *, is_only_owner: bool, should_stop: Callable[[], str]) -> Iterator[str]:
        """Wait for a place and hold it; yield '', or the reason of `should_stop` that ended the wait."""
        most = self._workers if is_only_owner else max(1, self._workers - 1)
        stopped = ""
        with self._waiting():
            while not (has_place := self._try_take(owner, most)) and not (stopped := should_stop()):
                time.sleep(POLL_SECONDS)
        try:
            yield stopped
        finally:
            with self._lock:
                self._running[owner] -= has_place

    def _try_take(self, owner: str, most: int) -> bool:
        with self._lock:
            if self._running.total() >= self._workers or self._running[owner] >= most:
                return False
            self._running[owner] += 1
            return True
