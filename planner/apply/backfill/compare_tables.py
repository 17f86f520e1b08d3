"""Compare a rebuilt table with the one it replaces by hashes of their rows."""

from __future__ import annotations

from collections.abc import Iterable

from mergeplan.planner.apply.physical_tables import physical_table, table_lease
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.snapshot.content_hash import ColumnSet
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore

WAIT = 60.0  # seconds to wait for the writer of the table


def compare_tables(comparisons: Iterable[Comparison], engine: Engine, store: StateStore, holder: str) -> None:
    """Hash what the compared tables hold, each once for all that is asked of it, and keep the answers.

    A table is hashed while nobody writes it: LeaseHeld when somebody does for too long. QueryError, Cancelled. One that
    stands on another one's files is left out, and what reads it is computed: others may write those.
    """
    asked: dict[str, tuple[Snapshot, set[ColumnSet]]] = {}
    for comparison in comparisons:
        for snapshot in (comparison.old, comparison.new):
            asked.setdefault(snapshot.table, (snapshot, set()))[1].add(comparison.columns)
    for name, (snapshot, sets) in sorted(asked.items()):
        known = store.tables.get(name)
        if known is None or known.garbage or known.reads:  # of one over others' files nothing is ever kept
            continue
        with store.leases.hold(table_lease(name), holder, wait=WAIT) as lease:
            table = physical_table(snapshot, known.columns)
            unknown = sorted(sets)
            if not snapshot.kind.is_by_time:
                store.contents.record(name, engine.tables.contents(table, unknown), lease=lease)
                continue
            for interval in store.intervals.load_timelines([name])[name]:
                store.contents.record(name, engine.tables.contents(table, unknown, interval), lease=lease)
