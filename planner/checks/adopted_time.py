"""The time that an adopted table holds, by its rows and by its declaration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mergeplan.planner import intervals
from mergeplan.planner.engine.table import time_partitioning
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.naming import key_sql
from mergeplan.planner.plan.schedule import EPOCH
from mergeplan.planner.tables.merge.dbt_snapshot import in_force

HELD_BY_DECLARATION = (
    "rows of kind {kind} do not say up to which day they are complete. Declare it: `end: 2026-01-31` in a file, or "
    "`--end`."
)


@dataclass(frozen=True)
class Found:
    """The number of rows in each unit of a model's time; `timeless` rows have no time."""

    units: Mapping[datetime, int] = field(default_factory=dict)
    timeless: int = 0

    @classmethod
    def parse(cls, rows: Iterable[Sequence[object]], cron: intervals.Cron) -> Found:
        units: dict[datetime, int] = {}
        timeless = 0
        for text, count in rows:
            if text is None:
                timeless += int(str(count))
                continue
            at = cron.cut(datetime.fromisoformat(str(text)).replace(tzinfo=UTC))
            units[at] = units.get(at, 0) + int(str(count))
        return cls(units, timeless)


def time_question(model: Model, columns: tuple[Column, ...], table: str) -> str:
    """Return the SELECT of the number of rows in each unit, or each day, of a model's time."""
    seconds, time = intervals.UNITS[model.cron.unit], model.by_time
    by = time_partitioning(columns, time.time_column, time.time_format, seconds, use_hidden_column=True)
    return f"SELECT {by.expression} AS unit, count(*) AS rows FROM {table} GROUP BY 1"


def key_question(model: Model, table: str) -> str:
    """Return the SELECT of the number of keys that are NULL or repeated; '' for a model without, or of several rows."""
    if not model.by_key.unique_key or model.by_key.delete_insert:
        return ""
    keys = ", ".join(map(key_sql, model.by_key.unique_key))
    null = " OR ".join(f"({key_sql(key)}) IS NULL" for key in model.by_key.unique_key)
    where = f" WHERE {in_force(model.history)}" if model.kind.fill is Fill.HISTORY and model.history else ""
    grouped = f"SELECT count(*) AS n, max({null}) AS empty FROM {table}{where} GROUP BY {keys}"
    return f"SELECT count(*) FROM ({grouped}) WHERE n > 1 OR empty"


def resolve_loaded_time(
    model: Model, table_content: Found, start: datetime, end: datetime, *, is_declared: bool
) -> tuple[intervals.Timeline, tuple[str, ...]]:
    """Return the time that a table holds between two moments, and notes about its other rows and empty time.

    Without a declaration a unit counts only if it has rows, because an empty one may never have been computed. Raise
    RequestError if rows would be lost.
    """
    if not model.kind.is_incremental:
        return intervals.build_timeline(EPOCH, model.cron.cut(end)), ()
    whole = intervals.build_timeline(model.cron.cut(start), model.cron.cut(end))
    if not model.kind.is_by_time:
        return whole, ()
    if table_content.timeless:
        column = model.by_time.time_column
        raise RequestError(f"{table_content.timeless} of its rows have no `{column}`: they are of no day.")
    older_count = sum(count for at, count in table_content.units.items() if at < model.cron.cut(start))
    if older_count and not is_declared:
        raise RequestError(
            f"{older_count} of its rows are older than {start:%Y-%m-%d}, where `{model.name}` begins: prod would lose "
            "them. Set `start` of the model, or declare `start` of the table."
        )
    with_rows = intervals.merge_intervals(
        intervals.Interval(at, model.cron.next_cut(at)) for at in table_content.units if start <= at < end
    )
    empty = intervals.subtract_intervals(whole, with_rows)
    loaded_time = whole if is_declared else with_rows
    if not with_rows:
        raise RequestError(f"it holds no rows between {start:%Y-%m-%d} and {end:%Y-%m-%d}.")
    return loaded_time, tuple(_time_notes(table_content, start, end, empty, is_declared, model))


def _time_notes(
    table_content: Found, start: datetime, end: datetime, empty: intervals.Timeline, is_declared: bool, model: Model
) -> Iterable[str]:
    for count, where in (
        (sum(n for at, n in table_content.units.items() if at < model.cron.cut(start)), f"before {start:%Y-%m-%d}"),
        (sum(n for at, n in table_content.units.items() if at >= end), f"from {end:%Y-%m-%d} on"),
    ):
        if count:
            yield f"{count} of its rows are {where} and are left out: prod no longer shows them."
    if empty:
        shown = ", ".join(map(str, empty[:3])) + (" and more" if len(empty) > 3 else "")
        yield f"No rows: {shown}. " + ("That counts as computed." if is_declared else "The next run computes it.")
