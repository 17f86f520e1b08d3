"""Ending what is under way, from another thread or by a signal; what is recorded stays recorded."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from mergeplan.planner.apply.events import (
    BatchDone,
    Compared,
    Emit,
    Event,
    ModelStarted,
    ModelUpToDate,
    Stage,
    StageSkipped,
    StageStarted,
)
from mergeplan.planner.errors import Cancelled
from mergeplan.planner.session.events import Due, Linted, Tested


def is_between(event: Event) -> bool:
    """Return True for an event after which nothing is half done."""
    match event:
        case StageStarted(stage) | StageSkipped(stage):
            return stage is not Stage.PROMOTE  # a promotion that has begun comes to its end
        # An audit that ran is not among these: whether its rows are taken back is not decided yet.
        case BatchDone() | Compared() | Due() | Linted() | ModelStarted() | ModelUpToDate() | Tested():
            return True
        case _:
            return False


class Cancellation:
    def __init__(self) -> None:
        self._asked = False  # no lock around it: a signal's handler sets it

    def ask(self) -> None:
        """Make `check` raise from now on."""
        self._asked = True

    def forget(self) -> None:
        self._asked = False

    def check(self) -> None:
        """Raise Cancelled if a cancellation was requested."""
        if self._asked:
            raise Cancelled("the run was cancelled.")

    def checking(self, emit: Emit) -> Emit:
        """Return a listener that forwards events and, between two steps, may raise Cancelled."""

        def emit_and_check(event: Event) -> None:
            emit(event)
            if is_between(event):
                self.check()

        return emit_and_check


@contextmanager
def cancel_on_signals(cancel: Callable[[], None], signals: Sequence[int] = (signal.SIGINT,)) -> Iterator[None]:
    """Make these signals call `cancel` and raise KeyboardInterrupt; only the main thread can, others change nothing."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        cancel()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old_handlers = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
