"""Old versions of tables with a transaction log: which tables may lose them, why others may not, and their removal.

Only the table's own last merge, which its format looks after, refers to an old version: environments, their history and
plans name tables. A table over old files of another table is a clone, and while one exists its source keeps everything.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from mergeplan.planner.apply.physical_tables import hold_table
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import LeaseHeld, QueryError
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.physical_tables import PhysicalTable
from mergeplan.planner.state.store import StateStore


@dataclass(frozen=True)
class Kept:
    table: str
    reason: str


@dataclass(frozen=True)
class OldVersions:
    removed: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()


def find_old_versions(store: StateStore) -> OldVersions:
    """Return the tables whose old versions may be removed now, by the state: Spark alone knows a last merge's needs."""
    shown = [snapshot for environment in store.environments.all() for snapshot in environment.snapshots.values()]
    return select_old_versions(shown, store.tables.all(), physical_views(store.snapshots.all()))


def remove_old_versions(store: StateStore, engine: Engine, keep: timedelta, now: datetime) -> OldVersions:
    """Remove the versions of tables that were replaced longer ago than `keep`, each under its table's lease.

    A table that Spark refuses to clean stays as it is. A removal that is killed at any moment is repeated the next
    time.
    """
    views, planned = physical_views(store.snapshots.all()), find_old_versions(store)
    removed, kept_tables = list[str](), list(planned.kept)
    for name in planned.removed:
        try:
            with hold_table(store, engine, name, "the janitor"):
                # A process that clones a table holds its lease until the clone is recorded: none can come from here on.
                if reason := reason_to_keep(name, store.tables.all(), views):
                    kept_tables.append(Kept(name, reason))
                    continue
                result = engine.tables.expire(name, keep, now)
        except LeaseHeld:
            kept_tables.append(Kept(name, "it is being written"))
            continue
        except QueryError as error:
            kept_tables.append(Kept(name, error.message.partition("\n")[0]))
            continue
        if result.removed:
            removed.append(name)
        elif result.kept:
            kept_tables.append(Kept(name, result.kept))
    return OldVersions(tuple(removed), tuple(sorted(kept_tables, key=lambda version: version.table)))


def select_old_versions(
    snapshots: Iterable[Snapshot], known_tables: Mapping[str, PhysicalTable], views: Collection[str]
) -> OldVersions:
    """Select, among the tables that environments show, those whose old versions may go.

    Only shown tables are written again and again. `views` are tables that are physical views: they read other tables as
    they are now.
    """
    formats: dict[str, set[str]] = {}
    for snapshot in snapshots:
        if snapshot.kind.is_stored:
            formats.setdefault(snapshot.table, set()).add(snapshot.model.storage.table_format)
    with_log = sorted(name for name, table_formats in formats.items() if table_formats <= set(TABLE_FORMATS))
    reasons = {name: reason_to_keep(name, known_tables, views) for name in with_log}
    kept_tables = tuple(Kept(name, reason) for name, reason in reasons.items() if reason)
    return OldVersions(tuple(name for name, reason in reasons.items() if not reason), kept_tables)


def reason_to_keep(name: str, known_tables: Mapping[str, PhysicalTable], views: Collection[str]) -> str:
    """Return why all versions of a table stay, '' if they need not; a reader that may be no view counts as a clone."""
    table = known_tables.get(name)
    if table is None or table.garbage or not table.columns:
        return "it is not in the state, or about to be dropped"
    clones = sorted(
        reader.name for reader in known_tables.values() if name in reader.reads and reader.name not in views
    )
    return f"`{clones[0]}` was made from it, and may read its files" if clones else ""


def physical_views(snapshots: Iterable[Snapshot]) -> frozenset[str]:
    snapshots = tuple(snapshots)
    views = {snapshot.table for snapshot in snapshots if snapshot.kind.is_view}
    return frozenset(views - {snapshot.table for snapshot in snapshots if not snapshot.kind.is_view})
