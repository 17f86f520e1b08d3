"""What audits found, passes included, with its history."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

from mergeplan.planner.intervals import Interval
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore

KEPT = timedelta(days=90)
LISTED = 100  # results, where nobody says how many
AuditOutcome = Literal["passed", "warned", "failed"]


@dataclass(frozen=True)
class RecordedAudit:
    """The result of an audit that ran once: on which rows of which table, and how many of them it found."""

    environment: str
    model: str  # '' of a standalone audit
    audit: str
    table: str  # with the model's version in its name; '' of a standalone audit
    rows: int
    blocking: bool
    interval: Interval | None = None  # of the rows that it looked at; None: all
    arguments: tuple[tuple[str, str], ...] = ()
    at: datetime | None = None  # None: not recorded yet

    @property
    def outcome(self) -> AuditOutcome:
        """`passed` without rows; with rows `failed`, or `warned` where the audit does not block."""
        if not self.rows:
            return "passed"
        return "failed" if self.blocking else "warned"


class AuditHistory(ProjectStore):
    """The results of one project's audits in the last three months."""

    def record(self, results: Sequence[RecordedAudit]) -> None:
        """Keep results, as of now; those that are older than three months are dropped."""
        with self._database.writing() as tx:
            current_time = tx.now()
            tx.put(t.audit_results, [_build_row(result, current_time) for result in results])
            tx.execute(tx.delete(t.audit_results).where(t.audit_results.c.at < current_time - KEPT))

    def load(
        self,
        models: Collection[str] | None = None,
        *,
        environment: str = "",
        audit: str = "",
        since: datetime | None = None,
        limit: int = LISTED,
    ) -> tuple[RecordedAudit, ...]:
        """Return the newest results first, at most `limit`; `models` None means all, '' in it standalone audits."""
        columns = t.audit_results.c
        with self._database.reading() as tx:
            statement = tx.select(t.audit_results)
            if environment:
                statement = statement.where(columns.environment == environment)
            if audit:
                statement = statement.where(columns.audit == audit)
            if since is not None:
                statement = statement.where(columns.at >= since)
            if models is not None:
                statement = statement.where(columns.model.in_(sorted(models)))
            rows = tx.execute(statement.order_by(columns.at.desc(), columns.id).limit(limit)).all()
        return tuple(_read_row(row) for row in rows)


def _build_row(result: RecordedAudit, now: datetime) -> dict[str, Any]:
    interval = result.interval
    return {
        "id": uuid4().hex,
        "at": now,
        "environment": result.environment,
        "model": result.model,
        "audit": result.audit,
        "arguments": [list(pair) for pair in result.arguments],
        "audited_table": result.table,
        "start_at": interval.start if interval else None,
        "end_at": interval.end if interval else None,
        "rows": result.rows,
        "blocking": result.blocking,
    }


def _read_row(row: Any) -> RecordedAudit:
    interval = Interval(row.start_at, row.end_at) if row.start_at and row.end_at else None
    arguments = tuple((name, value) for name, value in row.arguments)
    return RecordedAudit(
        row.environment, row.model, row.audit, row.audited_table, row.rows, row.blocking, interval, arguments, row.at
    )
