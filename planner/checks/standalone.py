"""Standalone audits: each asks several models at once, after their tables were filled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from planner.checks.audits import AuditResult, found_by
from planner.engine.protocol import Engine
from planner.errors import MergeplanError
from planner.intervals import Interval, Timeline
from planner.model.model import Audit, Model
from planner.parsing.files.schema import Samples
from planner.parsing.macros.expand import dates, spark_tree
from planner.parsing.render import fill, rendered, text_over
from planner.parsing.sql.spark_text import spark_text


def standalone_query(
    audit: Audit,
    tables: Mapping[str, str],
    embedded: Mapping[str, Model],
    interval: Interval | None,
    execution: datetime,
) -> str:
    """The SELECT of bad rows in Spark SQL over physical tables, its dates those of the interval."""
    values = dates(interval, execution)
    values |= {name: fill(spark_tree(text).copy(), values) for name, text in audit.defaults}
    if audit.text:
        return text_over(audit.text, tables, embedded, values)
    return spark_text(rendered(audit.sql, tables, embedded, values))


def run_standalone(
    engine: Engine,
    audit: Audit,
    tables: Mapping[str, str],
    embedded: Mapping[str, Model],
    interval: Interval | None,
    *,
    execution: datetime,
    samples: Samples = "masked",
) -> AuditResult:
    """Run one; QueryError at the audit's file when Spark refuses it. The result's model is ''."""
    sql = standalone_query(audit, tables, embedded, interval, execution)
    try:
        count, sample = found_by(engine, sql, samples)
    except MergeplanError as error:
        error.place = error.place or audit.place
        error.message = f"The audit `{audit.name}` cannot run: {error.message}"
        raise
    return AuditResult(audit.name, "", audit.blocking, count, sample, sql, audit.place, audit.depends_on)


def read_by(audit: Audit, parents: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The tables that an audit reads, those that embedded models (any without a table) read for it too."""
    found: set[str] = set()
    left = list(audit.depends_on)
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += parents.get(name, ())
    return frozenset(found)


def due(audit: Audit, written: Timeline) -> bool:
    """True when the time that was written reaches a beat of the audit's cron, and lies after its start."""
    return any(
        audit.cron.floor(each.end) > audit.cron.floor(each.start) and (audit.start is None or each.end > audit.start)
        for each in written
    )


def stretch(audit: Audit, written: Timeline) -> Interval | None:
    """The time that the audit's dates stand for: from the first moment written, but not before its start."""
    if not written:
        return None
    start, end = written[0].start, written[-1].end
    start = max(start, audit.start) if audit.start else start
    return Interval(start, end) if start < end else None
