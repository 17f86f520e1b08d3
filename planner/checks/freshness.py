"""Freshness: how old the newest rows of a table are, beside the ages that its model allows."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from mergeplan.planner.engine.protocol import Engine, Value
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.metadata import Freshness
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import key_sql, quote_name
from mergeplan.planner.snapshot.snapshot import Snapshot

AHEAD = timedelta(days=1)  # what time zones excuse of a moment in the future


class FreshnessStatus(StrEnum):
    FRESH = "pass"
    WARN = "warn"
    ERROR = "error"
    UNKNOWN = "unknown"  # the age cannot be measured


class Measure(StrEnum):
    ROWS = "rows"  # by `loaded_at`
    INTERVALS = "intervals"  # the end of what runs have filled
    LAST_WRITE = "last write"  # the last commit with rows, or the newest file


@dataclass(frozen=True)
class FreshnessResult:
    model: Model
    freshness: Freshness
    status: FreshnessStatus
    measured_by: Measure
    newest_at: datetime | None = None  # UTC; None: it is unknown, or there is no row
    age: timedelta | None = None
    message: str = ""  # why it is not `pass`, or what is odd

    @property
    def ok(self) -> bool:
        return self.status in (FreshnessStatus.FRESH, FreshnessStatus.WARN)


def check_table(engine: Engine, snapshot: Snapshot, freshness: Freshness, now: datetime) -> FreshnessResult:
    measure = Measure.ROWS if freshness.asks_rows else Measure.LAST_WRITE
    try:
        if measure is Measure.ROWS:
            rows = engine.engine_for(snapshot.model.gateway).fetch(_newest_query(freshness, snapshot.table)).rows
            newest_at = _moment_of(rows[0][0] if rows else None)
        else:
            newest_at = engine.tables.last_write(snapshot.table)
    except (QueryError, ValueError) as error:
        message = error.message if isinstance(error, QueryError) else str(error)
        return FreshnessResult(snapshot.model, freshness, FreshnessStatus.UNKNOWN, measure, message=message)
    return judge_age(snapshot.model, freshness, measure, newest_at, now)


def check_intervals(model: Model, freshness: Freshness, filled: Timeline, now: datetime) -> FreshnessResult:
    """Judge the time up to which runs have filled a table, without Spark."""
    return judge_age(model, freshness, Measure.INTERVALS, filled[-1].end if filled else None, now)


def judge_age(
    model: Model, freshness: Freshness, measure: Measure, newest_at: datetime | None, now: datetime
) -> FreshnessResult:
    if newest_at is None:
        status, message = FreshnessStatus.UNKNOWN, _describe_absence(measure)
        if measure is not Measure.LAST_WRITE:  # there is no row, so that it is older than any
            status = FreshnessStatus.ERROR if freshness.error_after else FreshnessStatus.WARN
        return FreshnessResult(model, freshness, status, measure, message=message)
    age = now - newest_at
    if age < -AHEAD:
        status, message = FreshnessStatus.WARN, "The newest row is in the future: leave such rows out with `filter`."
    elif freshness.error_after and age > timedelta(seconds=freshness.error_after):
        status, message = FreshnessStatus.ERROR, ""
    elif freshness.warn_after and age > timedelta(seconds=freshness.warn_after):
        status, message = FreshnessStatus.WARN, ""
    else:
        status, message = FreshnessStatus.FRESH, ""
    return FreshnessResult(model, freshness, status, measure, newest_at, age, message)


def _newest_query(freshness: Freshness, table: str) -> str:
    if freshness.query:
        return freshness.query
    where = f" WHERE {freshness.filter}" if freshness.filter else ""
    moment = f"max(CAST({key_sql(freshness.loaded_at)} AS TIMESTAMP))"
    return f"SELECT {moment} AS newest FROM {quote_name(table)}{where}"


def _moment_of(value: Value) -> datetime | None:
    """Return a value of Spark as a moment in UTC; raise ValueError for one that is none."""
    match value:
        case None:
            return None
        case datetime():
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise ValueError(f"`{str(value)[:80]}` is not a time.")


def _describe_absence(measure: Measure) -> str:
    match measure:
        case Measure.ROWS:
            return "It has no row with such a time."
        case Measure.INTERVALS:
            return "No run has filled it yet."
        case Measure.LAST_WRITE:
            return "Nothing records its last write: it is empty or missing, or its format has no log. Set `loaded_at`."
