"""Applying a plan: run its stages. Create its tables, fill them, audit what was written, and only then promote.

Each step is recorded when it is done, so that the next apply of the same plan continues where this one ended.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mergeplan.planner.apply.audits.new_audits import ask_new_audits, remember_asked
from mergeplan.planner.apply.audits.record_results import record_results
from mergeplan.planner.apply.audits.standalone_audits import ask_standalone, forget_standalone
from mergeplan.planner.apply.backfill.backfill import fill_tables
from mergeplan.planner.apply.backfill.before_after_all import run_statements, statements_around
from mergeplan.planner.apply.backfill.clear_intervals import forget_copied, forget_restated
from mergeplan.planner.apply.backfill.create_tables import create_tables
from mergeplan.planner.apply.backfill.work import Filled
from mergeplan.planner.apply.context import ApplyContext
from mergeplan.planner.apply.events import Compared, Emit, Event, Stage, StageSkipped, StageStarted
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.apply.physical_tables import physical_table, table_lease
from mergeplan.planner.apply.promotion.own_views import check_unoccupied
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.apply.promotion.recovery import check_not_stuck, recover_promotions
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Cancelled, PlanMoved, Refused
from mergeplan.planner.intervals import subtract_intervals
from mergeplan.planner.parsing.files.environments import seconds_of_promotion
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.plan.stages import BackfillStage, CompareStage, CreateStage, build_stages
from mergeplan.planner.project.loader import Project
from mergeplan.planner.snapshot.content_hash import ColumnSet
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.promotions import SwapOptions
from mergeplan.planner.state.store import StateStore

THREADS = 4  # dry runs, and then creations, at once; more where more models are computed at once
CLOCK_DRIFT = timedelta(minutes=10)  # between the clocks of two machines
WAIT = 60.0  # seconds to wait for the writer of the table


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
    if plan.blockers:
        raise Refused(plan.blockers[0].message, place=plan.blockers[0].place)
    check_not_stuck(recover_promotions(store, engine, emit, lease), {plan.environment})
    _check_unmoved(plan, store)
    store.promotions.check_names(plan.old, plan.new)
    check_unoccupied(plan.views.added, plan.environment, store, engine, replaces=options.replaces)
    forget_standalone(plan, store, project)  # by the time that tables hold now
    if plan.restatement is not None:
        forget_restated(plan, store, lease, emit)
    holder = f"plan {plan.id} of {plan.environment}"
    try:
        stages = build_stages(plan, None, *statements_around(project, plan.new))
        run_statements(engine, stages.before_all)
        # One pool to create, fill and swap: a catalog connects again for every new thread.
        with ThreadPoolExecutor(max(THREADS, project.connection.concurrent_tasks), thread_name_prefix="table") as pool:
            context = ApplyContext(
                project, engine, store, emit, pool, options.now, holder, options.check, options.spark
            )
            done = _run_audits(plan, _run_rounds(plan, context, options), context)
            if done.failures:
                emit(StageSkipped(Stage.PROMOTE, f"{done.failures[0].model} failed"))
                return done
            done = _promote_plan(plan.id, done, context, lease, options)
        run_statements(engine, stages.after_all)
        return done
    except KeyboardInterrupt:
        raise Cancelled("the run was cancelled.") from None
    finally:  # for a day another attempt goes on from what is filled now
        store.tables.touch([change.new.table for change in plan.changes if change.new])


def _run_rounds(plan: Plan, context: ApplyContext, options: ApplyOptions) -> Outcome:
    """Create and fill every table; the outcome has the plan as the comparisons of tables left it."""
    replan = options.replan if options.complete else None
    done, compared = Outcome((), Filled(), None), tuple[Comparison, ...]()
    while True:
        stages = build_stages(plan, None if replan is None else compared)
        _check_time(stages.backfill, context)
        created, new_tables = _run_creation(stages.create, plan, context)
        _record_empty_tables(stages.backfill, context)
        filled = fill_tables(stages.backfill, plan, context, new_tables)
        done = replace(done, created=(*done.created, *created), filled=done.filled.plus(filled), plan=plan)
        if filled.failures or replan is None or not stages.compare.comparisons:
            return done
        plan = _compare_tables(stages.compare, plan, replan, context)
        compared += stages.compare.comparisons


def _check_time(stage: BackfillStage, context: ApplyContext) -> None:
    """Raise Refused if the execution time, and time that the stage computes, is ahead of the state database's clock.

    Days that have not passed would count as computed, and their rows would never be loaded.
    """
    present = context.store.now()
    timelines = (*(task.missing for task in stage.tasks), *(change.recorded for change in stage.empty))
    if context.now > present + CLOCK_DRIFT and any(interval.end > present for line in timelines for interval in line):
        raise Refused(
            f"The execution time {context.now:%Y-%m-%d %H:%M} UTC is ahead of the state database's clock, "
            f"{present:%Y-%m-%d %H:%M} UTC: days that have not passed would count as computed.",
            hint="Name an earlier `--execution-time`, or set the clock of this machine.",
        )


def _run_creation(stage: CreateStage, plan: Plan, context: ApplyContext) -> tuple[tuple[str, ...], dict[str, int]]:
    """Create the tables after the state refers to them, so that no janitor drops them."""
    tables, store = [snapshot.table for snapshot in stage.snapshots], context.store
    store.plans.ensure(plan.id, plan.environment, tables=tables)
    store.tables.touch(tables)
    store.snapshots.keep(stage.snapshots)
    return create_tables(stage, plan, context)


def _record_empty_tables(stage: BackfillStage, context: ApplyContext) -> None:
    for change in stage.empty:
        assert change.new is not None
        with context.store.leases.hold(table_lease(change.new.table), context.holder, wait=60) as lease:
            for interval in change.recorded:
                context.store.intervals.record(change.new.table, interval, lease=lease)


def _compare_tables(stage: CompareStage, plan: Plan, replan: Callable[[], Plan], context: ApplyContext) -> Plan:
    """Compare tables, and return the plan with the results; raise PlanMoved if it has blockers or further changes."""
    context.emit(StageStarted(Stage.COMPARE, len(stage.comparisons)))
    compare_tables(stage.comparisons, context.engine, context.store, context.holder)
    new_plan = replan()
    recomputed = {change.name for change in new_plan.changes if change.recomputed}
    for comparison in stage.comparisons:
        spared = comparison.reader not in recomputed
        context.emit(Compared(comparison.reader, comparison.model, comparison.columns, spared=spared))
    if new_plan.blockers or not {c.name for c in new_plan.changes} <= {c.name for c in plan.changes}:
        raise PlanMoved("Something moved while the tables were computed.", hint="Plan again.")
    return new_plan


def _run_audits(first: Plan, done: Outcome, context: ApplyContext) -> Outcome:
    """Run the audits of kept tables and the standalone ones; `first` is the plan before anything was written."""
    assert done.plan is not None
    layout, stages = context.layout(done.plan), build_stages(done.plan)
    if not done.failures:
        remember_asked(first, context.store)
    failed = ask_new_audits(stages.audit, layout, context)
    if not done.failures:  # a failure has left tables partly filled
        failed += ask_standalone(done.plan, first, layout, context)
    return replace(done, filled=replace(done.filled, failures=(*done.failures, *failed)))


def _promote_plan(plan_id: str, done: Outcome, context: ApplyContext, lease: Lease, options: ApplyOptions) -> Outcome:
    assert done.plan is not None
    plan = done.plan
    stage = build_stages(plan).promote
    if options.complete:
        needed = {change.new.table: change for change in stage.needed if change.new}
        for table, timeline in context.store.intervals.load_timelines(needed).items():
            if missing := subtract_intervals(needed[table].needed, timeline):
                raise PlanMoved(f"{needed[table].name} lacks {missing[0]}.", hint="Plan again: it will be computed.")
    if not stage.is_needed:
        context.emit(StageSkipped(Stage.PROMOTE, f"{plan.environment} shows it already"))
        return done
    forget_copied(plan, context.store, lease, context.emit, context.now)
    jobs_before = context.engine.jobs()
    swap = SwapOptions(seconds_of_promotion(context.project.config, plan.environment), options.replaces)
    request = Wanted(plan.old, plan.new, plan_id, options.who, options.note, swap=swap)
    promoted = promote_views(context.store, context.engine, lease, request, emit=context.emit, pool=context.pool)
    return replace(done, promoted=promoted, promotion_jobs=context.engine.jobs() - jobs_before)


def _check_unmoved(plan: Plan, store: StateStore) -> None:
    # The promotion checks again, in its transaction; checking here saves hours of useless work.
    revision = store.environments.get(plan.environment).revision
    if revision != plan.old.revision:
        raise PlanMoved(
            f"`{plan.environment}` is at revision {revision}, and this plan was made for revision {plan.old.revision}.",
            hint="Plan again.",
        )


def _one_at_a_time(emit: Emit) -> Emit:
    lock = threading.Lock()

    def emit_one(event: Event) -> None:
        with lock:
            emit(event)

    return emit_one


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
