"""Standalone audits: each checks several models together, after their tables were filled."""

from collections.abc import Mapping
from datetime import datetime

from mergeplan.planner.checks.audits import AuditContext, AuditResult, fetch_failing_rows
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.graph import reach_names
from mergeplan.planner.model.model import Audit
from mergeplan.planner.parsing.definitions.audits.audit_calls import bind_standalone
from mergeplan.planner.parsing.render import render_audit


def run_standalone(
    engine: Engine, audit: Audit, interval: Interval | None, execution: datetime, options: AuditContext
) -> AuditResult:
    """Run one standalone audit; raise QueryError at its file if Spark rejects the query. The result's model is ''."""
    sql = render_audit(bind_standalone(audit), options.tables, options.embedded, interval, execution)
    try:
        count, sample = fetch_failing_rows(engine, sql, options.samples)
    except MergeplanError as error:
        error.located = error.located or audit.place
        error.message = f"The audit `{audit.name}` cannot run: {error.message}"
        raise
    return AuditResult(
        audit.name, "", audit.blocking, count, sample, sql, audit.place, audit.depends_on, interval=interval
    )


def read_by(audit: Audit, parents: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the tables that an audit reads, also through embedded models."""
    return frozenset(reach_names(audit.depends_on, parents))


def is_due(audit: Audit, written_time: Timeline) -> bool:
    """Return True if the written intervals contain a tick of the audit's cron after its start."""
    return any(
        audit.cron.floor(interval.end) > audit.cron.floor(interval.start)
        and (audit.start is None or interval.end > audit.start)
        for interval in written_time
    )


def dates_interval(audit: Audit, written_time: Timeline) -> Interval | None:
    """Return the interval of the audit's dates: from the first written moment, but not before its start."""
    if not written_time:
        return None
    start, end = written_time[0].start, written_time[-1].end
    start = max(start, audit.start) if audit.start else start
    return Interval(start, end) if start < end else None
