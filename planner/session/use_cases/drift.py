"""Drift of environments as a plan meets it: warnings, and a refusal to compute from tables that are gone."""

from dataclasses import replace

from mergeplan.planner.apply.drift import Drift, DriftKind, find_drift, find_emptied
from mergeplan.planner.errors import Refused
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Blocker
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD, Environment


def add_drift_warnings(work: Workspace, plan: Plan, *, describe: bool) -> Plan:
    """Return the plan with a warning for each difference between state and prod; `describe` asks Spark for more."""
    store = work.store
    prod = store.environments.get(PROD)
    shown = [prod, *([plan.old] if plan.environment != PROD else [])]
    drift = [
        difference
        for one in shown
        if one.exists
        for difference in (find_all_drift(work, one, prod) if describe else find_drift(one, prod, work.engine))
    ]
    return replace(plan, warnings=(*plan.warnings, *(Blocker(difference.sentence) for difference in drift)))


def find_all_drift(work: Workspace, environment: Environment, prod: Environment) -> tuple[Drift, ...]:
    drift = find_drift(environment, prod, work.engine, describe=True)
    gone = {difference.name for difference in drift if difference.kind is DriftKind.TABLE_GONE}
    return (*drift, *find_emptied(environment, prod, work.store, work.engine, gone_tables=gone))


def check_sources(work: Workspace, plan: Plan) -> None:
    """Raise Refused if a table is missing that the plan's computations read and the plan does not compute."""
    prod, snapshots = work.store.environments.get(PROD), plan.new.snapshots
    graph = graph_of({name: snapshot.model for name, snapshot in snapshots.items()})
    computed = {change.name for change in plan.changes if change.missing}
    read = {snapshots[name].table for name in graph.upstream(computed) - computed}
    if not read:
        return
    for environment in (prod, *([plan.old] if plan.environment != PROD else [])):
        for drift in find_drift(environment, prod, work.engine) if environment.exists else ():
            if drift.kind is DriftKind.TABLE_GONE and drift.name in read:
                readers = ", ".join(f"`{name}`" for name in sorted(graph.downstream([drift.model]) & computed))
                hint = f"Run `mergeplan run {drift.environment} --refresh` first: it creates and computes the table."
                raise Refused(f"{drift.fact} It is read by {readers}.", hint=hint)
