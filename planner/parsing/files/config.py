"""Read and check config.yaml; report every wrong key with its line. Also read the defaults that models inherit."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from mergeplan.planner.errors import Place, ProjectError, ProjectErrors
from mergeplan.planner.intervals import CRON_HINT, cron_error
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.definitions.audits.audits import audit_call
from mergeplan.planner.parsing.definitions.kinds import kind_named
from mergeplan.planner.parsing.definitions.model_defaults import default_properties, default_statements, statement_parts
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.definitions.sessions import default_session
from mergeplan.planner.parsing.files.environments import check_environments
from mergeplan.planner.parsing.files.gateways import gateway_variables, gateways_apart
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.files.section import Section
from mergeplan.planner.parsing.sql.dates import is_relative, parse_instant
from mergeplan.planner.parsing.sql.tokens import did_you_mean, parse_dialect
from mergeplan.planner.parsing.sql.yaml_documents import Document
from mergeplan.planner.wording import validation_text

M = TypeVar("M", bound=BaseModel)
UNSPACED = re.compile(r"([A-Za-z_]\w*):(\S+)")

LATER = frozenset(
    "loader loader_kwargs physical_schema_override variables_file partitioned_by clustered_by python_env".split()
)
# the fix for a value that would change results if it were ignored
INSTEAD = {
    "env_vars": "Project code sees no environment variables: write the values under `variables`.",
    "time_column_format": "Write the format in each model: `time_column (day, '%Y%m%d')`.",
    "gateway_managed_virtual_layer": "All gateways share one catalog of views: remove the key.",
    "type": "Cron jobs and orchestrators call `mergeplan run`: set `type: builtin`.",
}


def read_config(document: Document) -> Config:
    """Return config.yaml as a Config; raise ProjectErrors at each key that is unknown, missing or wrong."""
    if document.value is None:
        raise document.error((), "The file is empty.", "Run `mergeplan init` for an example.")
    config = validate_section(Config, document, document.value)
    if config.default_gateway and config.default_gateway not in config.gateways:
        message = f"`{config.default_gateway}` is not one of the gateways."
        hint = did_you_mean(config.default_gateway, config.gateways)
        raise document.error(("default_gateway",), message, hint)
    check_environments(config, document)
    return config


def read_defaults(
    config: Config, gateway: str, document: Document, now: datetime, catalog: str = SESSION_CATALOG
) -> Defaults:
    """Return the defaults that every file of the project inherits; raise ProjectError at the line of a wrong one."""
    model_defaults, at = config.model_defaults, ("model_defaults",)
    dialect = parse_dialect(model_defaults.dialect, document.place((*at, "dialect")))
    if reason := cron_error(model_defaults.cron):
        message = f"`{model_defaults.cron}` is not a cron expression ({reason.rstrip('.')})."
        raise document.error((*at, "cron"), message, CRON_HINT)
    try:
        start = parse_instant(model_defaults.start, now) if model_defaults.start else None
    except ValueError as error:
        raise document.error((*at, "start"), f"`start`: {error}") from None
    moving = model_defaults.start if model_defaults.start and is_relative(model_defaults.start) else ""
    # the settings of its session come before the other statements
    stated = default_statements(model_defaults.model_dump(), document, dialect, catalog)
    session = default_session(model_defaults.session_properties or {}, document)
    return Defaults(
        now=now,
        dialect=dialect,
        catalog=catalog,
        infer_names=config.model_naming.infer_names,
        kind=_default_kind(model_defaults.kind, document.place((*at, "kind"))),
        start=start,
        start_moves=bool(moving),
        start_text=moving,
        cron=model_defaults.cron,
        owner=model_defaults.owner,
        batch_concurrency=model_defaults.batch_concurrency,
        properties=default_properties(model_defaults.model_dump(), document),
        around=replace(stated, before=(*session, *stated.before)),
        before_all=statement_parts(config.before_all, document, ("before_all",), dialect, catalog),
        after_all=statement_parts(config.after_all, document, ("after_all",), dialect, catalog),
        on_destructive_change=model_defaults.on_destructive_change or "",
        on_additive_change=model_defaults.on_additive_change or "",
        audits=tuple(audit_call(text, document.place((*at, "audits"))) for text in model_defaults.audits),
        variables=gateway_variables(config)[gateway],
        gateway=gateway,
        gateways=gateway_variables(config),
        apart=gateways_apart(config, gateway),
        allowed={name: gateway_config.connection.extra_functions for name, gateway_config in config.gateways.items()},
    )


def validate_section(kind: type[M], document: Document, value: object) -> M:
    """Return a part of a document as a pydantic model; raise ProjectErrors with a line for each error."""
    if not isinstance(value, dict):
        raise document.error((), "Expected a mapping of `key: value` lines here.")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        problems = {_error_sentence(document, kind, detail) for detail in _without_followers(error)}
        ordered = sorted(problems, key=lambda problem: (document.place(problem[0]).line, problem[1]))
        errors = tuple(document.error(path, message, hint) for path, message, hint in ordered)
        raise errors[0] if len(errors) == 1 else ProjectErrors(errors) from None


def _without_followers(error: ValidationError) -> list[Mapping[str, Any]]:
    """Return the errors, without those of a connection's other keys if its `type` is that of another engine."""
    errors: list[Mapping[str, Any]] = [*error.errors(include_url=False)]
    engine_paths = [tuple(e["loc"][:-1]) for e in errors if e["type"] == "literal_error" and e["loc"][-1:] == ("type",)]
    followers = [
        e
        for e in errors
        for at in engine_paths
        if tuple(e["loc"][: len(at)]) == at and tuple(e["loc"]) != (*at, "type")
    ]
    return [e for e in errors if e not in followers]


def _error_sentence(
    document: Document, kind: type[BaseModel], error: Mapping[str, Any]
) -> tuple[tuple[str | int, ...], str, str]:
    location = tuple(error["loc"])
    path = tuple(part if isinstance(part, int) else str(part) for part in location)
    key = str(location[-1]) if location else ""
    match error["type"]:
        case "extra_forbidden" if key in LATER:
            return path, f"`{key}` is not supported yet.", ""
        case "extra_forbidden":
            sections = [".".join(path) for path, section in _list_sections(kind) if key in section.model_fields]
            if 0 < len(sections) < 3:
                hint = f"It belongs in {' or '.join(f'`{section}`' for section in sections)}."
                return path, f"`{key}` is not a known key here.", hint
            return path, f"`{key}` is not a known key.", did_you_mean(key, _section_keys(kind, location[:-1]), most=12)
        case "model_type" | "dict_type" if text := UNSPACED.fullmatch(str(error["input"])):
            return path, f"`{text[0]}` is one word here.", f"Write a space after the colon: `{text[1]}: {text[2]}`."
        case "model_type" | "dict_type" if isinstance(error["input"], list):
            return path, f"`{key}` is a list.", "Write `key: value` lines below it, without dashes."
        case "tuple_type" | "list_type":
            return path, f"`{key}` must be a list.", "Write `- VALUE` lines below it."
        case "bool_type" | "bool_parsing":
            return path, f"`{key}: {_display_value(error['input'])}` is neither `true` nor `false`.", ""
        case "model_type" | "dict_type" | "model_attributes_type" | "dataclass_type":
            return path, f"`{key}` has no keys of its own.", "Indent them further than it."
        case "too_short" if not error["input"]:
            return path, f"`{key}` is empty.", "Name at least one."
        case "missing":
            return path[:-1], f"`{key}` is missing here.", ""
        case "literal_error" if location[-2:] == ("connection", "type"):
            return path, f"mergeplan runs on Spark, not on `{error['input']}`: set `type: spark`.", ""
        case "literal_error" if location[-2:] == ("state_connection", "type"):
            return path, f"The state is not kept in `{error['input']}`: set `type: sqlite` or `type: postgres`.", ""
    if error["type"] in ("literal_error", "too_long") and key in INSTEAD:
        return path, f"`{key}: {_display_value(error['input'])}` is not supported.", INSTEAD[key]
    path = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in document.lines), path)
    message = validation_text(error)
    return path, f"`{path[-1] if path else key}`: {message[:1].lower()}{message[1:]}.", ""


def _display_value(value: object) -> str:
    if isinstance(value, dict):
        return "{...}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _section_keys(kind: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    section: Any = kind
    parts = iter(path)
    for part in parts:
        fields = getattr(section, "model_fields", {})
        if part in fields:
            section = _section_of(fields[part].annotation)
            if get_origin(fields[part].annotation) is dict:
                next(parts, None)  # a name, such as a gateway's
    return [*getattr(section, "model_fields", {})]


def _list_sections(
    kind: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], type[BaseModel]]]:
    for name, field in kind.model_fields.items():
        if section := _section_of(field.annotation):
            below = (*path, name, "NAME") if get_origin(field.annotation) is dict else (*path, name)
            yield below, section
            yield from _list_sections(section, below)


def _section_of(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(
        (section for argument in getattr(annotation, "__args__", ()) if (section := _section_of(argument))), None
    )


def _default_kind(section: str | dict[str, Any] | None, place: Place) -> Kind:
    if section is None or isinstance(section, dict):
        return Kind.VIEW
    kind = kind_named(section, place)
    if kind.is_incremental or not kind.has_query:
        hint = "Write `kind:` with `name:` and its settings below it."
        raise ProjectError(f"`{kind}` cannot be the default kind without settings.", place=place, hint=hint)
    return kind
