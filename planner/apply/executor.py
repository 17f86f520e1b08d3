"""Applying a plan: create its tables, fill them, audit what was written, and only then promote.

Whatever is done is recorded as it is done, so that the next apply of the same plan goes on where this one ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import TopologicalSorter

from planner.apply.backfill import Backfill, Failure, Filled, Work
from planner.apply.before_after_all import AFTER, BEFORE, run_surrounding, surrounding
from planner.apply.clear_intervals import forget_restated
from planner.apply.compare_tables import look_into_tables
from planner.apply.create_tables import Layout, create_tables, missing_tables, table_lease
from planner.apply.events import Compared, Emit, Event, ModelSkipped, Promoted, Stage, StageSkipped, StageStarted
from planner.apply.external_audits import ask_outside
from planner.apply.new_audits import ask_new_audits
from planner.apply.promotion import check_not_stuck, promote, recover
from planner.apply.standalone_audits import ask_standalone, forget_standalone
from planner.checks.audits import AuditOptions, AuditResult, run_audits
from planner.engine.protocol import Engine
from planner.errors import Cancelled, PlanMoved, Refused
from planner.intervals import Interval, subtract
from planner.model.model import Kind
from planner.plan.build import Plan
from planner.plan.schedule import ONCE
from planner.project.loader import Project
from planner.python.running import running
from planner.snapshot.snapshot import Snapshot
from planner.state.leases import Lease
from planner.state.store import StateStore


@dataclass(frozen=True)
class Outcome:
    """What an apply came to; `promoted` is None when a failure forbade it or nothing was to promote.

    `promotion_jobs` are the Spark jobs that the promotion itself started: it reads no data, so there are none.
    """

    created: tuple[str, ...]
    filled: Filled
    promoted: Promoted | None
    promotion_jobs: int = 0
    plan: Plan | None = None  # as it was in the end: comparing tables may have spared some of its models

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The models that could not be computed."""
        return self.filled.failures

    def raise_failure(self) -> None:
        """The first failure as an error: AuditFailed, QueryError, ProjectError."""
        for failure in self.failures:
            raise failure.error


def apply(
    plan: Plan,
    project: Project,
    engine: Engine,
    store: StateStore,
    lease: Lease,
    *,
    now: datetime,
    emit: Emit,
    who: str = "",
    note: str = "",
    complete: bool = True,
    replan: Callable[[], Plan] | None = None,
) -> Outcome:
    """Make the plan true: create, backfill, audit, promote; a model that fails is in the outcome, and forbids the last.

    With `replan`, which makes the plan again by what is known by then, models wait for those they read, and are spared
    where these hold the same rows as before. `complete=False` promotes though tables lack rows (`--skip-backfill`).
    PlanMoved when the environment is not what the plan was made for, Refused for a plan with blockers, QueryError or
    ProjectError when a query cannot be right, Cancelled, LeaseHeld.
    """
    emit = _one_at_a_time(emit)
    if plan.blockers:
        raise Refused(plan.blockers[0].message, place=plan.blockers[0].place)
    check_not_stuck(recover(store, engine, emit, lease), {plan.environment})
    _check_unmoved(plan, store)
    if plan.restatement is not None:
        forget_restated(plan, store, lease, emit)
    asked, at_first = plan.id, plan
    try:
        forget_standalone(plan, store, project)
        before = surrounding(project, plan.new, BEFORE)
        after = surrounding(project, plan.new, AFTER)
        run_surrounding(engine, before)
        plan, done = _built(plan, project, engine, store, emit, now, replan if complete else None)
        layout = Layout(plan.new.snapshots, plan.parents, now)
        samples = project.config.audits.show_samples
        failed = ask_new_audits(plan, layout, engine, store, project.audits, emit, samples)
        if not done.failures:  # what failed has left tables half filled
            failed += ask_standalone(plan, at_first, layout, engine, store, project, emit)
        done = replace(done, plan=plan, filled=replace(done.filled, failures=(*done.failures, *failed)))
        if done.failures:
            emit(StageSkipped(Stage.PROMOTE, f"{done.failures[0].model} failed"))
            return done
        if complete:
            _check_loaded(plan, store)
        done = _promote(replace(plan, id=asked), engine, store, lease, done, emit, who, note)
        run_surrounding(engine, after)
        return done
    except KeyboardInterrupt:
        raise Cancelled("the run was cancelled.") from None


def _built(
    plan: Plan,
    project: Project,
    engine: Engine,
    store: StateStore,
    emit: Emit,
    now: datetime,
    replan: Callable[[], Plan] | None,
) -> tuple[Plan, Outcome]:
    """Every table created and filled, in rounds: what a comparison may spare waits until it is made."""
    done, tried = Outcome((), Filled(), None), set[tuple[str, str]]()
    while True:
        questions = [each for each in plan.comparisons if (each.reader, each.model) not in tried] if replan else []
        waiting = _downstream(plan, {each.reader for each in questions})
        layout = Layout(plan.new.snapshots, plan.parents, now)
        snapshots = tuple(c.new for c in plan.changes if c.new and c.new.kind.has_view and c.name not in waiting)
        tables = [snapshot.table for snapshot in snapshots]
        store.save_plan(plan.id, plan.environment, tables=tables, replace=False)
        store.touch_tables(tables)
        store.keep_snapshots(snapshots)
        created = _create(layout, store, engine, snapshots, plan, emit)
        _record(plan, store)
        filled = _fill(plan, project, layout, engine, store, emit, waiting)
        done = replace(done, created=(*done.created, *created), filled=done.filled.plus(filled))
        if filled.failures or not questions or replan is None:
            return plan, done
        ready = [each for each in questions if each.model not in waiting]
        emit(StageStarted(Stage.COMPARE, len(ready)))
        look_into_tables(ready, engine, store, _holder(plan))
        tried |= {(each.reader, each.model) for each in ready}
        before, plan = plan, replan()
        for each in ready:
            emit(Compared(each.reader, each.model, each.columns, spared=each.reader not in _building(plan)))
        _check_same_request(before, plan)


def _downstream(plan: Plan, names: Collection[str]) -> frozenset[str]:
    """The models of these names and all that read them."""
    found = set(names)
    for name in TopologicalSorter(plan.parents).static_order():
        if not found.isdisjoint(plan.parents.get(name, ())):
            found.add(name)
    return frozenset(found)


def _building(plan: Plan) -> frozenset[str]:
    return frozenset(change.name for change in plan.changes if change.recomputed)


def _check_same_request(before: Plan, now: Plan) -> None:
    """A plan that is made again puts nothing in place that the first one did not."""
    if now.blockers or not {c.name for c in now.changes} <= {c.name for c in before.changes}:
        raise PlanMoved("Something moved while the tables were computed.", hint="Plan again.")


def _create(
    layout: Layout, store: StateStore, engine: Engine, snapshots: tuple[Snapshot, ...], plan: Plan, emit: Emit
) -> tuple[str, ...]:
    missing = missing_tables(store, engine, snapshots)
    if not missing:
        emit(StageSkipped(Stage.CREATE, "every table stands"))
        return ()
    emit(StageStarted(Stage.CREATE, len(missing)))
    create_tables(layout, store, engine, missing, _holder(plan), emit, {c.name: c for c in plan.changes})
    return tuple(snapshot.table for snapshot in missing)


def _record(plan: Plan, store: StateStore) -> None:
    """Say of tables that are left empty, as was asked, that they hold their time."""
    for change in plan.changes:
        for interval in change.recorded if change.new else ():
            assert change.new is not None
            with store.lease(table_lease(change.new.table), _holder(plan), wait=60) as lease:
                store.record_interval(change.new.table, interval, lease=lease)


def _fill(
    plan: Plan,
    project: Project,
    layout: Layout,
    engine: Engine,
    store: StateStore,
    emit: Emit,
    waiting: frozenset[str],
) -> Filled:
    work = {name: each for name, each in _work(plan, layout.now).items() if name not in waiting}
    if not work:
        emit(StageSkipped(Stage.BACKFILL, "nothing is missing"))
        return Filled()

    show = project.config.audits.show_samples
    options = AuditOptions(project.audits, layout.tables, layout.embedded, layout.now, show)

    def audits(snapshot: Snapshot, interval: Interval) -> Iterator[AuditResult]:
        return run_audits(engine, snapshot, interval, options)

    workers = project.config.gateways[project.gateway].connection.concurrent_tasks
    emit(StageStarted(Stage.BACKFILL, len(work)))
    failed = ask_outside(work, layout, engine, project, emit)
    because = {each.model: _downstream(plan, {each.model}) for each in failed}
    left = {name: model for model, names in because.items() for name in names & work.keys()}
    for name, model in sorted(left.items()):
        emit(ModelSkipped(name, model))
    with running(project.code, engine) as python:
        layout = replace(layout, python=python)
        backfill = Backfill(layout, engine, store, audits, project.root, _holder(plan), emit, workers, plan.relies)
        filled = backfill.run({name: each for name, each in work.items() if name not in left})
    return filled.plus(Filled(failures=failed, skipped=tuple(sorted(left))))


def _work(plan: Plan, now: datetime) -> dict[str, Work]:
    """Tables that lack rows, and new views that have audits: those audits are recorded like a batch."""
    work = {
        change.name: Work(
            change.new,
            change.missing,
            change.copies,
            change.old.table if change.old else "",
            change.new.model.cron.cut(now) if change.new.model.allow_partials else None,
            plan.late.get(change.name, ()),
        )
        for change in plan.backfills
        if change.new
    }
    for change in plan.changes:
        if change.new and change.kind is Kind.VIEW and change.new.model.audits and change.shares is None:
            work[change.name] = Work(change.new, ONCE)
    return work


def _promote(
    plan: Plan, engine: Engine, store: StateStore, lease: Lease, so_far: Outcome, emit: Emit, who: str, note: str
) -> Outcome:
    if not plan.promotes:
        emit(StageSkipped(Stage.PROMOTE, f"{plan.environment} shows it already"))
        return so_far
    before = engine.jobs()
    promoted = promote(store, engine, lease, plan.old, plan.new, emit=emit, plan_id=plan.id, who=who, note=note)
    return replace(so_far, promoted=promoted, promotion_jobs=engine.jobs() - before)


def _check_unmoved(plan: Plan, store: StateStore) -> None:
    # The promotion asks again, in its transaction; here it spares hours of work for nothing.
    revision = store.environment(plan.environment).revision
    if revision != plan.old.revision:
        raise PlanMoved(
            f"`{plan.environment}` is at revision {revision}, and this plan was made for revision {plan.old.revision}.",
            hint="Plan again.",
        )


def _check_loaded(plan: Plan, store: StateStore) -> None:
    needed = {change.new.table: change for change in plan.changes if change.new and change.needed}
    for table, timeline in store.loaded(needed).items():
        if missing := subtract(needed[table].needed, timeline):
            raise PlanMoved(f"{needed[table].name} lacks {missing[0]}.", hint="Plan again: it will be computed.")


def _holder(plan: Plan) -> str:
    return f"plan {plan.id} of {plan.environment}"


def _one_at_a_time(emit: Emit) -> Emit:
    lock = threading.Lock()

    def emit_one(event: Event) -> None:
        with lock:
            emit(event)

    return emit_one
