"""Writes of one table that a Spark continues after their planner is gone, and which of them may be waited for again.

That depends on all that the rows come from: the text of the query, the table, the interval, and the lease tokens of the
tables that it reads. Any other write is ended before the table is written again.
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
    """The writes of a table under this run's lease, and those that the run before it left, by their request."""

    store: StateStore
    engine: Engine
    table: str
    lease: Lease
    left: dict[str, RunningWrite] = field(default_factory=dict)

    def look(self, todo: Collection[Interval]) -> None:
        """Find what the previous run left; end writes that match no batch of this run or that are outdated.

        A write is outdated if another process has held the lease since.
        """
        starts = {interval.start for interval in todo}
        for write in self.store.running_writes.list_unfinished(self.table):
            if write.token == self.lease.token - 1 and write.start in starts:
                self.left[write.request] = write
            else:
                self.drop(write)

    def drop(self, write: RunningWrite) -> None:
        self.engine.end_operation(write.operation)
        self.store.running_writes.end(write.operation)

    def batch_writes(self, model: str, interval: Interval, sources: Collection[str], emit: Emit) -> BatchWrites:
        return BatchWrites(self, model, interval, self._digest_inputs(interval, sources), emit)

    def _digest_inputs(self, interval: Interval, sources: Collection[str]) -> str:
        """Return a digest of what a batch depends on besides its query; every writer of its inputs takes a lease."""
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
        """Return the operation that the previous run began for this request, or None; end others of its interval."""
        write = self.writes.left.pop(digest(self.read, request_key), None)
        for key, leftover in list(self.writes.left.items()):
            if leftover.start == self.interval.start:
                self.writes.drop(self.writes.left.pop(key))
        if write is None:
            return None
        self.begun.append(write.operation)
        return write.operation

    def begin(self, request_key: str, operation: Operation) -> None:
        lease = self.writes.lease
        write = RunningWrite(operation, self.interval.start, digest(self.read, request_key), lease.token)
        self.writes.store.running_writes.begin(self.writes.table, write, lease=lease)
        self.begun.append(operation)

    def report_resumed(self) -> None:
        self.emit(BatchAwaited(self.model, self.interval))

    def report_repeated(self) -> None:
        self.emit(BatchRepeated(self.model, self.interval))


@contextmanager
def track_operations(batch: BatchWrites) -> Iterator[None]:
    """Mark all operations of a batch as ended when the context ends, successful or not."""
    try:
        yield
    finally:
        for operation in batch.begun:
            batch.writes.store.running_writes.end(operation)
