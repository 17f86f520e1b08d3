"""Models that restate themselves: when `auto_restatement_cron` is due, a run forgets their last units first.

The forgotten time is missing, so the run that follows computes it, with all models downstream.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from mergeplan.planner.apply.backfill.clear_intervals import forget_restated
from mergeplan.planner.apply.events import Emit, RestatedThemselves
from mergeplan.planner.errors import RequestError
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.restatement_plan import build_restatement
from mergeplan.planner.plan.schedule import Loaded, Window, units_before
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore


def due_to_restate(
    shown_snapshots: Mapping[str, Snapshot], since: Mapping[str, datetime], now: datetime
) -> tuple[str, ...]:
    """Return the names of models whose `auto_restatement_cron` ticked since they were last restated or first shown."""
    crons = {name: snapshot.model.policy.auto_restatement_cron for name, snapshot in sorted(shown_snapshots.items())}
    return tuple(name for name, cron in crons.items() if cron and name in since and cron.floor(now) > since[name])


def restate_due(environment: Environment, store: StateStore, now: datetime, lease: Lease, emit: Emit) -> None:
    """Forget the due last units of each model, one transaction each; tables that prod shows are left to prod's run."""
    if all(snapshot.model.policy.auto_restatement_cron is None for snapshot in environment.snapshots.values()):
        return
    restated = []
    for name in due_to_restate(environment.snapshots, store.restatements.last_restated(environment.name), now):
        plan = _plan_restatement(environment, store, name, now)
        if plan is not None:
            at = replace(plan, id=f"{plan.id} {now:%Y-%m-%dT%H:%M:%S}")  # the same days may be restated every week
            forget_restated(at, store, lease, emit, automatic=(name, now))
            restated.append(name)
    if restated:
        emit(RestatedThemselves(tuple(restated)))


def _plan_restatement(environment: Environment, store: StateStore, name: str, now: datetime) -> Plan | None:
    model, window = environment.snapshots[name].model, Window(now)
    if model.policy.auto_restatement_intervals is not None:
        start = units_before(model, window.due(model), model.policy.auto_restatement_intervals)
        window = replace(window, start=start)
    loaded = Loaded(store.intervals.load_timelines([snapshot.table for snapshot in environment.snapshots.values()]))
    try:
        plan = build_restatement(environment, loaded, window, [name], store.restatements.past())
    except RequestError:
        return None  # it must not be restated, or has no such time yet
    return plan if name in {change.name for change in plan.changes} else None
