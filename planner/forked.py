"""Work on a list in forks of this process, one for each processor: for work of the processor with small results."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
R = TypeVar("R")
PROCESSES = 8  # at most: each has objects of its own
BATCH = 25  # items between two results
_THREADS = Path("/proc/self/task")


def count_processors() -> int:
    """Return how many forks can work at once; 1 if a fork is not safe, because this process has several threads."""
    if sys.platform != "linux":
        return 1
    try:
        threads = len(os.listdir(_THREADS))
    except OSError:
        return 1
    return min(len(os.sched_getaffinity(0)), PROCESSES) if threads == 1 else 1


def map_in_forks(work: Callable[[Sequence[T]], R], items: Sequence[T]) -> Iterator[R]:
    """Yield the result of each batch of items, in any order, without those of a fork that ended early.

    Forks are ended with the iterator.
    """
    from multiprocessing import get_context
    from multiprocessing.connection import wait

    context, forks, readers = get_context("fork"), [], []
    batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
    count = min(count_processors(), len(batches))
    try:
        with suppress(OSError):  # too many processes: those that run do what they can
            for number in range(count):
                reader, writer = context.Pipe(duplex=False)
                readers.append(reader)
                fork = context.Process(target=_work_on_batches, args=(work, batches[number::count], writer))
                with writer:
                    fork.start()
                forks.append(fork)
        while readers:
            ready = wait(readers)
            for reader in [reader for reader in readers if reader in ready]:
                try:
                    yield reader.recv()
                except (EOFError, OSError):
                    readers.remove(reader)
                    reader.close()
    finally:
        for fork in forks:
            fork.terminate()
            fork.join()
        for reader in readers:
            reader.close()


def _work_on_batches(work: Callable[[Sequence[T]], R], batches: Sequence[Sequence[T]], writer: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # who interrupts the command sees no trace of this process
    with suppress(BrokenPipeError):  # the command has ended
        for batch in batches:
            writer.send(work(batch))
