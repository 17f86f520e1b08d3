"""diff: what an environment shows, against the project's files or another environment."""

from __future__ import annotations

from collections.abc import Mapping

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan, Request, build_plan
from mergeplan.planner.plan.schedule import Window
from mergeplan.planner.session.unopened import merge_deployed
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.environment import Environment, parse_environment_name


def difference(work: Workspace, environment: str, other: str | None = None) -> Plan:
    """What would make the environment show the project's files, or the other environment, as a plan's changes."""
    shown = work.environment(parse_environment_name(environment))
    models = _models(work.environment(parse_environment_name(other))) if other else _local(work, shown)
    return build_plan(models, shown, shown, load_state(work), Request(Window(work.now), naming=shown.naming))


def _models(environment: Environment) -> Mapping[str, Model]:
    return {name: snapshot.model for name, snapshot in environment.snapshots.items()}


def _local(work: Workspace, environment: Environment) -> Mapping[str, Model]:
    """The project's models, and the external tables that only Spark's catalog knew: Spark is not asked again."""
    known = {name: snapshot.model for name, snapshot in environment.snapshots.items() if name in work.external_tables}
    models = {**work.project.models, **{name: model for name, model in known.items() if model.kind.is_external}}
    return merge_deployed(models, work.project.refused, _models(environment))[0]
