"""Places for planners that run, so that one owner does not hold all, and turns at the Spark of a repository."""

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


class SparkTurns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sharing: Counter[str] = Counter()
        self._alone: dict[str, str] = {}  # repository -> the run that has its Spark alone, or waits for it

    @contextmanager
    def take(self, repository: str, run_id: str, *, alone: bool, should_stop: Callable[[], str]) -> Iterator[str]:
        """Wait for a turn and hold it; yield '', or the reason of `should_stop` that ended the wait.

        While a run waits to be alone, no other one begins: otherwise it could wait for ever.
        """
        stopped, has_turn = "", False
        try:
            while not (has_turn := self._try_take(repository, run_id, alone=alone)) and not (stopped := should_stop()):
                time.sleep(POLL_SECONDS)
            yield stopped
        finally:
            with self._lock:
                if has_turn and not alone:
                    self._sharing[repository] -= 1
                elif self._alone.get(repository) == run_id:
                    del self._alone[repository]

    def is_reserved(self, repository: str) -> bool:
        """Return True if a run has the repository's Spark alone, or waits for it."""
        return repository in self._alone

    def _try_take(self, repository: str, run_id: str, *, alone: bool) -> bool:
        with self._lock:
            if alone and self._alone.setdefault(repository, run_id) == run_id:
                return not self._sharing[repository]
            if repository in self._alone:
                return False
            self._sharing[repository] += 1
            return True
