"""run: what has come due in an environment, computed."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace

from mergeplan.planner.apply.backfill.auto_restatement import restate_due
from mergeplan.planner.apply.backfill.clear_intervals import forget_overtaken
from mergeplan.planner.apply.backfill.layout import Layout
from mergeplan.planner.apply.drift import check_catalog, find_drift, forget_lost_tables, mend_views
from mergeplan.planner.apply.events import ModelLate
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.errors import LeaseHeld, ProjectError, RequestError
from mergeplan.planner.intervals import Timeline, subtract_intervals
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan, build_run
from mergeplan.planner.plan.schedule import Readiness, Window
from mergeplan.planner.python.running import open_runner
from mergeplan.planner.session.events import Due, Warned
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.options import RunOptions
from mergeplan.planner.session.scheduling.recording import record_run, restate_recorded
from mergeplan.planner.session.use_cases.applying import Record, execute_plan
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.session.use_cases.planning import estimate_costs
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.environment import PROD, Environment
from mergeplan.planner.state.leases import Lease


@dataclass(frozen=True)
class RunResult:
    """What a run came to: without a plan nothing was tried, without an outcome nothing was due."""

    plan: Plan | None = None
    outcome: Outcome | None = None
    skipped: str = ""  # why nothing was tried: another run is at the same work
    updated: bool = False  # nothing was tried: the environment was changed meanwhile, see RunOptions.unless_updated


def compute_due_models(work: Workspace, options: RunOptions) -> RunResult:
    """Compute what is due when it is this run's turn; leave it to another run that does the same work."""
    start, end = parse_moment(options.start, work.now), parse_moment(options.end, work.now, end=True)
    if start and end and start >= end:
        raise RequestError(f"The end `{options.end}` does not come after the start `{options.start}`.")
    if not options.upstream and not options.select:
        raise RequestError("`--no-auto-upstream` does nothing without `--select-model`.", hint="Select some models.")
    if options.restate and not options.run_id:
        raise RequestError("`--restate-model` needs `--run-id`.", hint="Or use `mergeplan plan --restate-model MODEL`.")
    name, window = options.environment, Window(work.now, start, end, ignore_cron=options.ignore_cron)
    work.about = frozenset({name})
    start_revision = work.environment(name).revision
    with ExitStack() as turn:
        lease = _wait_for_turn(work, name, turn)
        if isinstance(lease, str):
            return RunResult(skipped=lease)
        if options.unless_updated and work.environment(name).revision != start_revision:
            return RunResult(updated=True)
        with record_run(work, options.run_id, name, again=bool(options.restate)):
            restate_recorded(work, options.run_id, options.restate, name, lease)
            return _run_due_models(work, options, window, lease)


def run_after_plan(work: Workspace, name: str) -> RunResult:
    with work.lease(name, _run_of(name)) as lease:
        return _run_due_models(work, RunOptions(name), Window(work.now), lease)


def _run_due_models(work: Workspace, options: RunOptions, window: Window, lease: Lease) -> RunResult:
    work.settle(lease)
    environment, prod = work.environment(options.environment), work.store.environments.get(PROD)
    restate_due(environment, work.store, work.now, lease, work.on_event)
    if not (options.refresh or work.has_engine or work.is_warm):
        chosen = _select_run_models(work, environment, options)
        due = build_run(environment, load_state(work), window, prod, chosen)
        if due.is_empty:  # nor is anything, where signals hold time back: no Spark is started for it
            work.on_event(Due(due, {}))
            return RunResult(due)
    if not options.refresh:
        check_catalog(environment, work.engine)
    drift = find_drift(environment, prod, work.engine)
    for difference in drift:
        work.on_event(
            Warned(f"{difference.fact} This run restores it." if difference.is_mendable else difference.sentence)
        )
    lost = forget_lost_tables(drift, work.store)
    loaded, chosen = replace(load_state(work), lost=lost), _select_run_models(work, environment, options)
    with open_runner(work.project.code, work.engine) as python:
        ready = _make_readiness(Layout(environment.snapshots, {}, work.now, python))
        due = build_run(environment, loaded, window, prod, chosen, ready)
    work.on_event(Due(due, estimate_costs(work, due)))
    for model, late in due.late.items():
        signals = tuple(call.name for call in environment.snapshots[model].model.schedule.signals)
        work.on_event(ModelLate(model, signals, late))
    forget_overtaken(due, loaded, work.store, {snapshot.table for snapshot in prod.snapshots.values()})
    outcome = execute_plan(work, due, lease, Record(note=options.note)) if lost or not due.is_empty else None
    failed = {failure.model for failure in outcome.failures} if outcome else set[str]()
    # a view is not restored over a table that could not be computed
    mend_views(
        environment,
        [difference for difference in drift if difference.model not in failed],
        work.store,
        work.engine,
        lease,
    )
    return RunResult(due, outcome)


def _make_readiness(layout: Layout) -> Readiness:
    """Return a function that subtracts the time that signals hold back from a model's missing time.

    A signal that fails holds nothing back: it is checked again when the model is computed, and fails that model alone.
    """

    def ready(model: Model, missing: Timeline) -> Timeline:
        try:
            return subtract_intervals(missing, layout.check_signals(model, missing, ())[1])
        except ProjectError:
            return missing

    return ready


def _wait_for_turn(work: Workspace, name: str, turn: ExitStack) -> Lease | str:
    """Wait for the lease on the environment; return a sentence instead if another run does the same work."""
    try:
        return turn.enter_context(work.lease(name, _run_of(name), wait=0))
    except LeaseHeld:
        holder = work.store.leases.holder(name)
    if holder is not None and holder.holder == _run_of(name):
        return f"`{name}` is being run already, since {holder.since:%Y-%m-%d %H:%M:%S} UTC: nothing was done here."
    return turn.enter_context(work.lease(name, _run_of(name)))


def _run_of(name: str) -> str:
    return f"run of {name}"


def _select_run_models(work: Workspace, environment: Environment, options: RunOptions) -> Collection[str] | None:
    if not options.select:
        return None
    graph = graph_of({name: snapshot.model for name, snapshot in environment.snapshots.items()})
    names = select_by_request(work.project, options.select, graph)
    return names | graph.upstream(names) if options.upstream else names
