"""Mark the intervals of a restatement as missing in one transaction, while no process writes the tables."""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime

from mergeplan.planner.apply.events import Emit, EnvironmentTouched
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.intervals import Timeline, merge_intervals, subtract_intervals
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.restatement import (
    Restatement,
    find_computed,
    find_outdated_tables,
    find_overtaken_time,
    graph_with_outer_tables,
)
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore

WAIT = 3600.0  # seconds to wait for the writer of one of the tables


def forget_restated(
    plan: Plan, store: StateStore, lease: Lease, emit: Emit, *, automatic: tuple[str, datetime] | None = None
) -> None:
    """Forget what a plan restates, in one transaction, while no table of it is being written.

    `automatic` is the model that restates itself, if that is why, and the moment of the run, which is remembered.

    A process that began to compute one of the tables before has ended by then, and what it wrote is forgotten with the
    rest. A process that begins later sees what is missing. Raise LeaseHeld if another process writes a table for too
    long; then nothing was done.
    """
    assert plan.restatement is not None
    recorded_tables = store.tables.all().keys()
    forgets = {table: time for table, time in plan.restatement.forgets.items() if table in recorded_tables}
    with ExitStack() as lease_stack:
        holder = f"restatement {plan.id} of {plan.environment}"
        leases = [
            lease_stack.enter_context(store.leases.hold(table_lease(name), holder, wait=WAIT))
            for name in sorted(forgets)
        ]
        by_itself = (plan.new.snapshots[automatic[0]].table, automatic[1]) if automatic else None
        store.restatements.begin(plan.id, plan.environment, forgets, leases=[lease, *leases], by_itself=by_itself)
    for impact in plan.restatement.touched:
        emit(EnvironmentTouched(impact.environment, impact.shared, impact.outdated))


def forget_copied(plan: Plan, store: StateStore, lease: Lease, emit: Emit, now: datetime) -> None:
    """Forget what a merge restates in copies, in every other table that came of these rows: it may be shown again."""
    copied = [(c.name, c.override.restates) for c in plan.changes if c.override and c.override.restates]
    if plan.environment != PROD or not copied:
        return
    past, graph, forgets = store.restatements.past(), graph_with_outer_tables(plan.new.snapshots), dict[str, Timeline]()
    for days in {days for _, days in copied}:
        names = {name for name, restated_days in copied if restated_days == days}
        # An outer table may be why, if all of its readers are restated: one that prod lacks read its old rows, too.
        outer = {name for name in graph.order if graph.models[name].kind.is_external}
        names |= {name for name in outer if set() < find_computed(graph, [name]) <= names}
        window = Window(now, days.start, days.end)
        for table, time in find_outdated_tables(plan.new, past, {}, names, window)[0].items():
            forgets[table] = merge_intervals((*forgets.get(table, ()), *time))
    forget_restated(replace(plan, id=f"{plan.id} copied", restatement=Restatement(forgets)), store, lease, emit)


def forget_overtaken(due: Plan, loaded: Loaded, store: StateStore, tables_of_prod: Collection[str]) -> None:
    """Forget, in tables that prod does not show, time that they hold and that a run computes only now in prod's."""
    due_times = {
        change.name: subtract_intervals(change.missing, loaded.timeline_of(change.new))
        for change in due.changes
        if change.new and change.new.table in tables_of_prod
    }
    if not any(due_times.values()):
        return
    for table, time in find_overtaken_time(due_times, store.restatements.past(), loaded.timelines).items():
        with store.leases.hold(table_lease(table), f"run of {due.environment}", wait=WAIT) as lease:
            for interval in time:
                store.intervals.forget(table, interval, lease=lease)
