"""A check that a Spark that runs for weeks still answers: it analyses a new query now and then."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mergeplan.planner.errors import MergeplanError, QueryError, RequestError

EVERY = 30.0  # seconds between two queries
PATIENCE = 300.0  # seconds that an answer may take: a Spark short of memory or cores is slow, and may recover


@dataclass
class Pulse:
    """A check in its own thread, so that a Spark that hangs does not hang its watcher."""

    ask: Callable[[], object]  # raises MergeplanError when Spark is gone or exhausted
    every: float = EVERY
    patience: float = PATIENCE
    _asked_at: float = field(default_factory=time.monotonic)
    _thread: threading.Thread | None = None
    _error: MergeplanError | None = None

    def check(self) -> None:
        """Ask again when it is time; raise RequestError if Spark failed the last query or leaves it unanswered."""
        if self._error is not None:
            raise RequestError(f"the warm Spark fails: {self._error.message}", hint=self._error.hint)
        waited = time.monotonic() - self._asked_at
        if self._thread is not None and self._thread.is_alive():
            if waited > self.patience:
                raise RequestError(f"the warm Spark has not answered for {waited:.0f} seconds.")
        elif waited >= self.every:
            self._asked_at = time.monotonic()
            self._thread = threading.Thread(target=self._ask_spark, name="pulse", daemon=True)
            self._thread.start()

    def _ask_spark(self) -> None:
        try:
            self.ask()
        except QueryError:
            pass  # it answers
        except MergeplanError as error:
            self._error = error
