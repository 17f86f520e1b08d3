"""The janitor: find expired environments and unused physical tables, and drop them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from mergeplan.planner.apply.events import Emit, TableDropped
from mergeplan.planner.apply.physical_tables import hold_table
from mergeplan.planner.apply.promotion.promotion import drop_environment
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import LeaseHeld, QueryError
from mergeplan.planner.model.graph import reach_names
from mergeplan.planner.naming import quote_name
from mergeplan.planner.plan.costs import TableSize
from mergeplan.planner.snapshot.environment import PROD, Environment
from mergeplan.planner.state.environments import HistoryAction, Revision
from mergeplan.planner.state.promotions import Promotion
from mergeplan.planner.state.store import StateStore

RETENTION = timedelta(days=14)
OPEN = timedelta(days=1)  # how long a plan may still be applied
ROUNDS = 5


def sweep_tables(
    store: StateStore,
    engine: Engine,
    now: datetime,
    retention: timedelta = RETENTION,
    *,
    orphans: bool = False,
    emit: Emit,
) -> tuple[str, ...]:
    """Drop the tables that are no longer needed; return their names.

    Needed is what an environment shows, what its history showed less than `retention` ago, what a plan of the last day,
    one that is being applied or an unfinished promotion refers to, and what a needed physical view reads. With
    `orphans` the history and the plans of dropped environments do not count, and the history of all others does,
    however old it is.
    """
    dropped: list[str] = []
    for _ in range(ROUNDS):  # repeated if an environment changes during the sweep
        generation = store.environments.generation()
        doomed = find_unused_tables(store, now, retention, orphans=orphans)
        if _drop_all(store, engine, doomed, generation, dropped, emit):
            break
    for schema in sorted({name.rpartition(".")[0] for name in dropped}):
        engine.catalog.drop_schema_if_empty(schema)
    return tuple(dropped)


def find_expired_environments(store: StateStore, now: datetime, pinned_names: Collection[str] = ()) -> tuple[str, ...]:
    protected_names = {PROD, *pinned_names}
    return tuple(
        environment.name
        for environment in store.environments.all()
        if environment.expires_at and environment.expires_at <= now and environment.name not in protected_names
    )


def drop_expired(
    store: StateStore, engine: Engine, now: datetime, pinned_names: Collection[str] = (), *, emit: Emit
) -> tuple[str, ...]:
    """Drop the environments that are expired, except one that a process is changing; return their names.

    Their tables are stored as long as those of any other history, so that what was built in one can still be promoted.
    """
    dropped = []
    for name in find_expired_environments(store, now, pinned_names):
        try:
            with store.leases.hold(name, "the janitor") as lease:
                if name in find_expired_environments(
                    store, now, pinned_names
                ):  # a plan may have renewed it in the meantime
                    drop_environment(store, engine, lease, emit=emit, who="the janitor")
                    dropped.append(name)
        except LeaseHeld:
            continue
    return tuple(dropped)


def find_unused_tables(
    store: StateStore, now: datetime, retention: timedelta = RETENTION, *, orphans: bool = False
) -> list[str]:
    """Return the tables that a sweep would drop now, and those of an unfinished sweep."""
    recorded_tables = store.tables.all()
    past = _Past.load(store)
    needed = set().union(*(past.tables(row) for row in past.live_revisions(now, retention, orphans)))
    applied = [holder.removeprefix("plan ") for holder in store.leases.list_holders()]  # which may take days
    for plan in store.plans.since(now - OPEN, applied):
        if not (orphans and plan.created_at <= past.dropped_at.get(plan.environment, plan.created_at - OPEN)):
            needed |= set(plan.tables)
    left_behind = past.orphan_drop_times() if orphans else {}
    for name, table in recorded_tables.items():
        if table.touched_at > now - OPEN and table.touched_at > left_behind.get(name, table.touched_at - OPEN):
            needed.add(name)
    needed = reach_names(needed, {name: table.reads for name, table in recorded_tables.items()})
    return [name for name, table in recorded_tables.items() if table.garbage or name not in needed]


def _drop_all(
    store: StateStore,
    engine: Engine,
    doomed_tables: Iterable[str],
    seen_generation: int,
    dropped_tables: list[str],
    emit: Emit,
) -> bool:
    """Mark, drop and forget one table after another; return False if an environment changed meanwhile.

    The remaining tables must then be judged again. A crash after the mark leaves garbage that no promotion can show and
    that the next sweep drops.
    """
    views = {view.table.rpartition("__")[0]: view.name for view in store.environments.get(PROD).views_by_name.values()}
    for name in doomed_tables:
        view_name = views.get(name.rpartition("__")[0])
        view = engine.catalog.standing(view_name) if view_name else None
        if view and quote_name(name) in view.sql:
            continue  # prod shows it by a newer state, of which this one is a copy
        try:
            with hold_table(store, engine, name, "the janitor") as lease:
                if not store.tables.mark_garbage(name, lease=lease, seen_generation=seen_generation):
                    return False
                engine.tables.drop(name)
                store.tables.forget([name], lease=lease)
        except LeaseHeld:
            continue  # a process is writing it, and so needs it, or took over while this one was suspended
        dropped_tables.append(name)
        emit(TableDropped(name))
    return True


@dataclass(frozen=True)
class _Past:
    """The history of every environment, newest first, and the tables that each revision showed."""

    store: StateStore
    histories: Mapping[str, tuple[Revision, ...]]
    dropped_at: Mapping[str, datetime]  # dropped environments
    of_snapshot: Mapping[str, str]  # id -> table

    @classmethod
    def load(cls, store: StateStore) -> _Past:
        histories = {
            name: tuple(rows) for name, rows in groupby(store.environments.history(), lambda row: row.environment)
        }
        gone = {
            name: in_force[0].at
            for name, rows in histories.items()
            if (in_force := [row for row in rows if row.action is not HistoryAction.UNDONE])
            and in_force[0].action is HistoryAction.DROPPED
        }
        ids = {id for rows in histories.values() for row in rows for id in row.snapshots.values()}
        return cls(
            store, histories, gone, {id: snapshot.table for id, snapshot in store.snapshots.get_by_id(ids).items()}
        )

    def tables(self, row: Revision) -> set[str]:
        return {self.of_snapshot[id] for id in row.snapshots.values()}

    def live_revisions(self, now: datetime, retention: timedelta, orphans: bool) -> list[Revision]:
        """Return the revisions in force, and those that a rollback may still use, counted from their replacement."""
        live_rows = [
            row for promotion in self.store.promotions.pending() for row in self._promotion_revisions(promotion)
        ]
        for name, rows in self.histories.items():
            if orphans and name in self.dropped_at:
                continue
            replaced: datetime | None = None  # None: still in force
            for row in rows:
                if row.action is HistoryAction.UNDONE:
                    continue
                if orphans or replaced is None or replaced > now - retention:
                    live_rows.append(row)
                replaced = row.at
        return live_rows

    def orphan_drop_times(self) -> Mapping[str, datetime]:
        times: dict[str, datetime] = {}
        for name, at in self.dropped_at.items():
            planned = [plan.tables for plan in self.store.plans.since(at - OPEN) if plan.environment == name]
            shown = [self.tables(row) for row in self.histories[name]]
            for table in set().union(*shown, *planned):
                times[table] = max(at, times.get(table, at))
        return times

    def _promotion_revisions(self, promotion: Promotion) -> list[Revision]:
        revisions = (promotion.old.revision, promotion.new.revision)
        return [row for row in self.histories[promotion.environment] if row.revision in revisions]


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
