"""The physical table of a snapshot: its partitions, its lease, and whether it must be created."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from mergeplan.planner.apply.table_owner import check_owner
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.errors import PlanMoved
from mergeplan.planner.intervals import UNITS, Timeline, subtract_intervals
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.model.table_order import is_too_long
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.tables.partitioning import BATCH, parts_of

LEASE = "table:"
NOTHING: Mapping[str, Timeline] = {}


def table_lease(table: str) -> str:
    return f"{LEASE}{table}"


@contextmanager
def hold_table(store: StateStore, engine: Engine, table: str, holder: str, *, wait: float = 0.0) -> Iterator[Lease]:
    """Hold a table's lease; within the context this thread changes no table once the lease is lost."""
    with (
        store.leases.hold(table_lease(table), holder, wait=wait) as lease,
        engine.guarding(partial(store.leases.check, lease)),
    ):
        yield lease


def physical_table(snapshot: Snapshot, columns: tuple[Column, ...]) -> Table:
    return build_table(snapshot.model, snapshot.table, columns)


def build_table(model: Model, name: str, columns: tuple[Column, ...]) -> Table:
    storage, time = model.storage, model.by_time
    table = Table(
        name,
        columns,
        comment=model.metadata.description,
        format=storage.table_format if storage.table_format in TABLE_FORMATS else storage.storage_format,
        files=storage.storage_format,
        options=storage.physical_properties,
        parts=parts_of(model, columns),
        listed=model.kind.fill in (Fill.PARTITION, Fill.APPEND),
        sorted_by=storage.clustered_by,
        gateway=model.gateway,
    )
    if model.appends:
        return replace(table, parts=(BATCH, *table.parts))
    if not model.kind.is_by_time:
        return table
    hidden = not time.partition_by_time_column or is_too_long(time.time_column, storage.table_format)
    seconds = UNITS[model.cron.unit]
    cut = time_partitioning(columns, time.time_column, time.time_format, seconds, use_hidden_column=hidden)
    return replace(table, partitioning=cut)


def missing_tables(
    store: StateStore, engine: Engine, snapshots: Iterable[Snapshot], taking_over: Mapping[str, Timeline] = NOTHING
) -> tuple[Snapshot, ...]:
    """Return the snapshots, in their order, whose physical table must be created.

    Tables that are `taking_over` rows of another table do so again if all their time was forgotten, or if they lack any
    of these rows. Raise Refused if another state made one of them. Raise PlanMoved if a table that should hold rows was
    removed from the catalog: it is forgotten, and a new plan builds it again.
    """
    visible_snapshots = [snapshot for snapshot in snapshots if snapshot.kind.has_view]
    every_table = store.tables.all()
    recorded_tables = {name: table for name, table in every_table.items() if not table.garbage and table.columns}
    object_names = list_objects((snapshot.table for snapshot in visible_snapshots), engine)
    new_tables = (snapshot.table for snapshot in visible_snapshots if snapshot.table not in every_table)
    check_owner((table for table in new_tables if table.lower() in object_names), store, engine)
    lost = [s.table for s in visible_snapshots if s.table in recorded_tables and s.table.lower() not in object_names]
    if any(store.intervals.load_timelines(lost).values()):
        store.tables.forget(lost)
        raise PlanMoved(
            f"The table `{lost[0]}` is no longer in the catalog.", hint="Plan again: it will be built again."
        )
    # a plan counts the rows that such a table will take over as if it held them
    timelines = store.intervals.load_timelines(taking_over)
    hollow = {t for t, timeline in timelines.items() if not timeline or subtract_intervals(taking_over[t], timeline)}
    return tuple(s for s in visible_snapshots if s.table not in recorded_tables or s.table in lost or s.table in hollow)


def list_objects(names: Iterable[str], engine: Engine) -> frozenset[str]:
    """Return all tables and views in the schemas of these names, in lower case."""
    schemas = sorted({name.rpartition(".")[0] for name in names})
    return frozenset(f"{schema}.{name}".lower() for schema in schemas for name in engine.catalog.objects(schema))
