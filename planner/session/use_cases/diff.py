"""diff: what an environment shows, against the project's files, another environment, or a proposed text of a file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan, Request, build_plan
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.schedule import Window
from mergeplan.planner.project.folder import is_unicode
from mergeplan.planner.session.unopened import merge_deployed
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.environment import Environment, parse_environment_name

LARGEST = 1_000_000  # characters of a text


def plan_difference(work: Workspace, environment: str, other: str | None = None) -> Plan:
    """Return the plan that would make the environment show the project's files, or the other environment."""
    shown = work.environment(parse_environment_name(environment))
    models = _list_models(work.environment(parse_environment_name(other))) if other else _load_local_models(work, shown)
    return build_plan(models, shown, shown, load_state(work), Request(Window(work.now), naming=shown.naming))


def _list_models(environment: Environment) -> Mapping[str, Model]:
    return {name: snapshot.model for name, snapshot in environment.snapshots.items()}


def _load_local_models(work: Workspace, environment: Environment) -> Mapping[str, Model]:
    """Return the project's models and the external tables that only Spark's catalog knew; do not query Spark again."""
    models = dict(work.project.models)
    for name in (work.external_tables | work.undescribed_tables) & environment.snapshots.keys():
        shown = environment.snapshots[name].model
        if shown.kind.is_external:
            models[name] = replace(models[name], columns=shown.columns) if name in models else shown
    return merge_deployed(models, work.project.refused, _list_models(environment))[0]


def check_proposal(path: str, text: str) -> str:
    """Return the path as the project names its files; raise RequestError unless it is that of a model in SQL.

    Python is excluded because to open it is to run it.
    """
    if not is_unicode(text) or not is_unicode(path):
        raise RequestError("The path or the text is not Unicode.")
    parts = PurePosixPath(path).parts
    if parts[:1] != ("models",) or ".." in parts or not path.endswith(".sql") or any(p.startswith(".") for p in parts):
        raise RequestError(f"`{path[:200]}` is no SQL file below `models/`.", hint="Write it like `models/orders.sql`.")
    if len(text) > LARGEST:
        raise RequestError(f"The proposed text has {len(text):,} characters: {LARGEST:,} are allowed.")
    return "/".join(parts)


def find_impact(work: Workspace, environment: str, path: str, text: str) -> Plan:
    """Plan the project with this text in place of a file; raise ProjectError if the text does not open."""
    name = check_proposal(path, text)
    if work.project.is_dbt:
        raise RequestError(
            "The models of a dbt project are compiled by dbt, from files.", hint="Write the file, and plan."
        )
    with_text = Workspace(work.settings, work.profile, work.now, work.on_event, only_looks=True, proposed={name: text})
    try:
        for refusal in with_text.project.refused.refusals:
            if refusal.path == name:
                raise refusal.errors[0]
        plan = plan_difference(with_text, environment)
    finally:
        with_text.close()
    earlier_identities = {_change_identity(change) for change in plan_difference(work, environment).changes}
    return replace(
        plan, changes=tuple(change for change in plan.changes if _change_identity(change) not in earlier_identities)
    )


def _change_identity(change: Change) -> tuple[str, str, str]:
    """Return what tells a change of the proposal from one that the files already contain."""
    return change.name, change.new.fingerprint.text if change.new else "", str(change.category)
