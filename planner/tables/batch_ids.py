"""Chained batch ids: they tell whether a table holds rows that were never recorded."""

from __future__ import annotations

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval, Timeline
from mergeplan.planner.model.model import Model
from mergeplan.planner.tables.partitioning import BATCH


def batch_id(interval: Interval, held_time: Timeline) -> str:
    """The name (16 hex digits) of a batch that begins there when the table holds this: tried again, perhaps for more
    days by then, it is the same batch. Its first half tells what the table held."""
    return batch_id_prefix(held_time) + digest(str(interval.start))[:8]


def batch_id_prefix(held_time: Timeline) -> str:
    """What the ids of all batches begin with (8 hex digits) that were merged into a table that holds this: one that
    bears it has rows of which nothing is recorded."""
    return digest(str(held_time[-1].end) if held_time else "")[:8]


def as_recorded(engine: Engine, table: Table, model: Model, held_time: Timeline) -> None:
    """Leave a table as it was when it came to hold what is recorded: a batch that was interrupted is not to be built
    on, however long the model's batches are by now."""
    if model.takes_back and held_time:
        engine.tables.unmerge(table, batch_id_prefix(held_time))


def batch_condition(model: Model, held_time: Timeline) -> str:
    """A condition (Spark SQL) on the rows of a table that batches are added to: that their batch is recorded."""
    if not model.appends:
        return "true"
    return f"NOT startswith(`{BATCH.column}`, '{batch_id_prefix(held_time)}')"
