"""Delivers notices to their targets, each target in a thread of its own.

Best effort: a notice that is not taken three times is logged and lost, and holds nothing up. Comments and checks are
the record.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Full, Queue
from typing import Protocol

import structlog
import tenacity

from mergeplan.bot.report.notices import Notice

log = structlog.get_logger(__name__)
TRIES = 3
WAITING = 200  # notices for one target; more than these are dropped


class Target(Protocol):
    def deliver(self, notice: Notice) -> None:
        """Deliver a notice, in the target's own thread; NotDelivered where another try may help."""


class NotDelivered(Exception):
    """A target did not take a notice. Its text is logged, so it holds no secret."""


class Notifications:
    """Takes notices for all targets; without targets it does nothing."""

    def __init__(self, targets: Sequence[Target] = ()) -> None:
        self._outboxes = [_Outbox(target) for target in targets]

    def send(self, notice: Notice) -> None:
        """Take a notice to be delivered; it returns at once and raises nothing."""
        for outbox in self._outboxes:
            outbox.put(notice)

    def close(self, seconds: float = 15.0) -> None:
        until = time.monotonic() + seconds
        for outbox in self._outboxes:
            outbox.close(until)


class _Outbox:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._notices: Queue[Notice | None] = Queue(WAITING)
        self._thread = threading.Thread(target=self._deliver_notices, name="notifications", daemon=True)
        self._thread.start()

    def put(self, notice: Notice) -> None:
        try:
            self._notices.put_nowait(notice)
        except Full:
            log.warning("notification_dropped", why="too many wait")

    def close(self, until: float) -> None:
        with suppress(Full):  # the target does not answer: what waits is lost
            self._notices.put(None, timeout=max(0.0, until - time.monotonic()))
        self._thread.join(max(0.0, until - time.monotonic()))

    def _deliver_notices(self) -> None:
        while (notice := self._notices.get()) is not None:
            try:
                self._deliver_notice(notice)
            except NotDelivered as error:
                log.warning("notification_failed", why=str(error))

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(TRIES),
        wait=tenacity.wait_exponential(multiplier=0.2, max=2),
        retry=tenacity.retry_if_exception_type(NotDelivered),
        reraise=True,
    )
    def _deliver_notice(self, notice: Notice) -> None:
        self._target.deliver(notice)
