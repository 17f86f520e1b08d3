"""Compare a rebuilt table with the one it replaces by hashes of their rows."""

from collections.abc import Iterable

from mergeplan.planner.apply.physical_tables import physical_table, table_lease
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.snapshot.content_hash import ColumnSet
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore

WAIT = 60.0  # seconds to wait for the writer of the table


def compare_tables(comparisons: Iterable[Comparison], engine: Engine, store: StateStore, holder: str) -> None:
    """Hash the contents of the compared tables, each once for all its column sets, and store the results.

    A table is hashed under its lease: raise LeaseHeld if another process writes it for too long. Raise QueryError or
    Cancelled. A table over another table's files is left out, because others may write those: its readers are computed.
    """
    columns_by_table: dict[str, tuple[Snapshot, set[ColumnSet]]] = {}
    for comparison in comparisons:
        for snapshot in (comparison.old, comparison.new):
            columns_by_table.setdefault(snapshot.table, (snapshot, set()))[1].add(comparison.columns)
    for name, (snapshot, sets) in sorted(columns_by_table.items()):
        recorded_table = store.tables.get(name)
        # No results are stored for a table over others' files.
        if recorded_table is None or recorded_table.garbage or recorded_table.reads:
            continue
        with store.leases.hold(table_lease(name), holder, wait=WAIT) as lease:
            table = physical_table(snapshot, recorded_table.columns)
            unknown = sorted(sets)
            if not snapshot.kind.is_by_time:
                store.contents.record(name, engine.tables.contents(table, unknown), lease=lease)
                continue
            for interval in store.intervals.load_timelines([name])[name]:
                store.contents.record(name, engine.tables.contents(table, unknown, interval), lease=lease)
