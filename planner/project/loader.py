"""Loads a Project from a folder: each file is read once, all errors are reported at once, nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mergeplan.planner.cache.store import NO_CACHE, Cache
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Place, ProjectError, RequestError
from mergeplan.planner.file_note import note_file
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.definitions.known_columns import KnownColumns
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.files.catalogs import Catalogs, apply_catalog, catalogs_of
from mergeplan.planner.parsing.files.config import read_defaults
from mergeplan.planner.parsing.files.environments import naming_of
from mergeplan.planner.parsing.files.gateway_settings import (
    DEFAULTS_FILE,
    GatewaySettings,
    apply_gateway_settings,
    gateway_settings,
)
from mergeplan.planner.parsing.files.gateways import apply_gateway_defaults
from mergeplan.planner.parsing.files.lint_config import NONE, Chosen, OwnRule, check_ignored, select_rules
from mergeplan.planner.parsing.files.model_file import Defaults, parse_models
from mergeplan.planner.parsing.files.schema import Config, ConnectionConfig
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.parsing.sql.user_macros import Scalar
from mergeplan.planner.parsing.sql.yaml_documents import Document
from mergeplan.planner.project import python_files
from mergeplan.planner.project import refused as refusals
from mergeplan.planner.project.audit_files import attach_audits, check_audits, read_audits
from mergeplan.planner.project.configuration_files import read_config_files
from mergeplan.planner.project.exposures import load_exposures
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.model_files import read_models
from mergeplan.planner.project.pipeline_folder import PipelineFolder, is_pipeline
from mergeplan.planner.project.refused import NOTHING, RefusedModels, Refusing
from mergeplan.planner.project.remembered import open_file_cache
from mergeplan.planner.project.unit_tests import read_unit_tests
from mergeplan.planner.project_format import is_dbt_project
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation
from mergeplan.planner.python.project import ProjectCode

if TYPE_CHECKING:  # what reads dbt's projects is imported for those alone
    from mergeplan.planner.project.dbt.folder import DbtFolder


@dataclass(frozen=True)
class Project:
    """The content of a project's folder: `models` and `audits` by name; `files` is a hash of all that was read."""

    root: Path
    config: Config
    gateway: str
    models: Mapping[str, Model]
    audits: Mapping[str, Audit]
    tests: tuple[UnitTest, ...]
    files: str
    defaults: Defaults
    code: ProjectCode
    rules: Chosen = NONE  # of the linter
    rule_files: Mapping[str, str] = field(default_factory=dict)  # Python texts by path, for rules of the project's own
    refused: RefusedModels = NOTHING  # what is not in `models` since it cannot be opened
    catalogs: Catalogs = field(default_factory=Catalogs)  # of its gateway
    config_path: str = "config.yaml"  # or config.py
    hashes: Mapping[str, str] = field(default_factory=dict)  # of the files that were looked at
    notes: tuple[str, ...] = ()  # what of a dbt project is not followed, and stops nothing
    is_dbt: bool = False
    dbt_sources: frozenset[str] = frozenset()  # their tables, those without columns or freshness too
    dbt_tests: tuple[int, int] = (0, 0)  # that are audits, of all
    exposures: tuple[Exposure, ...] = ()

    @property
    def connection(self) -> ConnectionConfig:
        return self.config.gateways[self.gateway].connection

    @property
    def standalone(self) -> tuple[Audit, ...]:
        """The standalone audits, by name."""
        return tuple(audit for _, audit in sorted(self.audits.items()) if audit.standalone)

    @property
    def models_to_inline(self) -> dict[str, Model]:
        """The models without a table, whose queries are inlined into those that read them."""
        return {name: model for name, model in self.models.items() if model.kind.is_embedded}


@dataclass(frozen=True)
class LoadOptions:
    """How a project is opened.

    `gateways_from` is another configuration whose gateways, `openlineage` and `audits` replace the folder's own. Unless
    `strict`, a model that cannot be opened is refused by itself, with what reads it. `proposed` are texts in place of
    files, by path. Unless it `runs_code`, none of the folder's Python runs: what needs it is refused.

    `open_engine` opens the Spark that answers what templates of dbt ask; without it they are refused, and unless it
    `gives_rows`, those that ask for rows. `load_deployed` returns the models of prod, from which these rows are taken
    unless the folder has them otherwise.
    """

    gateways_from: Path | None = None
    isolation: Isolation = NO_ISOLATION
    cache: Cache = NO_CACHE
    strict: bool = True
    proposed: Mapping[str, str] = field(default_factory=dict)
    open_engine: Callable[[Config, str, frozenset[str]], Engine] | None = None
    load_deployed: Callable[[Config, str], Mapping[str, Model]] = lambda config, gateway: {}
    runs_code: bool = True
    gives_rows: bool = True
    on_read: Callable[[int, int], None] = lambda done, total: None  # how many files of how many


def load_project(
    root: Path, now: datetime, gateway: str | None = None, options: LoadOptions = LoadOptions()
) -> Project:
    """Load the project of a folder at a time; raise ProjectErrors for its files, RequestError for the gateway.

    Environment variables are read only where the configuration uses them. Raise ProjectErrors if no model is left.
    Raise Refused if the folder has Python code that is to be isolated and this machine cannot isolate it.
    """
    reading = Folder(root.resolve(), options.cache, options.proposed)
    with limit_resources(reading.too_much):
        if not options.runs_code:
            python_files.check_configuration_is_data(reading)
        config, document, ruled_by = read_config_files(reading, options.gateways_from, options.isolation)
    chosen = _choose_gateway(config, gateway)
    dbt = _open_dbt(reading, config, chosen, options) if is_dbt_project(reading.root) else None
    foreign = dbt or (PipelineFolder(reading) if is_pipeline(reading.root) else None)
    reading = foreign or reading
    config = apply_gateway_defaults(config, chosen)
    own_rules = python_files.read_own_rules(reading, config)
    rules = select_rules(config.linter, document, own_rules)
    catalogs, defaults = _open_defaults(reading, config, chosen, document, now)
    names_in = partial(_foreign_names, foreign, defaults) if foreign else partial(_find_names, reading, defaults)
    refusing = Refusing(options.strict, reading.errors, names_in, options.on_read)
    code = python_files.read_code(reading, refusing, config, defaults, options.isolation, runs=options.runs_code)
    defaults = replace(defaults, macros=code)
    file_cache = open_file_cache(options.cache, defaults, config.model_defaults.model_dump_json(exclude_defaults=True))
    models, audits = read_models(reading, refusing, config, file_cache, code, defaults)
    code.close()
    read_audits(reading, refusing, config, file_cache, defaults, audits)
    check_audits(refusing, file_cache, models, audits)
    file_cache.keep(with_index=not options.proposed)
    models = _add_dbt_texts(models, dbt) if dbt else models
    _check_models(refusing, models, own_rules, code)
    models = {name: attach_audits(model, audits) for name, model in models.items()}
    models = _under_settings(reading, refusing, config, ruled_by, chosen, models)
    models, refused = _without_refused(reading, refusing, _under_catalogs(refusing, config, catalogs, models))
    tests, refused = _read_tests(reading, refusing, config, models, defaults, refused)
    exposures = load_exposures(reading, config, defaults.catalog, {*models, *refused.names} if refused.clear else None)
    reading.finish()
    note_file("")
    project = Project(
        reading.root,
        config,
        chosen,
        models,
        audits,
        tests,
        digest(reading.digest, *(model.seed.digest for model in models.values() if model.seed)),
        defaults,
        code,
        rules,
        python_files.read_python_texts(reading) if any(not rule.is_query for rule in rules.own) else {},
        refused,
        catalogs,
        config_path=document.path,
        hashes=dict(reading.hashes),
        exposures=exposures,
    )
    return _add_dbt_facts(project, dbt) if dbt else project


def _add_dbt_texts(models: Mapping[str, Model], folder: DbtFolder) -> dict[str, Model]:
    return {name: replace_settings(model, {"dbt_text": folder.dbt_text(model.path)}) for name, model in models.items()}


def _add_dbt_facts(project: Project, folder: DbtFolder) -> Project:
    return replace(
        project,
        hashes=folder.real_hashes,
        notes=folder.notes,
        dbt_tests=folder.count_tests(project.audits, project.tests),
        is_dbt=True,
        dbt_sources=frozenset(source.table for source in folder.project.sources),
    )


def load_config(root: Path, gateway: str | None = None, options: LoadOptions = LoadOptions()) -> tuple[Config, str]:
    """Return the configuration of a folder and its gateway's name, reading no other file; errors as `load_project`."""
    config, _, _ = read_config_files(Folder(root.resolve(), options.cache), options.gateways_from, options.isolation)
    return config, _choose_gateway(config, gateway)


def _choose_gateway(config: Config, wanted: str | None) -> str:
    chosen = wanted or config.gateway
    if chosen not in config.gateways:
        raise RequestError(f"There is no gateway `{chosen}`.", hint=did_you_mean(chosen, config.gateways))
    return chosen


def _open_defaults(
    reading: Folder, config: Config, gateway: str, document: Document, now: datetime
) -> tuple[Catalogs, Defaults]:
    catalogs = _gateway_catalogs(reading, config, gateway)
    defaults = read_defaults(config, gateway, document, now, catalogs.default)
    return catalogs, replace(
        defaults,
        jinja=tuple((name, reading.text(name)) for name in reading.files("macros", config.ignore_patterns, ".sql")),
        materializations=python_files.read_materializations(reading, config),
    )


def _gateway_catalogs(reading: Folder, config: Config, gateway: str) -> Catalogs:
    """Return the catalogs of a gateway; Spark's own has the name under which a dbt target of Databricks knows it."""
    connection = config.gateways[gateway].connection
    file = (_spark_defaults(connection) or ("", ""))[1]
    catalogs = catalogs_of(gateway, connection, file)
    if catalogs.default != SESSION_CATALOG or not is_dbt_project(reading.root):
        return catalogs
    from mergeplan.planner.project.dbt.compile import HIVE, target_catalog

    is_hive = target_catalog(reading, os.environ, config.dbt) == HIVE
    named = connection.model_copy(update={"default_catalog": HIVE})
    return catalogs_of(gateway, named, file) if is_hive else catalogs


def _check_models(
    refusing: Refusing, models: Mapping[str, Model], own_rules: Mapping[str, OwnRule], code: ProjectCode
) -> None:
    """Refuse models that ignore an unknown rule, wait for an unknown signal, or read what only one table has."""
    refusing.check(models.values(), lambda model: check_ignored(model, own_rules))
    refusing.check(models.values(), lambda model: python_files.check_signals(model, code))
    refusing.check(models.values(), lambda model: refusals.refuse_old_versions(model, models))
    named = {*models, *refusing.names().names}
    refusing.check(models.values(), lambda model: code.check_tables(model.name, named))


def _open_dbt(reading: Folder, config: Config, gateway: str, options: LoadOptions) -> DbtFolder:
    from mergeplan.planner.project.dbt.answers import Answers
    from mergeplan.planner.project.dbt.compile import compile_dbt, describe_target
    from mergeplan.planner.project.dbt.folder import DbtFolder
    from mergeplan.planner.project.dbt.own_rows import OwnRows

    open_engine = options.open_engine
    connection = config.gateways[gateway].connection if gateway in config.gateways else None
    catalogs = _gateway_catalogs(reading, config, gateway) if connection else Catalogs()
    functions = connection.extra_functions if connection else frozenset()
    own_catalog = catalogs.default if catalogs.default != catalogs.in_spark else ""
    answers = Answers(
        partial(open_engine, config, gateway) if open_engine else None,
        options.gives_rows,
        functions,
        own_catalog,
        OwnRows(reading.root, partial(options.load_deployed, config, gateway), functions, own_catalog),
    )
    compiled = compile_dbt(reading, config.dbt, os.environ, options.isolation, options.cache, answers)
    return DbtFolder(reading, compiled, describe_target(reading, config.dbt, os.environ))


def _find_names(reading: Folder, defaults: Defaults, path: str) -> tuple[tuple[str, ...], bool]:
    """Return the models that a file seems to define, and True if these are all."""
    try:
        return refusals.find_model_names(path, reading.text(path), defaults.catalog, infer_names=defaults.infer_names)
    except ProjectError:  # it is not even text
        return (), False


def _foreign_names(foreign: DbtFolder | PipelineFolder, defaults: Defaults, path: str) -> tuple[tuple[str, ...], bool]:
    names, are_all = foreign.model_names(path)
    return tuple(without_default(name, defaults.catalog) for name in names), are_all


def override_variables(project: Project, model: Model, variables: Mapping[str, Scalar]) -> Model:
    overrides = {name.lower(): value for name, value in variables.items()}
    merged_variables = {**project.defaults.variables, **overrides}
    if model.path.endswith(".py"):
        return replace(
            project.code.again(model, replace(project.defaults, variables=merged_variables)), settings=model.settings
        )
    columns = KnownColumns(project.models, complete=True).find_columns
    defaults = replace(project.defaults, variables=merged_variables, overrides=overrides, columns=columns)
    new_models, _ = parse_models(model.source, model.path, defaults)
    new_model = next((candidate for candidate in new_models if candidate.name == model.name), model)
    return replace(new_model, settings=model.settings)


def _under_settings(
    reading: Folder, refusing: Refusing, config: Config, document: Document, own: str, models: Mapping[str, Model]
) -> dict[str, Model]:
    settings: dict[str, GatewaySettings] = {}

    def read(gateway: str) -> None:
        connection = config.gateways[gateway].connection
        settings[gateway] = gateway_settings(gateway, connection, document, _spark_defaults(connection))

    def under(model: Model) -> Model:
        gateway = model.gateway or own
        return apply_gateway_settings(model, settings[gateway]) if gateway in settings else model

    named = {model.gateway for model in models.values()} & config.gateways.keys()
    reading.each(sorted(named | {own}), read)
    return refusing.map_models(models, under)


def _under_catalogs(
    refusing: Refusing, config: Config, catalogs: Catalogs, models: Mapping[str, Model]
) -> dict[str, Model]:
    naming = naming_of(config, catalogs.in_spark)
    return refusing.map_models(models, lambda model: apply_catalog(model, catalogs, naming))


def _without_refused(
    reading: Folder, refusing: Refusing, models: Mapping[str, Model]
) -> tuple[dict[str, Model], RefusedModels]:
    """Return the models that open and what is refused; if no model is left, the refusals make the project fail."""
    opened, refused = refusals.without_refused(models, refusing.names())
    if refused and all(model.kind.is_external for model in opened.values()):
        reading.errors += refused.errors
    return opened, refused


def _read_tests(
    reading: Folder,
    refusing: Refusing,
    config: Config,
    models: Mapping[str, Model],
    defaults: Defaults,
    refused: RefusedModels,
) -> tuple[tuple[UnitTest, ...], RefusedModels]:
    """Return the unit tests, and the refusals with the tests of unknown models, which are errors under `strict`."""
    unknown: list[ProjectError] = reading.errors if refusing.strict else []
    tests = tuple(read_unit_tests(reading, config, models, defaults, refused, unknown.append))
    return tests, refused if refusing.strict else refused.and_tests(unknown)


def _spark_defaults(connection: ConnectionConfig) -> tuple[str, str] | None:
    path = Path(connection.config_dir) / DEFAULTS_FILE if connection.config_dir else None
    if path is None or not path.is_file():
        return None
    try:
        return str(path), path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ProjectError("The file cannot be read as UTF-8 text.", place=Place(str(path))) from None
