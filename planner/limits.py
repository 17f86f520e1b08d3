"""Limits of processor time and memory for one text of a project, whatever it makes a parser do.

Time is this process's own: waiting for others does not count. It is limited in a process's main thread only, because
Python delivers signals there.
"""

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from mergeplan.planner.errors import ProjectError

SECONDS = 60.0  # for a file
MEMORY = 2 << 30
AGAIN = 1.0  # seconds after which the exception is raised again, if code has swallowed it
_STATUS = Path("/proc/self/statm")
_DATA = 5  # the field that RLIMIT_DATA is compared with


class _TimeUp(BaseException):
    """The signal that the time is over; no Exception, so that no handler takes it for an error of its own."""


@contextmanager
def limit_resources(
    error: Callable[[str], ProjectError], seconds: float = SECONDS, memory: int = MEMORY
) -> Iterator[None]:
    """Raise a ProjectError, made by `error`, if the body takes more seconds or bytes, or is nested too deeply."""
    try:
        with _limit_memory(memory), _limit_time(seconds):
            yield
    except _TimeUp:
        raise error(f"takes more than {seconds:.0f} seconds of the processor's time") from None
    except MemoryError:
        raise error(f"takes more than {memory >> 20} MiB of memory") from None
    except RecursionError:
        raise error("is nested too deeply") from None


@contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    armed = True

    def stop(_number: int, _frame: FrameType | None) -> None:
        if armed:
            raise _TimeUp

    try:
        old_handler = signal.signal(signal.SIGVTALRM, stop)
    except ValueError:  # another thread than the main one
        yield
        return
    timer_delay, timer_interval = signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, old_handler)
        if timer_delay:
            signal.setitimer(signal.ITIMER_VIRTUAL, timer_delay, timer_interval)


@contextmanager
def _limit_memory(growth: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    memory_limit = _data_bytes() + growth
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    if memory_limit == growth or any(limit <= memory_limit for limit in limits):
        yield  # the size of this process is not known here, or it is limited already
        return
    resource.setrlimit(resource.RLIMIT_DATA, (memory_limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    """Return the bytes of this process that count; 0 if the system does not say."""
    with suppress(OSError, IndexError, ValueError):
        return int(_STATUS.read_text().split()[_DATA]) * resource.getpagesize()
    return 0
