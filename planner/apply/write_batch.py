"""Writing one batch as the kind of its model asks for; written again, it leaves the table as the first time did."""

from __future__ import annotations

from dataclasses import replace

from planner.apply.create_tables import Layout, shaped
from planner.engine.protocol import Engine, Written
from planner.engine.table import Table
from planner.intervals import Interval, Timeline
from planner.model.model import Model
from planner.snapshot.snapshot import Snapshot
from planner.tables.batch_ids import batch_mark
from planner.tables.merge.merge import merged
from planner.tables.partitioning import BATCH
from planner.tables.self_reference import before


def write_batch(
    layout: Layout, engine: Engine, table: Table, snapshot: Snapshot, interval: Interval, held: Timeline
) -> Written:
    """Compute the rows of an interval and bring them into the table, which holds the time `held` by what is recorded.

    A table of which nothing is recorded counts as empty, whatever a batch that was cut off has left in it.
    """
    with layout.rows(snapshot.model, interval) as query:
        return _write(layout, engine, table, snapshot.model, query, interval, held)


def _write(
    layout: Layout, engine: Engine, table: Table, model: Model, given: str, interval: Interval, held: Timeline
) -> Written:
    mark, own_engine = batch_mark(interval, held), engine.on(table.gateway)

    def query(own: str) -> str:
        found = layout.query(model, interval, own) if own else given
        if "ignore" not in (model.on_destructive_change, model.on_additive_change):
            return found
        return shaped(found, own_engine.schema(found), tuple(c for c in table.columns if c not in model.kept_columns))

    if model.kind.is_by_time:
        return engine.tables.replace_interval(table, query(before(model, table, interval, held)), interval)
    if model.unique_key:

        def rows(base: str) -> str:
            own = before(model, table, interval, held, base=base)
            return merged(model, query(own), base, table.columns, interval, layout.now)

        if not held:
            return engine.tables.replace(table, rows(""))
        return engine.tables.merge(table, rows, mark)
    if model.appends:
        appended = query(before(model, table, interval, held))
        first = replace(BATCH, expression=f"'{mark}'")
        return engine.tables.replace_partitions(
            replace(table, parts=(first, *table.parts[1:])), appended, first=mark, others=not held
        )
    if model.kind.is_order_dependent and table.parts:
        return engine.tables.replace_partitions(table, query(""), others=not held)
    return engine.tables.replace(table, query(""))


def take_back(engine: Engine, table: Table, model: Model, interval: Interval, held: Timeline) -> bool:
    """Leave the table as it was before the batch that was just merged; False when the kind has no such way."""
    if not model.unique_key or not held:
        return False
    engine.tables.unmerge(table, batch_mark(interval, held))
    return True
