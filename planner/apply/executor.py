"""Applying a plan: create its tables, fill them, audit what was written, and only then promote.

Each step is recorded when it is done, so that the next apply of the same plan continues where this one ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import TopologicalSorter

from mergeplan.planner.apply.audits.audit_order import add_audit_parents
from mergeplan.planner.apply.audits.external_audits import audit_external_tables
from mergeplan.planner.apply.audits.new_audits import ask_new_audits, remember_asked
from mergeplan.planner.apply.audits.record_results import record_results
from mergeplan.planner.apply.audits.reuse import AuditReuse, run_kept_audits
from mergeplan.planner.apply.audits.standalone_audits import ask_standalone, forget_standalone
from mergeplan.planner.apply.backfill.backfill import run_backfill
from mergeplan.planner.apply.backfill.before_after_all import AFTER, BEFORE, run_statements, statements_of
from mergeplan.planner.apply.backfill.clear_intervals import forget_restated
from mergeplan.planner.apply.backfill.compare_tables import compare_tables
from mergeplan.planner.apply.backfill.create_tables import Creation
from mergeplan.planner.apply.backfill.fill_table import TableWriter
from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.apply.backfill.table_columns import table_columns
from mergeplan.planner.apply.backfill.work import Filled, Work
from mergeplan.planner.apply.context import ApplyContext
from mergeplan.planner.apply.events import Compared, Emit, Event, ModelSkipped, Stage, StageSkipped, StageStarted
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.apply.physical_tables import missing_tables, table_lease
from mergeplan.planner.apply.promotion.own_views import check_unoccupied
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.apply.promotion.recovery import check_not_stuck, recover_promotions
from mergeplan.planner.apply.spark_ui import spark_ui
from mergeplan.planner.checks.audits import AuditContext, AuditResult, read_by_audits, run_audits
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Cancelled, PlanMoved, Refused
from mergeplan.planner.intervals import Interval, subtract_intervals
from mergeplan.planner.parsing.files.environments import seconds_of_promotion
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.schedule import ONCE
from mergeplan.planner.project.loader import Project
from mergeplan.planner.python.running import open_runner
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.promotions import SwapOptions
from mergeplan.planner.state.store import StateStore

THREADS = 4  # dry runs, and then creations, at once; more where more models are computed at once


@dataclass(frozen=True)
class ApplyOptions:
    """The options of applying a plan: the moment, the person, and what may change on the way.

    With `replan`, which makes the plan again from the current state, models wait for their parents, and are skipped if
    these hold the same rows as before. `check` is called twice a second while tables are filled, and raises Cancelled
    to end the run. `complete=False` promotes although tables lack rows (`--skip-backfill`), `replaces=True` although
    models' views replace views of others.
    """

    now: datetime
    emit: Emit
    who: str = ""
    note: str = ""
    complete: bool = True
    replaces: bool = False
    check: Callable[[], None] = lambda: None
    replan: Callable[[], Plan] | None = None
    spark: str = ""  # a digest of Spark's settings; '' if they may change unnoticed


def apply(
    plan: Plan, project: Project, engine: Engine, store: StateStore, lease: Lease, options: ApplyOptions
) -> Outcome:
    """Apply the plan: create, backfill, audit, promote; a failed model is in the outcome, and forbids the promotion.

    Raise PlanMoved if the environment changed since the plan, Refused for a plan with blockers, QueryError or
    ProjectError if a query cannot be right, Cancelled, or LeaseHeld.
    """
    emit = _one_at_a_time(record_results(store, plan.environment, options.emit))
    context = ApplyContext(project, engine, store, emit, options.check, options.spark)
    if plan.blockers:
        raise Refused(plan.blockers[0].message, place=plan.blockers[0].place)
    check_not_stuck(recover_promotions(store, engine, context.emit, lease), {plan.environment})
    _check_unmoved(plan, store)
    check_unoccupied(plan.views.added, plan.environment, engine, replaces=options.replaces)
    if plan.restatement is not None:
        forget_restated(plan, store, lease, context.emit)
    try:
        forget_standalone(plan, store, project)
        before_statements, after_statements = (statements_of(project, plan.new, key) for key in (BEFORE, AFTER))
        run_statements(engine, before_statements)
        # One pool to create, fill and swap: a catalog connects again for every new thread.
        with ThreadPoolExecutor(max(THREADS, _count_workers(context.project)), thread_name_prefix="table") as pool:
            done = _build_and_audit(plan, context, options, pool)
            if done.failures:
                context.emit(StageSkipped(Stage.PROMOTE, f"{done.failures[0].model} failed"))
                return done
            assert done.plan is not None
            if options.complete:
                _check_loaded(done.plan, store)
            done = _promote_plan(replace(done.plan, id=plan.id), context, lease, done, options, pool)
        run_statements(engine, after_statements)
        return done
    except KeyboardInterrupt:
        raise Cancelled("the run was cancelled.") from None


def _build_and_audit(first: Plan, context: ApplyContext, options: ApplyOptions, pool: ThreadPoolExecutor) -> Outcome:
    plan, done = _build_tables(first, context, options, pool)
    layout = Layout(plan.new.snapshots, plan.parents, options.now)
    if not done.failures:
        remember_asked(first, context.store)
    failed = ask_new_audits(plan, layout, context)
    if not done.failures:  # a failure has left tables partly filled
        failed += ask_standalone(plan, first, layout, context)
    return replace(done, plan=plan, filled=replace(done.filled, failures=(*done.failures, *failed)))


def _build_tables(
    plan: Plan, context: ApplyContext, options: ApplyOptions, pool: ThreadPoolExecutor
) -> tuple[Plan, Outcome]:
    """Create and fill every table, in rounds: a model that a comparison may skip waits until that is made."""
    done, tried, store, emit = Outcome((), Filled(), None), set[tuple[str, str]](), context.store, context.emit
    replan = options.replan if options.complete else None
    while True:
        questions = (
            [comparison for comparison in plan.comparisons if (comparison.reader, comparison.model) not in tried]
            if replan
            else []
        )
        waiting = _include_downstream(plan, {comparison.reader for comparison in questions})
        layout = Layout(plan.new.snapshots, plan.parents, options.now)
        snapshots = tuple(c.new for c in plan.changes if c.new and c.new.kind.has_view and c.name not in waiting)
        tables = [snapshot.table for snapshot in snapshots]
        store.plans.ensure(plan.id, plan.environment, tables=tables)
        store.tables.touch(tables)
        store.snapshots.keep(snapshots)
        created, untouched = _create_tables(layout, context, snapshots, plan, pool)
        _record_empty_tables(plan, store)
        filled = _fill_tables(plan, layout, context, waiting, untouched, pool)
        done = replace(done, created=(*done.created, *created), filled=done.filled.plus(filled))
        if filled.failures or not questions or replan is None:
            return plan, done
        ready = [comparison for comparison in questions if comparison.model not in waiting]
        emit(StageStarted(Stage.COMPARE, len(ready)))
        compare_tables(ready, context.engine, store, _lease_holder(plan))
        tried |= {(comparison.reader, comparison.model) for comparison in ready}
        former_plan, plan = plan, replan()
        for comparison in ready:
            emit(
                Compared(
                    comparison.reader,
                    comparison.model,
                    comparison.columns,
                    spared=comparison.reader not in _list_recomputed(plan),
                )
            )
        _check_same_request(former_plan, plan)


def _include_downstream(plan: Plan, names: Collection[str]) -> frozenset[str]:
    downstream = set(names)
    for name in TopologicalSorter(plan.parents).static_order():
        if not downstream.isdisjoint(plan.parents.get(name, ())):
            downstream.add(name)
    return frozenset(downstream)


def _list_recomputed(plan: Plan) -> frozenset[str]:
    return frozenset(change.name for change in plan.changes if change.recomputed)


def _check_same_request(before: Plan, now: Plan) -> None:
    """Raise PlanMoved if the repeated plan has blockers, or changes a model that the first one did not."""
    if now.blockers or not {c.name for c in now.changes} <= {c.name for c in before.changes}:
        raise PlanMoved("Something moved while the tables were computed.", hint="Plan again.")


def _create_tables(
    layout: Layout, context: ApplyContext, snapshots: tuple[Snapshot, ...], plan: Plan, pool: ThreadPoolExecutor
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Create the missing tables; return them, and the lease tokens under which new ones were created."""
    changes = {change.name: change for change in plan.changes}
    taking_over = [change.new.table for change in plan.changes if change.new and change.keeps_rows]
    missing = missing_tables(context.store, context.engine, snapshots, taking_over)
    if not missing:
        _check_contracts(layout, context, changes, frozenset())
        context.emit(StageSkipped(Stage.CREATE, "all tables exist"))
        return (), {}
    context.emit(StageStarted(Stage.CREATE, len(missing)))
    creation = Creation(layout, context.store, context.engine, _lease_holder(plan), context.emit, pool, changes)
    creation.run(missing)
    _check_contracts(layout, context, changes, frozenset(snapshot.name for snapshot in missing))
    return tuple(snapshot.table for snapshot in missing), creation.untouched


def _check_contracts(
    layout: Layout, context: ApplyContext, changes: Mapping[str, Change], created: frozenset[str]
) -> None:
    """Raise ProjectError if the query of a changed model that keeps its table breaks its contract."""
    for name, change in changes.items():
        if change.new and change.new.model.contract and name not in created:
            table_columns(layout, context.engine, change.new)


def _record_empty_tables(plan: Plan, store: StateStore) -> None:
    """Record that tables which the request leaves empty hold their time."""
    for change in plan.changes:
        for interval in change.recorded if change.new else ():
            assert change.new is not None
            with store.leases.hold(table_lease(change.new.table), _lease_holder(plan), wait=60) as lease:
                store.intervals.record(change.new.table, interval, lease=lease)


def _fill_tables(
    plan: Plan,
    layout: Layout,
    context: ApplyContext,
    waiting: frozenset[str],
    fresh_tables: dict[str, int],
    pool: ThreadPoolExecutor,
) -> Filled:
    project, engine, emit = context.project, context.engine, context.emit
    work = {name: task for name, task in _list_work(plan, layout.now).items() if name not in waiting}
    if not work:
        emit(StageSkipped(Stage.BACKFILL, "nothing is missing"))
        return Filled()

    show = project.config.audits.show_samples
    options = AuditContext(project.audits, layout.tables, layout.models_to_embed, layout.now, show)

    def audits(snapshot: Snapshot, interval: Interval) -> Iterator[AuditResult]:
        return run_audits(engine, snapshot, interval, options)

    stored_tables = {snapshot.table for snapshot in layout.snapshots.values() if snapshot.kind.is_stored}
    reuse = AuditReuse(context.store, engine, stored_tables, context.spark)

    def audits_again(snapshot: Snapshot, interval: Interval) -> Iterator[AuditResult]:
        return run_kept_audits(snapshot, interval, options, reuse)

    connection = project.config.gateways[project.gateway].connection
    emit(StageStarted(Stage.BACKFILL, len(work), spark_ui(connection, engine)))
    failed = audit_external_tables(work, layout, context)
    because = {failure.model: _include_downstream(plan, {failure.model}) for failure in failed}
    skipped_models = {name: model for model, names in because.items() for name in names & work.keys()}
    for name, model in sorted(skipped_models.items()):
        emit(ModelSkipped(name, model))
    with open_runner(project.code, engine) as python:
        layout, holder = replace(layout, python=python), _lease_holder(plan)
        read = {name: read_by_audits(task.snapshot.model, project.audits) for name, task in work.items()}
        writer = TableWriter(
            layout, engine, context.store, audits, audits_again, project.root, holder, emit,
            workers=_count_workers(project), check=context.check, relies=plan.relies,
            order=add_audit_parents(layout.parents, read), untouched=fresh_tables,
        )  # fmt: skip
        filled = run_backfill(writer, {name: task for name, task in work.items() if name not in skipped_models}, pool)
    return filled.plus(Filled(failures=failed, skipped=tuple(sorted(skipped_models))))


def _count_workers(project: Project) -> int:
    return project.config.gateways[project.gateway].connection.concurrent_tasks


def _list_work(plan: Plan, now: datetime) -> dict[str, Work]:
    """Return the work for tables that lack rows, and for new views with audits, which are recorded like a batch."""
    work = {
        change.name: Work(
            change.new,
            change.missing,
            change.copies,
            _copy_source(change),
            change.adopts is not None,
            change.new.model.cron.cut(now) if change.new.model.allow_partials else None,
            plan.late.get(change.name, ()),
        )
        for change in plan.backfills
        if change.new
    }
    for change in plan.changes:
        if change.new and change.kind.is_view and change.new.model.audits and change.shares is None:
            work[change.name] = Work(change.new, ONCE)
    return work


def _copy_source(change: Change) -> str:
    if change.adopts:
        return change.adopts.place
    return change.old.table if change.old else ""


def _promote_plan(
    plan: Plan,
    context: ApplyContext,
    lease: Lease,
    so_far: Outcome,
    options: ApplyOptions,
    pool: ThreadPoolExecutor,
) -> Outcome:
    if not plan.promotes:
        context.emit(StageSkipped(Stage.PROMOTE, f"{plan.environment} shows it already"))
        return so_far
    jobs_before = context.engine.jobs()
    swap = SwapOptions(seconds_of_promotion(context.project.config, plan.environment), options.replaces)
    promotion_request = Wanted(plan.old, plan.new, plan.id, options.who, options.note, swap=swap)
    promoted = promote_views(context.store, context.engine, lease, promotion_request, emit=context.emit, pool=pool)
    return replace(so_far, promoted=promoted, promotion_jobs=context.engine.jobs() - jobs_before)


def _check_unmoved(plan: Plan, store: StateStore) -> None:
    # The promotion checks again, in its transaction; checking here saves hours of useless work.
    revision = store.environments.get(plan.environment).revision
    if revision != plan.old.revision:
        raise PlanMoved(
            f"`{plan.environment}` is at revision {revision}, and this plan was made for revision {plan.old.revision}.",
            hint="Plan again.",
        )


def _check_loaded(plan: Plan, store: StateStore) -> None:
    needed = {change.new.table: change for change in plan.changes if change.new and change.needed}
    for table, timeline in store.intervals.load_timelines(needed).items():
        if missing := subtract_intervals(needed[table].needed, timeline):
            raise PlanMoved(f"{needed[table].name} lacks {missing[0]}.", hint="Plan again: it will be computed.")


def _lease_holder(plan: Plan) -> str:
    return f"plan {plan.id} of {plan.environment}"


def _one_at_a_time(emit: Emit) -> Emit:
    lock = threading.Lock()

    def emit_one(event: Event) -> None:
        with lock:
            emit(event)

    return emit_one
