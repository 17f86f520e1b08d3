"""Loads a Project from a folder: config.yaml, models/, seeds/, audits/, tests/, external_models.yaml, each read once.

The errors of all files are reported at once. Nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.errors import Place, ProjectError, RequestError
from mergeplan.planner.file_note import note_file
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.parsing.definitions.audits.audit_calls import check_call
from mergeplan.planner.parsing.definitions.audits.audits import parse_audits
from mergeplan.planner.parsing.definitions.known_columns import KnownColumns, NotRead
from mergeplan.planner.parsing.definitions.materializations.classes import Materializations
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.files.base_branch import RULED, restrict_environment
from mergeplan.planner.parsing.files.catalogs import Catalogs, apply_catalog, catalogs_of
from mergeplan.planner.parsing.files.config import read_config, read_defaults
from mergeplan.planner.parsing.files.configuration import CONFIGS, NAME, Configuration, Source, read_source, the_one
from mergeplan.planner.parsing.files.environments import naming_of
from mergeplan.planner.parsing.files.external_models import external_models
from mergeplan.planner.parsing.files.gateway_settings import (
    DEFAULTS_FILE,
    GatewaySettings,
    apply_gateway_settings,
    gateway_settings,
)
from mergeplan.planner.parsing.files.gateways import apply_table_format
from mergeplan.planner.parsing.files.lint_config import NONE, Chosen, OwnRule, check_ignored, own_rules, select_rules
from mergeplan.planner.parsing.files.model_file import Defaults, parse_models
from mergeplan.planner.parsing.files.schema import Config, ConnectionConfig
from mergeplan.planner.parsing.sql.macro_scope import Scalar
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document
from mergeplan.planner.project.dbt import compile_dbt, is_dbt_project
from mergeplan.planner.project.dbt_folder import DbtFolder
from mergeplan.planner.project.exposures import load_exposures
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.refused import NOTHING, RefusedModels, Refusing, find_model_names, without_refused
from mergeplan.planner.project.remembered import Remembered, Said, open_file_cache
from mergeplan.planner.project.remembered_code import RememberedModels
from mergeplan.planner.project.seeds import load_seed
from mergeplan.planner.project.sql_files import SqlFiles
from mergeplan.planner.project.unit_tests import read_unit_tests
from mergeplan.planner.python.config_code.reading import mentioned_names, run_config
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation
from mergeplan.planner.python.messages import RegisteredModel
from mergeplan.planner.python.project import ProjectCode

NO_CACHE = Cache(None)
DBT_CONFIG = (
    "gateways: {spark: {connection: {type: spark}}}\nmodel_defaults: {dialect: spark}\n"  # without a config.yaml
)
Parse = Callable[[str, str, Defaults], Said]  # of a text, its path and the defaults


@dataclass(frozen=True)
class Project:
    """The content of a project's folder. `models` and `audits` are by name; `files` is a hash over all that was
    read."""

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
    moves: bool = False  # a date in it is another moment each day
    notes: tuple[str, ...] = ()  # what of a dbt project is not followed, and stops nothing
    is_dbt: bool = False
    exposures: tuple[Exposure, ...] = ()

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
    `strict`, a model that cannot be opened is refused by itself, with what reads it.
    """

    gateways_from: Path | None = None
    isolation: Isolation = NO_ISOLATION
    cache: Cache = NO_CACHE
    strict: bool = True


def load_project(
    root: Path, now: datetime, gateway: str | None = None, options: LoadOptions = LoadOptions()
) -> Project:
    """The project of a folder at a time; ProjectErrors for its files, RequestError for the gateway.

    Environment variables are read only where the configuration uses them. ProjectErrors when no model is left. Refused
    when the folder brings Python code that is to be isolated, and this machine cannot.
    """
    reading = Folder(root.resolve(), options.cache)
    with limit_resources(reading.too_much):
        config, document, ruled_by = _read_config_files(reading, options)
    dbt = _open_dbt(reading, config, options) if is_dbt_project(reading.root) else None
    reading = dbt or reading
    chosen = gateway or config.gateway
    if chosen not in config.gateways:
        raise RequestError(f"There is no gateway `{chosen}`.", hint=did_you_mean(chosen, config.gateways))
    config = apply_table_format(config, chosen)
    own = _own_rules(reading, config)
    rules = select_rules(config.linter, document, own)
    connection = config.gateways[chosen].connection
    catalogs = catalogs_of(chosen, connection, (_spark_defaults(connection) or ("", ""))[1])
    defaults = read_defaults(config, chosen, document, now, catalogs.default)
    defaults = replace(defaults, jinja=_jinja_macros(reading, config))
    defaults = replace(defaults, materializations=_materializations(reading, config))

    names_in = dbt.model_names if dbt else partial(_find_names, reading, defaults)
    refusing = Refusing(options.strict, reading.errors, names_in)
    code = _read_code(reading, refusing, config, defaults, options.isolation)
    defaults = replace(defaults, macros=code)
    known = open_file_cache(options.cache, defaults, config.model_defaults.model_dump_json(exclude_defaults=True))
    models, audits = _read_models(reading, refusing, config, known, code, defaults)
    code.close()
    _read_audits(reading, refusing, config, known, defaults, audits)
    _check_audits(refusing, known, models, audits)
    known.keep()
    refusing.check(models.values(), lambda model: check_ignored(model, own))
    refusing.check(models.values(), lambda model: _check_signals(model, code))
    named = {*models, *refusing.names().names}
    refusing.check(models.values(), lambda model: code.check_tables(model.name, named))
    models = {name: _attach_audits(model, audits) for name, model in models.items()}
    models = _under_settings(reading, refusing, config, ruled_by, chosen, models)
    naming = naming_of(config, catalogs.in_spark)
    models = refusing.map_models(models, lambda model: apply_catalog(model, catalogs, naming))
    models, refused = without_refused(models, refusing.names())
    if refused and all(model.kind.is_external for model in models.values()):
        reading.errors += refused.errors
    unknown: list[ProjectError] = reading.errors if options.strict else []
    tests = read_unit_tests(reading, config, models, defaults, refused, unknown.append)
    refused = refused if options.strict else refused.and_tests(unknown)
    known_names = {*models, *refused.names} if refused.clear else None
    exposures = load_exposures(reading, config, defaults.catalog, known_names)
    reading.finish()
    note_file("")
    rule_files = _python_texts(reading) if rules.own else {}
    files = digest(reading.digest, *(model.seed.digest for model in models.values() if model.seed))
    moving = known.moving or defaults.start_moves
    rest = (code, rules, rule_files, refused, catalogs, document.path, dict(reading.hashes), moving)
    notes = dbt.notes if dbt else ()
    tests = [] if dbt else tests
    project = Project(reading.root, config, chosen, models, audits, tuple(tests), files, defaults, *rest, notes)
    return replace(project, is_dbt=bool(dbt), exposures=exposures)


def _open_dbt(reading: Folder, config: Config, options: LoadOptions) -> DbtFolder:
    """The dbt project of the folder, as a folder of ours."""
    return DbtFolder(reading, compile_dbt(reading, config.dbt, os.environ, options.isolation, options.cache))


def _find_names(reading: Folder, defaults: Defaults, path: str) -> tuple[tuple[str, ...], bool]:
    """The models that a file seems to define, and whether these are all."""
    try:
        return find_model_names(path, reading.text(path), defaults.catalog, infer_names=defaults.infer_names)
    except ProjectError:  # it is not even text
        return (), False


def _read_config_files(reading: Folder, options: LoadOptions) -> tuple[Config, Document, Document]:
    """The configuration, the folder's own file of it, and the one in which its gateways are written."""
    own = _configuration(reading, options.isolation)
    if options.gateways_from is None:
        document = read_source(own, os.environ)
        return read_config(document), document, document
    ruling = _ruling_configuration(options.gateways_from, reading.root, options.isolation)
    document = read_source(own, restrict_environment(own, ruling, os.environ))
    ruled_by = read_source(ruling, os.environ)
    ruled = read_config(ruled_by)
    config = read_config(document).model_copy(update={name: getattr(ruled, name) for name in RULED})
    return config, document, ruled_by


def open_sql_files(
    root: Path, isolation: Isolation = NO_ISOLATION, cache: Cache = NO_CACHE
) -> tuple[Config, Document, SqlFiles]:
    """The configuration with its document, and the SQL files of a folder; ProjectError for a name that is no text."""
    reading = Folder(root.resolve(), cache)
    if is_dbt_project(reading.root):
        hint = "sqlfluff and others know dbt's templates."
        raise RequestError(
            "This is a dbt project: its files are templates, which `format` does not lay out.", hint=hint
        )
    document = read_source(_configuration(reading, isolation), os.environ)
    config = read_config(document)
    folders = ("models", "audits")
    names = [name for folder in folders for name in reading.files(folder, config.ignore_patterns, ".sql")]
    return config, document, SqlFiles(reading, cache, names)


def override_variables(project: Project, model: Model, variables: Mapping[str, Scalar]) -> Model:
    """The model as it would be with these variables on top of the project's."""
    overrides = {name.lower(): value for name, value in variables.items()}
    both = {**project.defaults.variables, **overrides}
    if model.path.endswith(".py"):
        return replace(project.code.again(model, replace(project.defaults, variables=both)), settings=model.settings)
    columns = KnownColumns(project.models, complete=True).find_columns
    defaults = replace(project.defaults, variables=both, overrides=overrides, columns=columns)
    again, _ = parse_models(model.source, model.path, defaults)
    new_model = next((candidate for candidate in again if candidate.name == model.name), model)
    return replace(new_model, settings=model.settings)


def _ruling_configuration(file: Path, root: Path, isolation: Isolation) -> Configuration:
    """The configuration that rules over that of the folder `root`; one that is code sees its own folder, and the paths
    that it makes of that are those of `root`."""
    source = Source(file.name, file.read_text("utf-8"))
    if not source.is_code:
        return source
    own = file.parent.resolve()
    code = run_config(own, source.text, os.environ, isolation)
    return replace(code.moved(str(root)), mentioned=mentioned_names(own, os.environ))


def _configuration(reading: Folder, isolation: Isolation) -> Configuration:
    names = [name for name in CONFIGS if (reading.root / name).is_file()]
    source = the_one(Source(name, reading.text(name)) for name in names)
    if source is None and is_dbt_project(reading.root):
        return Source(NAME, DBT_CONFIG)
    if source is not None and not source.is_code:
        return source
    if source is not None:
        code = run_config(reading.root, source.text, os.environ, isolation)
        for name in code.files:
            with suppress(ProjectError):  # it is gone again
                reading.hash(name)
        return code
    above = next((folder for folder in reading.root.parents if _is_project(folder)), None)
    hint = "Run `mergeplan init` to create a project."
    if above is not None:
        there = os.path.relpath(above, reading.root)
        hint = f"The project above is {above}: go there, or add `-p {there}`."
    raise ProjectError(f"There is no config.yaml in {reading.root}.", hint=hint)


def _is_project(folder: Path) -> bool:
    with suppress(OSError):
        files = ((folder / name) for name in CONFIGS if (folder / name).is_file())
        return is_dbt_project(folder) or any(
            Source(file.name, file.read_text("utf-8", "replace")).is_configuration for file in files
        )
    return False


def _jinja_macros(reading: Folder, config: Config) -> tuple[tuple[str, str], ...]:
    return tuple((name, reading.text(name)) for name in reading.files("macros", config.ignore_patterns, ".sql"))


def _materializations(reading: Folder, config: Config) -> Materializations:
    """The texts of the project's custom materializations, which are never run."""
    texts: dict[str, str] = {}

    def read(name: str) -> None:
        texts[name] = reading.text(name)

    reading.each(reading.files("materializations", config.ignore_patterns, ".py"), read)
    return Materializations(texts)


def _document(reading: Folder, name: str) -> Document:
    return read_document(name, reading.text(name))


def _python_files(root: Path) -> Iterator[Path]:
    """Every Python file of the project, wherever it lies; those of hidden folders and of environments are not its."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(
            name
            for name in names
            if not name.startswith((".", "__pycache__")) and not Path(folder, name, "pyvenv.cfg").exists()
        )
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def _python_texts(reading: Folder) -> dict[str, str]:
    names = (reading.name(path) for path in _python_files(reading.root))
    return {name: reading.text(name) for name in names}


def _read_code(
    reading: Folder, refusing: Refusing, config: Config, defaults: Defaults, isolation: Isolation
) -> ProjectCode:
    """The project's Python, with what it registers; nothing is started where there is none.

    A file of models that fails is refused. One of macros or signals closes the project: without its macro, a built-in
    one of the same name would be called.
    """
    code = ProjectCode(reading.root, {}, defaults.variables, defaults.gateway, isolation, catalog=defaults.catalog)
    paths = [
        name
        for folder in ("macros", "signals", "models")
        for name in reading.files(folder, config.ignore_patterns, ".py")
        if not name.endswith("/__init__.py") or reading.text(name).strip()
    ]

    def load(code: ProjectCode, paths: Sequence[str]) -> None:
        for path, error in code.load(paths):
            if path.startswith("models/"):
                refusing.file(path, error)
            else:
                reading.errors.append(error)

    if paths:
        code = replace(code, files=_python_texts(reading))
        reading.each([paths], lambda paths: load(code, paths))
    return code


def _read_models(
    reading: Folder, refusing: Refusing, config: Config, file_cache: Remembered, code: ProjectCode, defaults: Defaults
) -> tuple[dict[str, Model], dict[str, Audit]]:
    models: dict[str, Model] = {}
    audits: dict[str, Audit] = {}
    known, waiting = KnownColumns(models), list[tuple[str, Callable[[], None]]]()
    defaults = replace(defaults, columns=known.find_columns)
    said = partial(_load_file, reading, file_cache, defaults)

    def read(name: str) -> None:
        try:
            file_models, inline = said(name, parse_models)
        except NotRead:
            waiting.append((name, partial(read, name)))
            return
        for audit in inline:
            _add_audit(reading, audits, audit)
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

        for model in said(name, external)[0]:
            _add_model(reading, models, model)

    names = tuple(reading.files("models", config.ignore_patterns, ".sql"))
    singles = [name for name in ("external_models.yaml", "external_models.yml") if (reading.root / name).is_file()]
    singles += reading.files("external_models", config.ignore_patterns, ".yaml", ".yml")
    _foresee(reading, file_cache, (*names, *singles, *reading.files("audits", config.ignore_patterns, ".sql")))
    refusing.files(names, read, lambda name: file_cache.is_cheap(name, reading.hashes.get(name, "")))
    python_models = RememberedModels(file_cache, code, reading.hashes)
    refusing.each(code.registrations, read_python, lambda entry: entry.path, python_models.is_cheap)
    reading.each(singles, read_external)
    while waiting and not (reading.errors and known.complete):
        again, count = waiting[:], len(waiting)
        waiting.clear()
        refusing.each(again, lambda job: job[1](), lambda job: job[0])
        # the remaining ones need tables that no file defines, or depend on each other
        known.complete = known.complete or len(waiting) == count
    return dict(sorted(models.items())), audits


def _foresee(reading: Folder, file_cache: Remembered, names: Sequence[str]) -> None:
    """Look for what all these files said the last time; one that cannot be read is an error when it is read."""
    hashes = []
    for name in names:
        with suppress(ProjectError):
            hashes.append((name, reading.hash(name)))
    file_cache.foresee(hashes)


def _load_file(reading: Folder, file_cache: Remembered, defaults: Defaults, name: str, parse: Parse) -> Said:
    """What a file says: as it is remembered, or read anew."""
    if name in reading.hashes and (said := file_cache.load_entry(name, reading.hashes[name], defaults)) is not None:
        return said
    text = reading.text(name)
    return file_cache.read(name, reading.hashes[name], text, defaults, lambda defaults: parse(text, name, defaults))


def _add_model(reading: Folder, models: dict[str, Model], model: Model) -> None:
    """One more model; of two with one name nobody knows which is meant, and so the project is closed."""
    other = models.setdefault(model.name, model)
    if other is not model:
        message = f"The model `{model.name}` is already defined at {other.place}."
        reading.errors.append(ProjectError(message, place=model.place))


def _own_rules(reading: Folder, config: Config) -> dict[str, OwnRule]:
    """The linter's rules that the project defines in linter/, by name; they are not run here."""
    rules: dict[str, OwnRule] = {}
    if config.linter.enabled:
        for name in reading.files("linter", config.ignore_patterns, ".py"):
            rules |= {rule.name: rule for rule in own_rules(name, reading.text(name))}
    return rules


def _read_audits(
    reading: Folder,
    refusing: Refusing,
    config: Config,
    file_cache: Remembered,
    defaults: Defaults,
    audits: dict[str, Audit],
) -> None:
    """The audits of audits/. A model that calls one that cannot be read is refused for that; a standalone one is called
    by nobody, and closes the project."""

    def parse(text: str, path: str, defaults: Defaults) -> Said:
        return (), parse_audits(text, path, defaults)

    def read(name: str) -> None:
        for audit in _load_file(reading, file_cache, defaults, name, parse)[1]:
            _add_audit(reading, audits, audit)

    names = list(reading.files("audits", config.ignore_patterns, ".sql"))
    alone = [name for name in names if "standalone" in _quietly(reading, name).lower()]
    reading.each(alone, read)
    refusing.files([name for name in names if name not in alone], read)


def _quietly(reading: Folder, name: str) -> str:
    """A file's text, '' when it cannot be read: it is an error when it is parsed."""
    try:
        return reading.text(name)
    except ProjectError:
        return ""


def _add_audit(reading: Folder, audits: dict[str, Audit], audit: Audit) -> None:
    """One more audit; two of one name close the project."""
    other = audits.setdefault(audit.name, audit)
    if other is not audit:
        message = f"The audit `{audit.name}` is already defined at {Place(other.path, other.line)}."
        reading.errors.append(ProjectError(message, place=Place(audit.path, audit.line)))


def _under_settings(
    reading: Folder, refusing: Refusing, config: Config, document: Document, own: str, models: Mapping[str, Model]
) -> dict[str, Model]:
    """The models with the settings of the Spark that computes them, if these change results."""
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


def _spark_defaults(connection: ConnectionConfig) -> tuple[str, str] | None:
    """The path and the text of the file of settings that a connection names, if there is one."""
    path = Path(connection.config_dir) / DEFAULTS_FILE if connection.config_dir else None
    if path is None or not path.is_file():
        return None
    try:
        return str(path), path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ProjectError("The file cannot be read as UTF-8 text.", place=Place(str(path))) from None


def _check_audits(
    refusing: Refusing, file_cache: Remembered, models: Mapping[str, Model], audits: Mapping[str, Audit]
) -> None:
    calls = {call for model in models.values() for call in model.audits if call.name not in audits}
    tried = file_cache.find_tried_calls(calls)

    def check(model: Model) -> None:
        for call in model.audits:
            if call not in tried:
                check_call(call, audits, model.locate(call.name, in_block=True))

    before = len(refusing.names().refusals), len(refusing.errors)
    refusing.check(models.values(), check)
    if (len(refusing.names().refusals), len(refusing.errors)) == before:
        file_cache.keep_tried(calls - tried)


def _check_signals(model: Model, code: ProjectCode) -> None:
    for call in model.signals:
        if call.name not in code.signals:
            hint = did_you_mean(call.name, code.signals) or "Write it in signals/."
            place = model.locate(call.name, in_block=True)
            raise ProjectError(f"There is no signal `{call.name}`.", place=place, hint=hint)


def _attach_audits(model: Model, audits: Mapping[str, Audit]) -> Model:
    asked = [(call, _question(audits.get(call.name))) for call in model.audits]
    if all(call.query == query for call, query in asked):
        return model
    return replace(model, audits=tuple(replace(call, query=query) for call, query in asked))


def _question(audit: Audit | None) -> str:
    parts = (audit.sql, *filter(None, (audit.misread,)), audit.blocking, audit.defaults) if audit else ()
    return repr((*parts, "skip") if audit and audit.skip else parts) if audit else ""
