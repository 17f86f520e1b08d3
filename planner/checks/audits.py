"""Audits: the query that finds the bad rows, and running it as one counted query with a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlglot import exp

from planner.checks.masking import shown
from planner.engine.protocol import Engine, Rows
from planner.errors import MergeplanError, Place
from planner.intervals import Interval
from planner.model.model import Audit, AuditCall, Model
from planner.parsing.definitions.audit_calls import NON_BLOCKING, built_in, built_in_query, check_call
from planner.parsing.files.model_file import line_of
from planner.parsing.files.schema import Samples
from planner.parsing.macros.expand import dates, spark_tree
from planner.parsing.render import fill, rendered, text_over
from planner.parsing.sql.spark_text import spark_text
from planner.snapshot.snapshot import Snapshot

SAMPLE = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class AuditResult:
    """What an audit found: how many bad rows, and up to five of them, as far as they may be shown."""

    name: str
    model: str  # '' of a standalone audit
    blocking: bool
    count: int
    sample: Rows
    sql: str
    place: Place | None = None  # where it is asked for
    reads: tuple[str, ...] = ()  # the tables that a standalone audit names

    @property
    def ok(self) -> bool:
        return self.count == 0


def is_blocking(call: AuditCall, audits: Mapping[str, Audit]) -> bool:
    """The call's own word, else the audit's; a built-in blocks unless its name ends in `_non_blocking`."""
    if call.blocking is not None:
        return call.blocking
    own = audits.get(call.name)
    return own.blocking if own else not call.name.endswith(NON_BLOCKING)


def audit_query(
    model: Model,
    call: AuditCall,
    audits: Mapping[str, Audit],
    table: str,
    interval: Interval | None,
    *,
    tables: Mapping[str, str] | None = None,
    embedded: Mapping[str, Model] | None = None,
    execution: datetime | None = None,
) -> str:
    """The SELECT of bad rows in Spark SQL; of a time-range model only the interval is looked at.

    `tables` and `embedded` are for audits that read other models too. ProjectError at the model for a wrong call.
    """
    check_call(call, audits, line_of(model, call.name, header=True))
    own = audits.get(call.name)
    sql = own.sql if own else built_in_query(call)
    arguments = {**dict(own.defaults if own else ()), **dict(call.arguments)} if own or built_in(call.name) else {}
    values = dates(interval, execution or (interval.end if interval else _EPOCH))
    values |= {name: fill(spark_tree(text).copy(), values) for name, text in arguments.items()}
    known = {name: physical for name, physical in (tables or {}).items() if name != model.name}
    known[model.name] = table
    if own and own.text:
        return text_over(own.text, known, embedded or {}, values, f"({_rows(model, table, interval)})")
    tree = rendered(sql, known, embedded or {}, values)
    for column in tree.find_all(exp.Column):
        if column.table == "@this_model":
            column.set("table", exp.to_identifier("this_model"))
    for this_model in list(tree.find_all(exp.Table)):
        if this_model.name == "@this_model":
            alias = this_model.args.get("alias") or exp.TableAlias(this=exp.to_identifier("this_model"))
            this_model.replace(exp.Subquery(this=spark_tree(_rows(model, table, interval)).copy(), alias=alias))
    return spark_text(tree)


def run_audit(
    engine: Engine,
    model: Model,
    call: AuditCall,
    audits: Mapping[str, Audit],
    table: str,
    interval: Interval | None,
    *,
    tables: Mapping[str, str] | None = None,
    embedded: Mapping[str, Model] | None = None,
    execution: datetime | None = None,
    samples: Samples = "masked",
) -> AuditResult:
    """Run one audit; QueryError at the model's file when Spark refuses it. `samples` says how bad rows are shown."""
    sql = audit_query(model, call, audits, table, interval, tables=tables, embedded=embedded, execution=execution)
    known = None if call.name in audits else built_in(call.name)
    try:
        count, sample = found_by(engine.on(model.gateway), sql, samples, known.figures if known else ())
    except MergeplanError as error:
        own = audits.get(call.name)
        if error.place is None:
            error.place = line_of(model, call.name, header=True)
        error.message = f"The audit `{call.name}` of {model.name} cannot run: {error.message}" if own else error.message
        raise
    place = line_of(model, call.name, header=True) if count else model.place
    return AuditResult(call.name, model.name, is_blocking(call, audits), count, sample, sql, place)


def found_by(engine: Engine, sql: str, samples: Samples, figures: tuple[str, ...] = ()) -> tuple[int, Rows]:
    """How many bad rows a query finds, and a few of them as they may be shown; in one pass."""
    found = engine.fetch(_counted(sql))
    count = int(str(found.rows[0][0])) if found.rows else 0
    rows = Rows(found.columns[1:], tuple(row[1:] for row in found.rows) if count else ())
    return count, shown(rows, samples, figures)


def is_asked(call: AuditCall, audits: Mapping[str, Audit]) -> bool:
    """False for an audit that says `skip true`."""
    own = audits.get(call.name)
    return own is None or not own.skip


def run_audits(
    engine: Engine,
    snapshot: Snapshot,
    audits: Mapping[str, Audit],
    interval: Interval | None,
    *,
    tables: Mapping[str, str] | None = None,
    embedded: Mapping[str, Model] | None = None,
    execution: datetime | None = None,
    samples: Samples = "masked",
) -> Iterator[AuditResult]:
    """Run a model's audits on what was just written, one by one, as the caller asks for the next."""
    for call in snapshot.model.audits:
        if not is_asked(call, audits):
            continue
        yield run_audit(
            engine,
            snapshot.model,
            call,
            audits,
            snapshot.table,
            interval,
            tables=tables,
            embedded=embedded,
            execution=execution,
            samples=samples,
        )


def _rows(model: Model, table: str, interval: Interval | None) -> str:
    """The rows that an audit looks at."""
    if not model.kind.is_by_time or interval is None:
        return f"SELECT * FROM {table}"
    column = f"`{model.time_column}`"
    time = f"to_timestamp({column}, '{model.time_format}')" if model.time_format else column
    start, end = (
        f"CAST('{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}' AS TIMESTAMP)" for at in (interval.start, interval.end)
    )
    return f"SELECT * FROM {table} WHERE {time} >= {start} AND {time} < {end}"


def _counted(sql: str) -> str:
    """One pass over the bad rows: how many, and the first few of each task.

    A row's `monotonically_increasing_id` counts from 0 within its task in the lower 33 bits, so that no task hands on
    more than the sample, however many bad rows there are.
    """
    numbered = f"SELECT struct(*) AS bad, monotonically_increasing_id() & 8589934591 AS nth FROM ({sql})"
    gathered = f"SELECT count(*) AS count, slice(collect_list(if(nth < {SAMPLE}, bad, NULL)), 1, {SAMPLE}) AS sample"
    return f"SELECT count, inline_outer(sample) FROM ({gathered} FROM ({numbered}))"
