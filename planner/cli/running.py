"""Carrying a plan out and telling how it went: what `plan`, `apply` and `run` have in common; and the catching up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from planner.apply.auto_restatement import restate_what_struck
from planner.apply.backfill import Filled
from planner.apply.create_tables import Layout
from planner.apply.estimate import forecast
from planner.apply.events import ModelLate
from planner.apply.executor import Outcome
from planner.apply.executor import apply as apply_plan
from planner.cli.failure import report
from planner.cli.gitchanges import changed_since
from planner.cli.json_lines import JsonLines
from planner.cli.openlineage import openlineage
from planner.cli.terminal import Terminal
from planner.cli.unfinished import LEASE_WAIT as LEASE_WAIT  # others import it from here
from planner.cli.workspace import Workspace
from planner.errors import ProjectError, Refused
from planner.intervals import Timeline, subtract
from planner.model.graph import graph_of
from planner.model.model import Model
from planner.model.selection import select
from planner.plan.build import Plan, build_run
from planner.plan.costs import Estimate
from planner.plan.schedule import Readiness, Window
from planner.python.running import running
from planner.snapshot.environment import PROD, Environment
from planner.state.leases import Lease

Output = Terminal | JsonLines


@dataclass(frozen=True)
class Wanted:
    """What a run is asked for: the window, the models (() for all), and whether what they read runs with them."""

    window: Window
    select: tuple[str, ...] = ()
    upstream: bool = True
    note: str = ""


def catch_up(work: Workspace, name: str, out: Output, wanted: Wanted, lease: Lease) -> tuple[Plan, Outcome | None]:
    """What is due in an environment, told and computed; None when it is nothing."""
    work.settle(lease)
    environment, prod = work.environment(name), work.store.environments.get(PROD)
    restate_what_struck(environment, prod, work.store, work.now, lease, out.event)
    loaded, chosen = work.loaded()[0], _chosen(work, environment, wanted)
    with running(work.project.code, work.engine) as python:
        ready = readiness(Layout(environment.snapshots, {}, work.now, python))
        due = build_run(environment, loaded, wanted.window, prod, chosen, ready)
    out.due(due, estimates(work, due))
    for model, late in due.late.items():
        signals = tuple(call.name for call in environment.snapshots[model].model.signals)
        out.event(ModelLate(model, signals, late))
    return due, None if due.is_empty else carried_out(work, out, due, lease, note=wanted.note)


def readiness(layout: Layout) -> Readiness:
    """What of a model's missing time its signals say is ready. A signal that fails holds nothing back: it is asked
    again when the model is computed, and fails that model alone."""

    def ready(model: Model, missing: Timeline) -> Timeline:
        try:
            return subtract(missing, layout.awaited(model, missing, ())[1])
        except ProjectError:
            return missing

    return ready


def then_run(work: Workspace, name: str, out: Output) -> Outcome:
    """What `plan --run` does when the plan is carried out."""
    if isinstance(out, Terminal):
        out.finished()
    with work.store.leases.hold(name, run_of(name), wait=LEASE_WAIT) as lease:
        _, outcome = catch_up(work, name, out, Wanted(Window(work.now)), lease)
    return outcome or Outcome((), Filled(), None)


def run_of(name: str) -> str:
    """How a run calls itself while it holds an environment."""
    return f"run of {name}"


def _chosen(work: Workspace, environment: Environment, wanted: Wanted) -> Collection[str] | None:
    if not wanted.select:
        return None
    graph = graph_of({name: each.model for name, each in environment.snapshots.items()})
    names = select(graph, wanted.select, changed_since(work.project))
    return names | graph.upstream(names) if wanted.upstream else names


def estimates(work: Workspace, planned: Plan) -> Mapping[str, Estimate]:
    """What the plan's backfills would cost; Spark is asked only when it runs already."""
    return forecast(planned, work.store, work.engine if work.has_engine else None, work.now)


def unapplied(out: Output, planned: Plan, more: Mapping[str, object] | None = None) -> int:
    """An empty plan is done; a blocked one is refused, each blocker told."""
    if isinstance(out, JsonLines):
        for blocker in planned.blockers:
            out.error(Refused(blocker.message, place=blocker.place))
        out.result(not planned.blockers, None, more)
    return Refused.exit_code if planned.blockers else 0


def carried_out(
    work: Workspace,
    out: Output,
    planned: Plan,
    lease: Lease,
    who: str = "",
    note: str = "",
    complete: bool = True,
    replan: Callable[[], Plan] | None = None,
) -> Outcome:
    with openlineage(work, planned, out) as told:
        told.outcome = apply_plan(
            planned, work.project, work.engine, work.store, lease,
            now=work.now, emit=told.event, who=who, note=note, complete=complete, replan=replan,
        )  # fmt: skip
    return told.outcome


def told(out: Output, outcome: Outcome, more: Mapping[str, object] | None = None) -> int:
    """Tell how it ended; the exit code is that of the first failure."""
    if isinstance(out, Terminal):
        out.finished()
    elif not outcome.failures:
        out.result(True, outcome, more)
    return _failed(out, outcome) if outcome.failures else 0


def _failed(out: Output, outcome: Outcome) -> int:
    errors = [failure.error for failure in outcome.failures]
    if isinstance(out, JsonLines):
        for error in errors:
            out.error(error)
        out.result(False, outcome)
    else:
        for error in errors:
            report(error, as_json=False)
    return errors[0].exit_code
