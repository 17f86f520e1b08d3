"""The sizes of prod's tables, measured where their files changed since the last time."""

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.plan.costs import TableSize
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.store import StateStore


def measure_sizes(store: StateStore, engine: Engine, environment: Environment) -> None:
    """Record the bytes of the files of each table that was written since it was measured; no row is read."""
    stored_tables = [snapshot.table for snapshot in environment.snapshots.values() if snapshot.kind.is_stored]
    # A write that ends while tables are measured is later than the look: the next janitor measures that table again.
    unmeasured, looked_at = store.tables.find_unmeasured(stored_tables)
    for name in sorted(unmeasured):
        try:
            size = engine.tables.size(name)
        except QueryError:
            continue  # it is dropped or written just now: the next janitor measures it
        if size is not None:
            store.tables.record_size(name, TableSize(size, looked_at))
