"""Writes that a Spark Connect server goes on with when their planner has gone, by table."""

from dataclasses import dataclass
from datetime import datetime

from mergeplan.planner.engine.protocol import Operation
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.leases import Lease, check_lease
from mergeplan.planner.state.transaction import ProjectStore


@dataclass(frozen=True)
class RunningWrite:
    """A write of a batch from `start` on: `request` is a digest of its inputs, `token` the lease's when it began."""

    operation: Operation
    start: datetime
    request: str
    token: int


class RunningWrites(ProjectStore):
    """The operations of one project that may be running."""

    def begin(self, table: str, write: RunningWrite, *, lease: Lease) -> None:
        """Keep that a write begins now; LeaseHeld when the right to write the table was lost."""
        operation = write.operation
        row = {"table_name": table, "start_at": write.start, "request": write.request, "token": write.token}
        row |= {"id": operation.id, "server": operation.server, "session": operation.session}
        with self._database.writing() as tx:
            check_lease(tx, lease)
            tx.put(t.operations, [{**row, "at": tx.now()}])

    def list_unfinished(self, table: str) -> tuple[RunningWrite, ...]:
        """Those of a table that nobody has seen the end of, the oldest first."""
        with self._database.reading() as tx:
            statement = tx.select(t.operations).where(t.operations.c.table_name == table).order_by(t.operations.c.at)
            return tuple(
                RunningWrite(Operation(row.server, row.session, row.id), row.start_at, row.request, row.token)
                for row in tx.execute(statement)
            )

    def end(self, operation: Operation) -> None:
        with self._database.writing() as tx:
            tx.execute(tx.delete(t.operations).where(t.operations.c.id == operation.id))
