"""Promotion: an environment's new map in one transaction, then its views one by one, so that a crash loses neither.

The journal says only that a promotion is pending; a view that already shows what it should is left alone. Whoever
finds it pending therefore simply does it all again, from wherever it stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from planner.apply.events import (
    Emit,
    EnvironmentAwaited,
    Promoted,
    PromotionFound,
    PromotionRecovered,
    PromotionUndone,
    Recovery,
    Stage,
    StageStarted,
    ViewDropped,
    ViewSwapped,
)
from planner.engine.protocol import Engine
from planner.errors import Cancelled, LeaseHeld, QueryError, Refused, RequestError
from planner.model.model import Column
from planner.parsing.macros.expand import dates
from planner.parsing.render import stage_statements
from planner.parsing.sql.macro_scope import EVALUATING
from planner.snapshot.environment import PROD, Environment, View, ViewChanges, view_changes, views_of
from planner.state.environments import Action, Revision
from planner.state.leases import Lease
from planner.state.promotions import Promotion
from planner.state.store import StateStore

THREADS = 2  # the catalog has one lock: more of them gain nothing
ATTEMPTS = 3
PAUSE_SECONDS = 0.2
IN_ITS_PLACE = ("EXPECT_VIEW_NOT_TABLE", "WRONG_COMMAND_FOR_OBJECT_TYPE")  # a table stands where a view should
Spared = Callable[[View], bool]
RECOVERY = "recovery"  # how it calls itself while it holds an environment


def promote(
    store: StateStore,
    engine: Engine,
    lease: Lease,
    old: Environment,
    new: Environment,
    *,
    emit: Emit,
    plan_id: str = "",
    who: str = "",
    note: str = "",
    action: Action = Action.PROMOTED,
) -> Promoted:
    """Make the environment show `new` in place of `old`: all of it or nothing.

    PlanMoved when it is no longer `old`, Refused when a table is gone, LeaseHeld when the lease was lost; QueryError or
    Cancelled when a view cannot be swapped, and then every view is back where it was.
    """
    promotion = store.begin_promotion(lease, old, new, plan_id=plan_id, who=who, note=note, action=action)
    return _carry_out(store, engine, lease, promotion, emit)


def recover(
    store: StateStore,
    engine: Engine,
    emit: Emit,
    lease: Lease | None = None,
    *,
    await_: Collection[str] = (),
    wait: float = 0.0,
) -> tuple[PromotionRecovered, ...]:
    """Finish every promotion that a crash left pending, or undo it where it cannot be finished; what became of each.

    One whose environment another living process holds is that process's own business, and is waited for `wait` seconds
    when it is among `await_`: LeaseHeld when that is not enough. `lease` is the one we hold.
    """
    recovered: list[PromotionRecovered] = []
    for name in dict.fromkeys(promotion.environment for promotion in store.pending_promotions()):
        if lease and lease.name == name:
            recovered += _recover_one(store, engine, lease, emit)
            continue
        try:
            with _turn(store, name, emit, wait if name in await_ else 0.0) as taken:
                recovered += _recover_one(store, engine, taken, emit)
        except LeaseHeld:
            if name in await_:
                raise
    return tuple(recovered)


def check_not_stuck(recovered: Iterable[PromotionRecovered], names: Collection[str]) -> None:
    """Refused when the promotion of one of these environments could be neither finished nor undone."""
    for each in recovered:
        if each.ended is Recovery.STUCK and each.environment in names:
            raise Refused(
                f"The promotion of `{each.environment}` to revision {each.revision} was interrupted, and can be "
                f"neither finished nor undone now: {each.message}",
                hint="Mend that and run this again: until then its views may be of two revisions.",
            )


@contextmanager
def _turn(store: StateStore, name: str, emit: Emit, wait: float) -> Iterator[Lease]:
    """The lease of an environment, waited for after saying for whom."""
    with ExitStack() as held:
        try:
            lease = held.enter_context(store.lease(name, RECOVERY))
        except LeaseHeld:
            if not wait:
                raise
            holder = store.holder(name)
            emit(EnvironmentAwaited(name, holder.holder if holder else ""))
            lease = held.enter_context(store.lease(name, RECOVERY, wait=wait))
        yield lease


def rollback(
    store: StateStore,
    engine: Engine,
    lease: Lease,
    to_revision: int | None = None,
    *,
    emit: Emit,
    who: str = "",
    note: str = "",
) -> Promoted:
    """Make the environment show again what it showed at a revision (None: the last that was different).

    RequestError when there is none, Refused when a table that it needs is gone.
    """
    old = store.environment(lease.name)
    target = _earlier(store.history(lease.name), old, to_revision)
    earlier = store.at_revision(lease.name, target.revision)
    new = replace(earlier, revision=0, naming=old.naming, expires_at=old.expires_at)
    told = note or f"back to revision {target.revision}"
    return promote(
        store, engine, lease, old, new, emit=emit, plan_id=target.plan_id, who=who, note=told, action=Action.ROLLED_BACK
    )


def drop_environment(store: StateStore, engine: Engine, lease: Lease, *, emit: Emit, who: str = "") -> Promoted:
    """Drop an environment's views and forget it; its tables are left to the janitor. RequestError for prod."""
    old = store.environment(lease.name)
    if lease.name == PROD:
        raise RequestError("prod cannot be dropped.", hint="Only environments beside it can.")
    if not old.exists:
        raise RequestError(f"There is no environment `{lease.name}`.", hint="See `mergeplan environments`.")
    return promote(store, engine, lease, old, Environment(lease.name), emit=emit, who=who, action=Action.DROPPED)


def _recover_one(store: StateStore, engine: Engine, lease: Lease, emit: Emit) -> list[PromotionRecovered]:
    # Read again under the lease: in the meantime somebody may have finished it.
    mine = [promotion for promotion in store.pending_promotions() if promotion.environment == lease.name]
    done = []
    for promotion in mine:
        emit(PromotionFound(promotion.environment, promotion.new.revision))
        ended, message = Recovery.FINISHED, ""
        try:
            _carry_out(store, engine, lease, promotion, emit)
        except QueryError as error:
            left = {each.id for each in store.pending_promotions()}
            ended, message = Recovery.STUCK if promotion.id in left else Recovery.UNDONE, error.message
        new, views = promotion.new, promotion.changes.names
        told = PromotionRecovered(
            new.name, new.revision, new.plan_id, str(promotion.action), views, ended, message
        )  # fmt: skip
        emit(told)
        done.append(told)
    return done


def _carry_out(store: StateStore, engine: Engine, lease: Lease, promotion: Promotion, emit: Emit) -> Promoted:
    changes = promotion.changes
    emit(StageStarted(Stage.PROMOTE, len(changes.names)))
    swapping = _Swapping(store, engine, lease, promotion, emit)
    try:
        swapping.show(changes, promotion.new)
    except (LeaseHeld, RequestError):
        raise  # another process is at it, or the journal cannot be written: the next one finishes it
    except (Exception, KeyboardInterrupt) as error:
        _undo(swapping, error)
        raise
    store.finish_promotion(lease, promotion)
    shown = len(views_of(promotion.new)) - len(changes.added) - len(changes.swapped)
    done = Promoted(
        promotion.environment,
        promotion.new.revision,
        len(changes.added),
        len(changes.swapped),
        len(changes.dropped),
        shown,
    )
    emit(done)
    return done


def _undo(swapping: _Swapping, error: BaseException) -> None:
    """Every view back to the old map; what cannot be put back stays pending, for the next process to finish."""
    promotion, swapping.goes_back = swapping.promotion, True
    try:
        swapping.show(view_changes(promotion.new, promotion.old), promotion.old)
        swapping.store.roll_back_promotion(swapping.lease, promotion)
    except Exception:
        return
    swapping.emit(PromotionUndone(promotion.environment, str(error) or "it was interrupted."))


class _Swapping:
    """The views of one promotion on their way."""

    def __init__(self, store: StateStore, engine: Engine, lease: Lease, promotion: Promotion, emit: Emit) -> None:
        self.store, self.engine, self.lease, self.promotion, self.emit = store, engine, lease, promotion, emit
        self.goes_back = False
        self._refused: set[str] = set()  # views that Spark would not swap, or whose statements it would not run
        self._pause = threading.Event()
        self._columns: Mapping[str, tuple[Column, ...]] = {
            name: table.columns for name, table in store.physical_tables().items()
        }

    def show(self, changes: ViewChanges, new: Environment) -> None:
        """Swap, then drop; the first failure stops those that have not begun."""
        self._each(self._swap, (*changes.added, *changes.swapped))
        self._each(self._drop, changes.dropped)
        if new.name != PROD:
            kept = {name.rpartition(".")[0] for name in views_of(new)}
            for schema in sorted({view.name.rpartition(".")[0] for view in changes.dropped} - kept):
                self.engine.drop_schema_if_empty(schema)

    def _each(self, step: Callable[[View], None], views: Iterable[View]) -> None:
        with ThreadPoolExecutor(THREADS, thread_name_prefix="views") as pool:
            try:
                steps = [pool.submit(step, view) for view in views]
                wait(steps, return_when=FIRST_EXCEPTION)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        for done in steps:
            if not done.cancelled():
                done.result()

    def _swap(self, view: View) -> None:
        if view.table not in self._columns:
            gone = QueryError(f"The table `{view.table}`, which `{view.name}` is to show, is gone.")
            self._give_up(view, gone, self._has_no_table)
            return
        columns = ", ".join(f"`{column.name}`" for column in self._columns[view.table])
        table = ".".join(f"`{part}`" for part in view.table.split("."))
        self.store.check(self.lease)
        self._attempt(view, lambda: self._show(view, f"SELECT {columns} FROM {table}"), self._has_no_table)
        self._run_statements(view)
        self.store.record_step(self.lease, self.promotion, view.name)
        self.emit(ViewSwapped(view.name, view.table))

    def _show(self, view: View, sql: str) -> None:
        known, said = self._columns[view.table], dict(view.column_comments)
        columns = [replace(column, comment=said.get(column.name, "")) for column in known]
        if view.stored and any(column.comment for column in (*known, *columns)):
            self.engine.comment_columns(view.table, columns)
        self.engine.swap_view(view.name, sql, view.comment, columns, view.properties)

    def _run_statements(self, view: View) -> None:
        """What the model says of its view, each time that this is made or moved."""
        values = dates(None, datetime.now(UTC))
        statements = stage_statements(view.statements, EVALUATING, view.name, values, {}, {})
        if statements:
            self._attempt(view, lambda: _run(self.engine, statements), self._was_refused)

    def _drop(self, view: View) -> None:
        self.store.check(self.lease)
        self._attempt(view, lambda: self.engine.drop_view(view.name), _never)
        self.store.record_step(self.lease, self.promotion, view.name)
        self.emit(ViewDropped(view.name))

    def _attempt(self, view: View, step: Callable[[], object], spared: Spared) -> None:
        """Try a step; given up, on the way back it may be left out where `spared` says that it changes nothing."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                step()
                return
            except Cancelled:
                raise
            except Exception as error:  # a catalog may be busy for a moment
                if attempt == ATTEMPTS:
                    self._give_up(view, error, spared)
                    return
                self._pause.wait(PAUSE_SECONDS * attempt)

    def _give_up(self, view: View, error: Exception, spared: Spared) -> None:
        if isinstance(error, QueryError):
            # A table in the view's place was there before, and is no view of ours to put back.
            if self.goes_back and ((error.condition or "").split(".")[0] in IN_ITS_PLACE or spared(view)):
                return
            self._refused.add(view.name)
        raise error

    def _was_refused(self, view: View) -> bool:
        return view.name in self._refused

    def _has_no_table(self, view: View) -> bool:
        """True when the view's table is gone: nothing can show it, and the next plan finds it missing and builds it."""
        return self._is_gone(view.table)

    def _is_gone(self, table: str) -> bool:
        schema, _, name = table.rpartition(".")
        try:
            return table not in self._columns or name.lower() not in self.engine.objects(schema)
        except QueryError:
            return False


def _never(_view: View) -> bool:
    return False


def _run(engine: Engine, statements: tuple[str, ...]) -> None:
    with engine.beside(statements, ()):
        pass


def _earlier(history: tuple[Revision, ...], now: Environment, to_revision: int | None) -> Revision:
    """The revision to go back to; `history` is newest first."""
    if not now.exists:
        raise RequestError(f"There is no environment `{now.name}`.", hint="See `mergeplan environments`.")
    in_force = {row.revision: row for row in history if row.action not in (Action.UNDONE, Action.DROPPED)}
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
