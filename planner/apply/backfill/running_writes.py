"""The writes of one table that a Spark goes on with when their planner has gone: which may be waited for again.

That one may is decided by all that its rows come from: the text of the query, the table, the interval, and who has had
the right to write the tables that it reads. Whatever is not just the same is ended before the table is written anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mergeplan.planner.apply.events import BatchAwaited, BatchRepeated, Emit
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.engine.protocol import Engine, Operation
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.operations import RunningWrite
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.versions import mergeplan_version


@dataclass
class TableWrites:
    """The writes of a table under the lease of this run, and those that the run before it left, by what they ask."""

    store: StateStore
    engine: Engine
    table: str
    lease: Lease
    left: dict[str, RunningWrite] = field(default_factory=dict)

    def look(self, todo: Collection[Interval]) -> None:
        """Find what the run before left; what begins where no batch of this run does, or others wrote after, ends."""
        starts = {interval.start for interval in todo}
        for write in self.store.running_writes.list_unfinished(self.table):
            if write.token == self.lease.token - 1 and write.start in starts:
                self.left[write.request] = write
            else:
                self.drop(write)

    def drop(self, write: RunningWrite) -> None:
        """End a write for which nobody waits."""
        self.engine.end_operation(write.operation)
        self.store.running_writes.end(write.operation)

    def batch_writes(self, model: str, interval: Interval, sources: Collection[str], emit: Emit) -> BatchWrites:
        """Those of one batch of a model, which reads these tables; `emit` says what becomes of one that was left."""
        return BatchWrites(self, model, interval, self._read(interval, sources), emit)

    def _read(self, interval: Interval, sources: Collection[str]) -> str:
        """A digest of what a batch depends on beside its query: whoever writes what it reads takes a lease."""
        tokens = self.store.leases.tokens([table_lease(table) for table in sources])
        return digest(mergeplan_version(), str(interval), *(f"{name} {tokens[name]}" for name in sorted(tokens)))


@dataclass
class BatchWrites:
    """The operations of one batch of a model: `Operations` of the engine."""

    writes: TableWrites
    model: str
    interval: Interval
    read: str
    emit: Emit
    begun: list[Operation] = field(default_factory=list)

    def take_leftover(self, request_key: str) -> Operation | None:
        """The one that the run before began for just this, None without; others of the same place are ended."""
        write = self.writes.left.pop(digest(self.read, request_key), None)
        for key, other in list(self.writes.left.items()):
            if other.start == self.interval.start:
                self.writes.drop(self.writes.left.pop(key))
        if write is None:
            return None
        self.begun.append(write.operation)
        return write.operation

    def begin(self, request_key: str, operation: Operation) -> None:
        """Write down that this one begins now."""
        lease = self.writes.lease
        write = RunningWrite(operation, self.interval.start, digest(self.read, request_key), lease.token)
        self.writes.store.running_writes.begin(self.writes.table, write, lease=lease)
        self.begun.append(operation)

    def report_resumed(self) -> None:
        """Say that the one that was left is waited for."""
        self.emit(BatchAwaited(self.model, self.interval))

    def report_repeated(self) -> None:
        """Say that the one that was left is begun again."""
        self.emit(BatchRepeated(self.model, self.interval))


@contextmanager
def running(batch: BatchWrites) -> Iterator[None]:
    """A context at whose end all operations of a batch have ended, well or not."""
    try:
        yield
    finally:
        for operation in batch.begun:
            batch.writes.store.running_writes.end(operation)
