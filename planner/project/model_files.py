"""The models of a project's files, each read once or recalled; one that needs another's columns waits for it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.parsing.definitions.known_columns import KnownColumns, NotRead
from mergeplan.planner.parsing.files.external_models import external_models
from mergeplan.planner.parsing.files.model_file import Defaults, parse_models
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.yaml_documents import read_document
from mergeplan.planner.project.audit_files import add_audit
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.refused import Refusing
from mergeplan.planner.project.remembered import Remembered, Said, load_file, prefetch_files, read_ahead
from mergeplan.planner.project.remembered_code import RememberedModels
from mergeplan.planner.project.seeds import load_seed
from mergeplan.planner.python.messages import RegisteredModel
from mergeplan.planner.python.project import ProjectCode


def read_models(
    reading: Folder, refusing: Refusing, config: Config, file_cache: Remembered, code: ProjectCode, defaults: Defaults
) -> tuple[dict[str, Model], dict[str, Audit]]:
    models: dict[str, Model] = {}
    audits: dict[str, Audit] = {}
    known_columns, waiting = KnownColumns(models), list[tuple[str, Callable[[], None]]]()
    defaults = replace(defaults, columns=known_columns.find_columns)
    load = partial(load_file, reading, file_cache, defaults)

    def read(name: str) -> None:
        try:
            file_models, inline = load(name, parse_models)
        except NotRead:
            waiting.append((name, partial(read, name)))
            return
        for audit in inline:
            add_audit(reading, audits, audit)
        for model in [load_seed(reading.root, candidate) if candidate.seed else candidate for candidate in file_models]:
            _add_model(reading, models, model)

    def read_python(registration: RegisteredModel) -> None:
        try:
            models_of_it = python_models.read(registration, defaults)
        except NotRead:
            waiting.append((registration.path, partial(read_python, registration)))
            return
        for model in models_of_it:
            _add_model(reading, models, model)

    def read_external(name: str) -> None:
        def external(text: str, path: str, defaults: Defaults) -> Said:
            return tuple(external_models(read_document(path, text), text, defaults, config.gateways)), ()

        for model in load(name, external)[0]:
            _add_model(reading, models, model)

    names = tuple(reading.files("models", config.ignore_patterns, ".sql"))
    singles = [name for name in ("external_models.yaml", "external_models.yml") if (reading.root / name).is_file()]
    singles += reading.files("external_models", config.ignore_patterns, ".yaml", ".yml")
    audits_files = reading.files("audits", config.ignore_patterns, ".sql")
    prefetch_files(reading, file_cache, defaults, (*names, *singles, *audits_files))
    read_ahead(reading, file_cache, defaults, names, parse_models)
    refusing.files(names, read, lambda name: file_cache.is_cheap(name, reading.hashes.get(name, "")))
    python_models = RememberedModels(file_cache, code, reading.hashes)
    refusing.each(code.registrations, read_python, lambda entry: entry.path, python_models.is_cheap)
    reading.each(singles, read_external)
    while waiting and not (reading.errors and known_columns.complete):
        retried_jobs, count = waiting[:], len(waiting)
        waiting.clear()
        refusing.each(retried_jobs, lambda job: job[1](), lambda job: job[0])
        # the remaining ones need tables that no file defines, or depend on each other
        known_columns.complete = known_columns.complete or len(waiting) == count
    return dict(sorted(models.items())), audits


def _add_model(reading: Folder, models: dict[str, Model], model: Model) -> None:
    """Add a model; two of one name make the project fail, because it is unknown which is meant."""
    if model.name in models:
        message = f"The model `{model.name}` is already defined at {models[model.name].place}."
        reading.errors.append(ProjectError(message, place=model.place))
    else:
        models[model.name] = model
