"""The columns of a table in the order in which Spark sees them: partition columns may come last."""

from collections.abc import Iterable

from mergeplan.planner.apply.backfill.table_columns import apply_declared_columns
from mergeplan.planner.apply.physical_tables import physical_table
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.snapshot.snapshot import Snapshot


def order_as_stored(snapshot: Snapshot, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of a model's table in Spark's order; its query returns them in the order of `columns`."""
    if not snapshot.kind.is_stored:
        return columns
    table = physical_table(snapshot, columns)
    hidden = tuple(Column(part.column, part.type) for part in table.partition_columns if part.hidden)
    if table.format in TABLE_FORMATS:
        return (*columns, *hidden)
    types = {column.name: column for column in (*columns, *hidden)}
    last = [part.column for part in table.partition_columns]
    return (*(c for c in columns if c.name not in last), *(types[name] for name in last))


def find_planned_columns(snapshot: Snapshot, query_columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of a table that is still to be created for this query; raise ProjectError if they differ."""
    columns = apply_declared_columns(snapshot.model, query_columns)
    return order_as_stored(snapshot, (*columns, *snapshot.model.history_columns))


def list_declared_columns(snapshot: Snapshot) -> tuple[Column, ...]:
    model = snapshot.model
    columns = model.columns or tuple(Column(name, "string") for name in (model.seed.header if model.seed else ()))
    return order_as_stored(snapshot, (*columns, *model.history_columns)) if columns else ()


def external_columns(engine: Engine, snapshots: Iterable[Snapshot]) -> dict[str, tuple[Column, ...]]:
    columns: dict[str, tuple[Column, ...]] = {}
    for snapshot in snapshots:
        try:
            columns[snapshot.table] = engine.table_columns(snapshot.name)
        except QueryError:
            columns[snapshot.table] = snapshot.model.columns
    return columns
