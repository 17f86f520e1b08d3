"""Chained batch ids, which show whether a table holds rows that were never recorded."""

from datetime import datetime

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import Refused
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval, Timeline, batches, build_timeline
from mergeplan.planner.model.model import Model
from mergeplan.planner.tables.partitioning import BATCH


def batch_id(interval: Interval, held_time: Timeline) -> str:
    """Return the id (16 hex digits) of a batch that begins there when the table holds this time.

    A repeated batch, perhaps for more days by then, has the same id. The first half of the id encodes the held time.
    """
    return batch_id_prefix(held_time) + digest(str(interval.start))[:8]


def batch_id_prefix(held_time: Timeline) -> str:
    """Return the prefix (8 hex digits) of the ids of all batches merged into a table that holds this time.

    A table with a batch of this prefix has rows that are not recorded.
    """
    return digest(str(held_time[-1].end) if held_time else "")[:8]


def later_ids(model: Model, held_time: Timeline, end: datetime) -> tuple[str, ...]:
    """Return the ids of batches that begin from the held time's end on: an older copy of a state has none of them."""
    later_units = batches(model.cron, build_timeline(held_time[-1].end, end), 1) if held_time else ()
    return tuple(batch_id(unit, build_timeline(held_time[0].start, unit.start)) for unit in later_units)


def as_recorded(engine: Engine, table: Table, model: Model, held_time: Timeline, end: datetime) -> None:
    """Restore a table, for any batch size, to its recorded content: no batch may build on an interrupted one.

    Raise Refused if that takes more than one batch, and a repeated one counts twice.
    """
    if not (model.takes_back and held_time):
        return
    last_id = engine.tables.unmerge(table, batch_id_prefix(held_time))
    counts_twice = bool(model.by_key.when_matched) or model.reads_itself
    if counts_twice and any(last_id[:8] == id[:8] for id in later_ids(model, held_time, end)):
        message = f"`{table.name}` holds time after {held_time[-1].end:%Y-%m-%d %H:%M} UTC that the state lacks."
        hint = f"Use the newest state, or compute it again: `mergeplan plan --restate-model {model.name}`."
        raise Refused(message, place=model.place, hint=hint)


def batch_condition(model: Model, held_time: Timeline, end: datetime) -> str:
    """Return a condition (Spark SQL) on the rows of a table that batches are added to: their batch is recorded."""
    if not model.appends:
        return "true"
    later = "".join(f", '{id}'" for id in later_ids(model, held_time, end))
    return f"NOT startswith(`{BATCH.column}`, '{batch_id_prefix(held_time)}') AND `{BATCH.column}` NOT IN (''{later})"
