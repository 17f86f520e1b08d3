"""Work on a list in forks of this process, one for each processor: for work of the processor with small results."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mergeplan.planner.isolation.system import PR_SET_PDEATHSIG, prctl

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

T = TypeVar("T")
R = TypeVar("R")
PROCESSES = 4  # at most: each has memory of its own
BATCH = 25  # items between two results
# A command may handle these; a fork ends by them without a word.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_THREADS = Path("/proc/self/task")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds, or `max`, and the period


def count_processors() -> int:
    """Return how many forks can work at once; 1 if a fork is not safe, because this process has several threads."""
    if sys.platform != "linux":
        return 1
    try:
        threads = len(os.listdir(_THREADS))
    except OSError:
        return 1
    processors = min(len(os.sched_getaffinity(0)), PROCESSES) if threads == 1 else 1
    with suppress(OSError, ValueError):
        quota, period = map(int, _QUOTA.read_text().split())
        processors = min(processors, max(quota // period, 1))
    return processors


def map_in_forks(work: Callable[[Sequence[T]], R], items: Sequence[T]) -> Iterator[R]:
    """Yield the result of each batch in any order, without those of forks that end early; closing it ends the forks."""
    from multiprocessing.connection import wait

    batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # or a handler of the command could run in a fork
    forks: list[BaseProcess] = []
    readers: list[Connection] = []
    try:
        with suppress(OSError):  # too many processes: those that run do what they can
            _start_forks(work, batches, mask, forks, readers)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        while readers:
            ready = wait(readers)
            for reader in [reader for reader in readers if reader in ready]:
                try:
                    yield reader.recv()
                except (EOFError, OSError):
                    readers.remove(reader)
                    reader.close()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for fork in forks:
            fork.kill()
            fork.join()
        for reader in readers:
            reader.close()


def _start_forks(
    work: Callable[[Sequence[T]], R],
    batches: Sequence[Sequence[T]],
    mask: Iterable[int],
    forks: list[BaseProcess],
    readers: list[Connection],
) -> None:
    """Start a fork for each processor, each for its share of the batches, and add it and what reads its results."""
    from multiprocessing import get_context

    context, command, count = get_context("fork"), os.getpid(), min(count_processors(), len(batches))

    def run_fork(number: int, writer: Connection) -> None:
        for handled in SIGNALS:
            signal.signal(handled, signal.SIG_DFL)
        with suppress(OSError):
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for reader in readers:
            reader.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with suppress(BrokenPipeError):  # the command has ended
            for batch in batches[number::count] if os.getppid() == command else ():
                writer.send(work(batch))

    for number in range(count):
        reader, writer = context.Pipe(duplex=False)
        readers.append(reader)
        with writer:
            fork = context.Process(target=run_fork, args=(number, writer))
            fork.start()
        forks.append(fork)
