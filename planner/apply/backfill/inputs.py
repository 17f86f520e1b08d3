"""The inputs of a table: its query, and the contents of the tables that it reads.

A deterministic query returns the same rows until one of these tables is written. So a table that is due, and was filled
by the same query over the same tables, already holds its rows. Our tables have a mark in the state, other tables the
version that their format gives them.
"""

from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.first_alone import FirstAlone
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.plan.stages import BackfillTask
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore


class Versions:
    """The versions of other owners' tables; a run asks Spark only once about a table without one."""

    def __init__(self) -> None:
        self._first = FirstAlone()
        self._unversioned: set[str] = set()

    def are_missing(self, names: frozenset[str]) -> bool:
        return not self._unversioned.isdisjoint(names)

    def version(self, engine: Engine, name: str) -> str:
        with self._first.turn(name):
            if name in self._unversioned:
                return ""
            try:
                version = engine.tables.version(name)
            except QueryError:
                version = ""
            if not version:
                self._unversioned.add(name)
            return version


def inputs_of(
    layout: Layout,
    task: BackfillTask,
    todo: tuple[Interval, ...],
    store: StateStore,
    engine: Engine,
    versions: Versions,
) -> str:
    """Return a digest of what the table would be made from now; '' if its rows may depend on more.

    The text of the query has dates and physical names in it: another date, or another version of a table, is another
    query. Call this before the query runs: what is written meanwhile then counts as a new input of the next run.
    """
    snapshot = task.snapshot
    if (
        task.copies
        or snapshot.model.schedule.allow_partials
        or task.late
        or len(todo) != 1
        or not _follows_from_tables(snapshot)
    ):
        return ""
    own_tables, foreign_tables = source_tables(layout, snapshot.name)
    marks = store.contents.mark_tables({*own_tables, snapshot.table})
    if marks is None or versions.are_missing(foreign_tables):
        return ""
    read = [part for name in sorted(own_tables) for part in (name, marks[name])]
    for name in sorted(foreign_tables):
        version = versions.version(engine.engine_for(snapshot.model.gateway), name)
        if not version:
            return ""
        read += ["of others", name, version]
    return digest("inputs", layout.query(snapshot.model, todo[0]), *read)[:32]


def source_tables(layout: Layout, name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tables whose rows a model's query reads, through views and embedded models: ours, and others'."""
    own_tables, foreign_tables = set[str](), set[str]()
    for parent in layout.snapshots[name].model.depends_on:
        snapshot = layout.snapshots.get(parent)
        if snapshot is None or snapshot.kind.is_external:
            foreign_tables.add(parent)
        elif snapshot.kind.is_stored:
            own_tables.add(snapshot.table)
        else:
            through = source_tables(layout, parent)
            own_tables, foreign_tables = own_tables | through[0], foreign_tables | through[1]
    return frozenset(own_tables), frozenset(foreign_tables)


def _follows_from_tables(snapshot: Snapshot) -> bool:
    """Return True if a query alone makes the table's rows, without chance, a clock, code or a statement."""
    model, meaning = snapshot.model, snapshot.meaning
    if snapshot.kind.fill is not Fill.WHOLE or model.python or model.materialization:
        return False
    if model.statements.around or model.schedule.allow_partials:
        return False
    return meaning is not None and not meaning.volatile and not meaning.volatile_rows
