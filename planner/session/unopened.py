"""Models that cannot be opened, in a plan and before it: held as they are deployed, and named."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from mergeplan.planner.checks.linter import Violation
from mergeplan.planner.errors import Place, ProjectError, RequestError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.unit_tests import UnknownModel
from mergeplan.planner.parsing.files.lint_config import REFUSED
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.refused import RefusedFile, Unopened, blockers_for_held_models
from mergeplan.planner.project.loader import Project
from mergeplan.planner.project.refused import Refusal, RefusedModels, readers_of
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD


def merge_deployed(
    models: Mapping[str, Model], refused_models: RefusedModels, deployed_models: Mapping[str, Model]
) -> tuple[Mapping[str, Model], Unopened]:
    """Return the models to plan: deployed versions replace refused models and what reads them."""
    if not refused_models:
        return models, Unopened()
    gone = deployed_models.keys() - models.keys()
    unopened_names = {
        name for name in gone if name in refused_models.names or _may_be(deployed_models[name], refused_models)
    }
    out = {
        **{exclusion.model: exclusion.reads for exclusion in refused_models.left_out},
        **readers_of(models, unopened_names),
    }
    reused_names = (unopened_names | out.keys()) & deployed_models.keys()
    opened = {name: model for name, model in models.items() if name not in out}
    # what only they read is in no file: tables that Spark's catalog knows
    outer = {
        read
        for name in reused_names
        for read in deployed_models[name].depends_on
        if read in deployed_models and read not in opened
    }
    added_names = reused_names | {name for name in outer if deployed_models[name].kind.is_external}
    absent = {name: deployed_models[name] for name in gone}
    files = tuple(
        RefusedFile(error.place or Place(refusal.path), error.message, error.hint, refusal.models, is_deployed)
        for refusal in refused_models.refusals
        for is_deployed in [_is_deployed(refusal, absent, refused_models)]
        for error in refusal.errors
    )
    planned_models = {**opened, **{name: deployed_models[name] for name in added_names}}
    return dict(sorted(planned_models.items())), Unopened(files, dict(sorted(out.items())), frozenset(reused_names))


def add_unopened(plan: Plan, unopened_files: Unopened) -> Plan:
    """Return the plan with its unopened files, blocked if a model that they leave unchanged would be computed."""
    if not unopened_files.refused:
        return plan
    models = {name: snapshot.model for name, snapshot in plan.new.snapshots.items()}
    blockers = blockers_for_held_models(plan.changes, unopened_files, models)
    return replace(plan, unopened=unopened_files, blockers=(*plan.blockers, *blockers))


def plan_refusals(work: Workspace, must_open: Collection[str] = ()) -> tuple[Violation, ...]:
    """Return each refused model as a violation, which stops a plan if prod shows it, or its file `must_open`."""
    refused = work.project.refused
    if not refused:
        return ()
    deployed = _prod_models(work)
    violations: list[Violation] = []
    for refusal in refused.refusals:
        edited = refusal.path in must_open or "*" in must_open
        violations += _list_violations(refusal, edited or _is_blocking(work.project, refusal, deployed))
    return tuple(violations)


def lint_refusals(project: Project) -> tuple[Violation, ...]:
    """Return each refused model as a violation for lint: an error by default, a warning for a test without model."""
    blocks = _rule_blocks(project)
    violations: list[Violation] = []
    for refusal in project.refused.refusals:
        is_test = all(isinstance(error, UnknownModel) for error in refusal.errors)
        violations += _list_violations(refusal, not is_test if blocks is None else blocks)
    return tuple(violations)


def _list_violations(refusal: Refusal, blocking: bool) -> list[Violation]:
    names = " ".join(refusal.models)
    return [
        Violation(REFUSED, names, _format_error(error), error.place or Place(refusal.path), blocking, error)
        for error in refusal.errors
    ]


def _rule_blocks(project: Project) -> bool | None:
    """Return True if the rule `refusedmodel` of config.yaml is an error, None if config.yaml does not name it."""
    return REFUSED in project.rules.errors if REFUSED in project.rules.every | project.rules.ignored else None


def _prod_models(work: Workspace) -> Mapping[str, Model] | None:
    try:
        environment = work.store.environments.get(PROD)
    except RequestError:
        return None
    return {name: snapshot.model for name, snapshot in environment.snapshots.items()}


def _is_blocking(project: Project, refusal: Refusal, deployed_models: Mapping[str, Model] | None) -> bool:
    if (blocks := _rule_blocks(project)) is not None:
        return blocks
    if deployed_models is None:
        return True
    gone = {name: model for name, model in deployed_models.items() if name not in project.models}
    return _is_deployed(refusal, gone, project.refused)


def _is_deployed(refusal: Refusal, gone_models: Mapping[str, Model], refused_models: RefusedModels) -> bool:
    """Return True if prod shows a model of the file, or may, as a deployed one that no file defines any more."""
    named = any(
        name in refusal.models or (refusal.whole and model.path == refusal.path) for name, model in gone_models.items()
    )
    return named or (not refusal.clear and bool(gone_models.keys() - refused_models.names))


def _may_be(model: Model, refused_models: RefusedModels) -> bool:
    """Return True if a deployed model that no file defines may be one of those that cannot be opened."""
    return model.path in refused_models.paths or not refused_models.clear


def _format_error(error: ProjectError) -> str:
    prefix = "the test is not run: " if isinstance(error, UnknownModel) else ""
    return f"{prefix}{error.message}" + (f" {error.hint}" if error.hint else "")
