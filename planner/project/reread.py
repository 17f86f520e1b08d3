"""Parse one SQL file of a project again with all that the project knows already, for a caller at each keystroke.

The result is that of loading the whole project with this text. `NeedsLoad` is raised if one file does not decide that
alone (audits of its own, a setting of another gateway, macros of others that read its columns).
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.model.graph import Graph, graph_of, update_graph
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.parsing.definitions.audits.audit_calls import check_call
from mergeplan.planner.parsing.definitions.known_columns import KnownColumns
from mergeplan.planner.parsing.files.catalogs import apply_catalog
from mergeplan.planner.parsing.files.environments import naming_of
from mergeplan.planner.parsing.files.lint_config import check_ignored
from mergeplan.planner.parsing.files.model_file import parse_models
from mergeplan.planner.project.audit_files import attach_audits
from mergeplan.planner.project.folder import SIMPLER
from mergeplan.planner.project.loader import Project
from mergeplan.planner.project.pipeline_folder import is_pipeline
from mergeplan.planner.project.python_files import check_signals
from mergeplan.planner.project.refused import refuse_old_versions
from mergeplan.planner.project.seeds import load_seed

# Built-in macros that ask for the columns of a table, and Jinja, which may call them
_ASKS_FOR_COLUMNS = re.compile(r"@(star|union|deduplicate)\b|\{\{|\{%", re.IGNORECASE)


class NeedsLoad(Exception):
    """Only loading the whole project says what this text comes to."""


def reread_file(project: Project, path: str, text: str, graph: Graph | None = None) -> Project:
    """Return the project with this text in place of a SQL file of models/.

    Raise ProjectError(s) for its errors, and NeedsLoad if the project must be loaded as a whole. The file's refusals
    and its other models are dropped. `graph` is the project's, if it is known.
    """
    if project.is_dbt or is_pipeline(project.root):
        raise NeedsLoad
    other_models = {name: model for name, model in project.models.items() if model.path != path}
    old_models = {name: model for name, model in project.models.items() if model.path == path}
    models = _read_models(project, other_models, path, text)
    if twice := [model for model in models if model.name in other_models]:
        message = f"The model `{twice[0].name}` is already defined at {other_models[twice[0].name].place}."
        raise ProjectError(message, place=twice[0].place)
    new_models = {model.name: model for model in models}
    project_now = replace(project, models=dict(sorted((other_models | new_models).items())))
    for model in models:
        refuse_old_versions(model, project_now.models)
    graph_now = update_graph(graph or graph_of(project.models), project_now.models, new_models.keys())
    if old_models.keys() != new_models.keys() and (
        project.refused or any(test.model in old_models for test in project.tests)
    ):
        raise NeedsLoad  # who reads it may open by now, or be refused
    if old_models.keys() - new_models.keys() and any(model.python for model in other_models.values()):
        raise NeedsLoad
    _check_askers(project, project_now, graph_now, {*old_models, *new_models})
    return project_now


def _read_models(project: Project, others: Mapping[str, Model], path: str, text: str) -> list[Model]:
    columns = KnownColumns(others, complete=True).find_columns
    defaults = replace(project.defaults, columns=columns)
    with limit_resources(lambda why: ProjectError(f"The file cannot be read: it {why}.", hint=SIMPLER)):
        models, inline = parse_models(text, path, defaults)
    file_audits = {audit.name: audit for audit in project.audits.values() if audit.path == path}
    if {audit.name: audit for audit in inline} != file_audits:
        raise NeedsLoad
    return [_complete_model(project, load_seed(project.root, model) if model.seed else model) for model in models]


def _complete_model(project: Project, model: Model) -> Model:
    for call in model.checks.audits:
        check_call(call, project.audits, model.locate(call.name, in_block=True))
    check_ignored(model, {rule.name: rule for rule in project.rules.own})
    check_signals(model, project.code)
    audits: Mapping[str, Audit] = project.audits
    model = attach_audits(model, audits)
    model = replace(model, settings=_copy_settings(project, model))
    sets_zone = any("zone" in statement.head.lower() for statement in model.statements.around)
    if sets_zone or any("timezone" in key.lower() for key, _ in model.settings):
        raise NeedsLoad  # the file of the settings is needed to say whether the model can be computed so
    naming = naming_of(project.config, project.catalogs.in_spark)
    return apply_catalog(model, project.catalogs, naming)


def _copy_settings(project: Project, model: Model) -> tuple[tuple[str, str], ...]:
    """Return the settings of its gateway's Spark, copied from another model of that gateway; raise NeedsLoad."""
    like = project.models.get(model.name)
    if like is not None and like.gateway == model.gateway and like.kind.has_query == model.kind.has_query:
        return like.settings
    candidates = (
        candidate for candidate in project.models.values() if not candidate.kind.is_external and not candidate.python
    )
    similar_model = next((candidate for candidate in candidates if candidate.gateway == model.gateway), None)
    if similar_model is None or similar_model.kind.has_query != model.kind.has_query:
        raise NeedsLoad
    return similar_model.settings


def _check_askers(before: Project, now: Project, graph: Graph, names: set[str]) -> None:
    """Raise NeedsLoad if the text of another file may change, because its macros read columns of this one."""
    calls_code = bool(before.code.names)
    readers = graph.downstream(names) - names
    if not calls_code and not any(_ASKS_FOR_COLUMNS.search(now.models[name].source) for name in readers):
        return
    if _find_columns(before, names) != _find_columns(now, names):
        raise NeedsLoad


def _find_columns(project: Project, names: set[str]) -> dict[str, object]:
    known_columns = KnownColumns(project.models, complete=True)
    return {name: known_columns.find_columns(name) for name in names}
