"""Rollback: the revision to which an environment goes back, what moves and what lacks time, and the rollback itself.

`decide_rollback` is pure: what is shown beforehand is what is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from mergeplan.planner.apply.events import Emit, Promoted
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Refused, RequestError
from mergeplan.planner.intervals import Timeline, build_timeline, merge_intervals, subtract_intervals
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.plan.build import build_run
from mergeplan.planner.plan.restatement import ALL_TIME, outdate_rows
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.snapshot.environment import PROD, Environment, view_changes
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.environments import HistoryAction, Revision
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.promotions import BY_ONE, SwapOptions
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.wording import first_names

WAIT = 60.0  # seconds to wait for the writer of a table
NOT_IN_FORCE = (HistoryAction.UNDONE, HistoryAction.DROPPED)


@dataclass(frozen=True)
class RollbackFacts:
    """The facts of a rollback: the environment now and then, existing tables and their time.

    `since` are the revisions after the target, newest first. `written` is, by table, the start of what was computed
    since then. `drifted` are tables that an override or a comparison kept, over other rows, in one of these revisions.
    """

    now: datetime
    old: Environment
    earlier: Environment
    target: Revision
    since: tuple[Revision, ...]
    tables: frozenset[str]
    timelines: Mapping[str, Timeline]
    prod: Environment
    drifted: frozenset[str]
    written: Mapping[str, datetime]


@dataclass(frozen=True)
class MovedView:
    """A view and the table that it shows before and after; None if it comes, or goes."""

    model: str
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Behind:
    """A table that is shown again and lacks time.

    `held` is what it holds, `lacks` what the model's current table holds and it does not, and `due` what the next run
    computes in it, as far as signals let it. A model that comes back has no current table.
    """

    shown: Snapshot
    held: Timeline
    lacks: Timeline
    due: Timeline


@dataclass(frozen=True)
class RollbackPlan:
    """The effects of a rollback: the revision that is shown again, its views, and what its tables lack.

    `until` is when the environment left that revision, and `since` are the revisions that it takes back, newest first.
    It cannot be done if tables are `gone`. Of tables that both show it `forgets` what came from tables taken back.
    """

    old: Environment
    new: Environment
    target: Revision
    until: datetime
    since: tuple[Revision, ...]
    views: tuple[MovedView, ...]
    behind: tuple[Behind, ...]
    gone: tuple[str, ...]
    forgets: Mapping[str, Timeline]

    @property
    def refusal(self) -> Refused | None:
        """The reason why it cannot be done; None if it can."""
        if not self.gone:
            return None
        tables = first_names([f"`{table}`" for table in self.gone], 1)
        message = f"The table {tables} of revision {self.target.revision} is gone."
        hint = "Take the change back in the project's files and plan: the tables are built again."
        return Refused(message, hint=hint)


@dataclass(frozen=True)
class AskedBy:
    who: str = ""
    note: str = ""
    swap: SwapOptions = BY_ONE


def build_rollback(store: StateStore, name: str, to_revision: int | None, now: datetime) -> RollbackPlan:
    """Return what a rollback would do by the current state, without changing anything or using Spark.

    Raise RequestError if there is no such revision, and Refused for the one that is in force.
    """
    old, history = store.environments.get(name), store.environments.history(name)
    target = earlier_revision(history, old, to_revision)
    earlier = store.environments.get_revision(name, target.revision)
    tables = frozenset(table.name for table in store.tables.all().values() if not table.garbage)
    shown = {snapshot.table for environment in (old, earlier) for snapshot in environment.snapshots.values()}
    timelines, prod = store.intervals.load_timelines(shown), store.environments.get(PROD)
    since = tuple(row for row in history if row.revision > target.revision and row.action is not HistoryAction.UNDONE)
    later = (s for row in since for s in store.environments.get_revision(name, row.revision).snapshots.values())
    pairs = ((snapshot, earlier.snapshots.get(snapshot.name)) for snapshot in later if snapshot.forced)
    drifted = frozenset(a.table for a, b in pairs if b and (not b.forced or a.raw != b.raw))
    written = store.costs.find_written(since[-1].at)
    return decide_rollback(RollbackFacts(now, old, earlier, target, since, tables, timelines, prod, drifted, written))


def apply_rollback(
    store: StateStore, engine: Engine, lease: Lease, plan: RollbackPlan, request: AskedBy = AskedBy(), *, emit: Emit
) -> Promoted:
    """Promote an earlier revision again; raise Refused if a table is gone, PlanMoved if the environment changed."""
    if plan.refusal:
        raise plan.refusal
    for table, timeline in plan.forgets.items():
        with store.leases.hold(table_lease(table), f"rollback of {plan.old.name}", wait=WAIT) as table_hold:
            for interval in timeline:
                store.intervals.forget(table, interval, lease=table_hold)
    note = request.note or f"back to revision {plan.target.revision}"
    action = HistoryAction.ROLLED_BACK
    promotion_request = Wanted(plan.old, plan.new, plan.target.plan_id, request.who, note, action, request.swap)
    return promote_views(store, engine, lease, promotion_request, emit=emit)


def decide_rollback(facts: RollbackFacts) -> RollbackPlan:
    old, target = facts.old, facts.target
    # Its views keep their current names, and its expiry stays the same.
    new = replace(facts.earlier, revision=0, naming=old.naming, expires_at=old.expires_at)
    needed = {snapshot.table for snapshot in new.snapshots.values() if snapshot.kind.has_view}
    behind = {table.shown.name: table for table in _find_tables_behind(facts, new)}
    drifted = {table.shown.name: table for table in _find_drifted_tables(facts, new)}
    return RollbackPlan(
        old=old,
        new=new,
        target=target,
        until=facts.since[-1].at,
        since=facts.since,
        views=tuple(_view_moves(old, new)),
        behind=tuple(table for _, table in sorted({**behind, **drifted}.items())),
        gone=tuple(sorted(needed - facts.tables)),
        forgets={table.shown.table: table.lacks for table in drifted.values()},
    )


def earlier_revision(history: tuple[Revision, ...], now: Environment, to_revision: int | None) -> Revision:
    """Return the revision in `history` (newest first) to go back to; raise RequestError if none, Refused if current."""
    if not now.exists:
        raise RequestError(f"There is no environment `{now.name}`.", hint="See `mergeplan environments`.")
    in_force = {row.revision: row for row in history if row.action not in NOT_IN_FORCE}
    current = in_force[now.revision]
    if to_revision is None:
        candidates = [
            row for row in in_force.values() if row.revision < now.revision and row.snapshots != current.snapshots
        ]
        if not candidates:
            raise RequestError(f"`{now.name}` has no earlier revision.", hint="There is nothing to go back to.")
        return candidates[0]
    if to_revision not in in_force:
        hint = f"See `mergeplan environments {now.name}` for those it has."
        raise RequestError(f"`{now.name}` has no revision {to_revision} to go back to.", hint=hint)
    if to_revision == now.revision:
        raise Refused(f"`{now.name}` is at revision {to_revision} already.")
    return in_force[to_revision]


def _view_moves(old: Environment, new: Environment) -> Iterator[MovedView]:
    changes, old_tables = view_changes(old, new), {view.model: view.table for view in old.views_by_name.values()}
    shown = (*changes.added, *changes.swapped)
    moves = [MovedView(view.model, view.name, old_tables.get(view.model), view.table) for view in shown]
    moves += [MovedView(view.model, view.name, view.table, None) for view in changes.dropped]
    yield from sorted(moves, key=lambda move: move.name)


def _find_tables_behind(facts: RollbackFacts, new: Environment) -> Iterator[Behind]:
    loaded = Loaded(facts.timelines)
    run = build_run(new, loaded, Window(facts.now), new if new.name == PROD else facts.prod)
    due = {change.name: change.missing for change in run.changes}
    for name, snapshot in sorted(new.snapshots.items()):
        today = facts.old.snapshots.get(name)
        if not snapshot.kind.is_stored or (today and today.table == snapshot.table):
            continue
        timeline = loaded.timeline_of(snapshot)
        lacks = subtract_intervals(loaded.timeline_of(today), timeline) if today else ()
        if lacks or (due.get(name) and not today):  # time that the current table lacks too does not count
            yield Behind(snapshot, timeline, lacks, due.get(name, ()))


def _find_drifted_tables(facts: RollbackFacts, new: Environment) -> Iterator[Behind]:
    """Yield the tables that hold time which was filled from tables that are taken back, also through other tables."""
    graph, outdated = graph_of({name: shown.model for name, shown in new.snapshots.items()}), dict[str, Timeline]()
    for name in graph.order:
        snapshot, above = new.snapshots[name], (outdated.get(parent, ()) for parent in graph.parents[name])
        time = ALL_TIME if snapshot.table in facts.drifted else merge_intervals(chain.from_iterable(above))
        if not snapshot.kind.is_stored:
            outdated[name] = time
        elif start := facts.written.get(snapshot.table):
            time = subtract_intervals(time, build_timeline(ALL_TIME[0].start, start))
            held_time = facts.timelines.get(snapshot.table, ())
            if gone := outdate_rows(snapshot, held_time, time, keeps_keys=True):
                outdated[name] = gone
                yield Behind(snapshot, subtract_intervals(held_time, gone), gone, gone)
