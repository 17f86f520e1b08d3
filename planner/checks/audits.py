"""Audits: the query of the failing rows, run as one query that counts them and takes a sample."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mergeplan.planner.checks.diff.masking import mask_rows
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.engine.spark.quoting import literal
from mergeplan.planner.errors import Located, MergeplanError, ProjectError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.definitions.audits.audit_calls import BoundAudit, bind_call, is_blocking
from mergeplan.planner.parsing.files.schema import Samples
from mergeplan.planner.parsing.render import render_audit
from mergeplan.planner.snapshot.snapshot import Snapshot

SAMPLE = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class AuditContext:
    """The options of audits.

    `audits` are the project's own, and `tables` and `embedded` are the tables and embedded models that their queries
    may read. `execution` is the time of `@execution_...` (the interval's end if None), and `samples` says how failing
    rows are shown.
    """

    audits: Mapping[str, Audit] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    embedded: Mapping[str, Model] = field(default_factory=dict)
    execution: datetime | None = None
    samples: Samples = "masked"


NO_OPTIONS = AuditContext()


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit: the number of failing rows, and up to five of them, masked if need be."""

    name: str
    model: str  # '' of a standalone audit
    blocking: bool
    count: int
    sample: Rows
    sql: str
    place: Located | None = None  # where the model names it
    reads: tuple[str, ...] = ()  # the tables that a standalone audit names
    table: str = ""  # that was audited; '' of a standalone audit
    interval: Interval | None = None  # of the rows that were audited; None: all
    arguments: tuple[tuple[str, str], ...] = ()  # of the call
    unchanged: bool = False  # it did not run: it passed before, and nothing that it reads was written since

    @property
    def ok(self) -> bool:
        return self.count == 0


def audit_query(
    model: Model, call: AuditCall, table: str, interval: Interval | None, options: AuditContext = NO_OPTIONS
) -> str:
    """Return the SELECT of failing rows, of the interval for a time range; raise ProjectError for a wrong call."""
    return _render_query(_bind_audit(model, call, options), model, table, interval, options)


def _bind_audit(model: Model, call: AuditCall, options: AuditContext) -> BoundAudit:
    return bind_call(call, options.audits, model.locate(call.name, in_block=True))


def _render_query(audit: BoundAudit, model: Model, table: str, interval: Interval | None, options: AuditContext) -> str:
    execution = options.execution or (interval.end if interval else _EPOCH)
    tables = {**options.tables, model.name: table}
    return render_audit(audit, tables, options.embedded, interval, execution, _rows_query(model, table, interval))


def read_by_audits(model: Model, audits: Mapping[str, Audit]) -> frozenset[str]:
    """Return the tables besides its own that the audits of a model read; a wrong call fails only when it runs."""
    tables: set[str] = set()
    for call in model.checks.audits:
        if call.name in audits and is_enabled(call, audits):
            with suppress(ProjectError):
                tables |= bind_call(call, audits, model.place).tables
    return frozenset(tables - {model.name})


def run_audit(
    engine: Engine,
    model: Model,
    call: AuditCall,
    table: str,
    interval: Interval | None,
    options: AuditContext = NO_OPTIONS,
) -> AuditResult:
    """Run one audit; raise QueryError at the model's file if Spark rejects the query."""
    audit = _bind_audit(model, call, options)
    sql = _render_query(audit, model, table, interval, options)
    place = model.locate(call.name, in_block=True)
    try:
        count, sample = fetch_failing_rows(engine.engine_for(model.gateway), sql, options.samples, audit.figures)
    except MergeplanError as error:
        error.located = error.located or place
        if audit.is_own:
            error.message = f"The audit `{call.name}` of {model.name} cannot run: {error.message}"
        raise
    return AuditResult(
        call.name, model.name, is_blocking(call, options.audits), count, sample, sql, place if count else model.place,
        table=table, interval=interval if model.kind.is_by_time else None, arguments=call.arguments,
    )  # fmt: skip


def fetch_failing_rows(engine: Engine, sql: str, samples: Samples, figures: tuple[str, ...] = ()) -> tuple[int, Rows]:
    """Return the number of failing rows of a query, and a sample of them, masked as `samples` says; in one pass."""
    # The lower 33 bits of the id count from 0 within a task: none returns more than the sample, whatever fails.
    numbered = f"SELECT struct(*) AS bad, monotonically_increasing_id() & 8589934591 AS nth FROM ({sql})"
    gathered = f"SELECT count(*) AS count, slice(collect_list(if(nth < {SAMPLE}, bad, NULL)), 1, {SAMPLE}) AS sample"
    result = engine.fetch(f"SELECT count, inline_outer(sample) FROM ({gathered} FROM ({numbered}))")
    count = int(str(result.rows[0][0])) if result.rows else 0
    rows = Rows(result.columns[1:], tuple(row[1:] for row in result.rows) if count else ())
    return count, mask_rows(rows, samples, figures)


def is_enabled(call: AuditCall, audits: Mapping[str, Audit]) -> bool:
    audit = audits.get(call.name)
    return audit is None or not audit.skip


def run_audits(
    engine: Engine, snapshot: Snapshot, interval: Interval | None, options: AuditContext
) -> Iterator[AuditResult]:
    """Yield the results of a model's audits on the rows just written, each when the caller takes it."""
    for call in snapshot.model.checks.audits:
        if is_enabled(call, options.audits):
            yield run_audit(engine, snapshot.model, call, snapshot.table, interval, options)


def _rows_query(model: Model, table: str, interval: Interval | None) -> str:
    if not model.kind.is_by_time or interval is None:
        return f"SELECT * FROM {table}"
    column = quote_column(model.by_time.time_column)
    time = f"to_timestamp({column}, {literal(model.by_time.time_format)})" if model.by_time.time_format else column
    start, end = (
        f"CAST('{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}' AS TIMESTAMP)" for at in (interval.start, interval.end)
    )
    return f"SELECT * FROM {table} WHERE {time} >= {start} AND {time} < {end}"
