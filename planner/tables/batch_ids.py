"""Chained batch ids, which show whether a table holds rows that were never recorded."""

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval, Timeline
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


def as_recorded(engine: Engine, table: Table, model: Model, held_time: Timeline) -> None:
    """Restore a table, for any batch size, to its recorded content: no batch may build on an interrupted one."""
    if model.takes_back and held_time:
        engine.tables.unmerge(table, batch_id_prefix(held_time))


def batch_condition(model: Model, held_time: Timeline) -> str:
    """Return a condition (Spark SQL) on the rows of a table that batches are added to: their batch is recorded."""
    if not model.appends:
        return "true"
    return f"NOT startswith(`{BATCH.column}`, '{batch_id_prefix(held_time)}')"
