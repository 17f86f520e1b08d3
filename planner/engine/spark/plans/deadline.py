"""Results that a thread yields one by one, each waited for only so long."""

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


class TooSlowError(Exception):
    """A result did not come in time."""


class _Raised(Exception):
    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason


_END = object()


def yield_in_time(results: Iterable[T], seconds: float) -> Iterator[T]:
    """Yield the results of a thread; raise TooSlowError, and leave the thread, which cannot be ended, to itself."""
    finished: queue.SimpleQueue[object] = queue.SimpleQueue()
    threading.Thread(target=_produce, args=(results, finished), daemon=True).start()
    while True:
        try:
            result = finished.get(timeout=seconds)
        except queue.Empty:
            raise TooSlowError from None
        if result is _END:
            return
        if isinstance(result, _Raised):
            raise result.reason
        yield result  # type: ignore[misc]


def _produce(results: Iterable[T], finished: queue.SimpleQueue[object]) -> None:
    try:
        for result in results:
            finished.put(result)
    except BaseException as error:
        finished.put(_Raised(error))
    else:
        finished.put(_END)
