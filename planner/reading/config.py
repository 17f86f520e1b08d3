"""config.yaml as typed data: gateways, model defaults, variables, the bot's settings.

Keys that SQLMesh has and mergeplan does not heed are sorted by what ignoring them would do:

    accepted, no effect here    project, ui, users, notification_targets,
                                disable_anonymized_analytics, log_limit, cache_dir, janitor, migration, run,
                                plan.no_prompts, test_connection,
                                model_defaults.{optimize_query,validate_query}
    accepted, others read them  gateways, default_gateway, model_defaults, variables, ignore_patterns, cicd_bot, linter,
                                default_target_environment, format, openlineage, audits, how long things are kept
                                (environment_ttl, ...) and what they are called (environment_suffix_target, ...)
    refused with a sentence     all others: they would change tables, names or results
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from planner.errors import Place, ProjectError, ProjectErrors
from planner.intervals import cron_error
from planner.model import Kind
from planner.reading.audits import audit_call
from planner.reading.dates import instant, moves, text_of
from planner.reading.defaults import default_properties, default_statements, statement_parts
from planner.reading.documents import Document
from planner.reading.environments import check_environments
from planner.reading.gateways import gateway_variables, gateways_apart
from planner.reading.general import Defaults
from planner.reading.kinds import kind_named
from planner.reading.sqltext import checked_dialect, did_you_mean

M = TypeVar("M", bound=BaseModel)

LATER = frozenset(
    """default_connection default_test_connection default_scheduler loader loader_kwargs env_vars username
    gateway_managed_virtual_layer infer_python_dependencies model_naming
    dbt time_column_format physical_schema_override scheduler state_schema variables_file
    auto_categorize_changes
    partitioned_by clustered_by session_properties python_env batch_concurrency""".split()
)


class Section(BaseModel):
    """A mapping of config.yaml: frozen, and no key that is not named here."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class ConnectionConfig(Section):
    """How to reach Spark: a classic session (`master`) or Spark Connect (`remote`)."""

    type: Literal["spark"]
    config_dir: str | None = None
    catalog: str | None = None
    config: dict[str, str | int | float | bool] = {}
    master: str | None = None
    remote: str | None = None
    concurrent_tasks: int = Field(default=4, ge=1)
    shared_catalog: str | None = None
    register_comments: bool = True
    pre_ping: bool = False
    pretty_sql: bool = False


class StateConfig(Section):
    """Where plans, environments and intervals are remembered: an SQLAlchemy `url`, or its parts as in SQLMesh."""

    type: Literal["sqlite", "postgres"]
    url: str | None = None
    database: str | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = Field(default=None, repr=False)
    sslmode: str | None = None
    connect_timeout: int | None = None
    concurrent_tasks: int = 1


VariableValue = str | int | float | bool | date | datetime | None | list[Any] | dict[str, Any]


class GatewayConfig(Section):
    """A Spark, the database that remembers, and variables of its own."""

    connection: ConnectionConfig
    state_connection: StateConfig | None = None
    test_connection: ConnectionConfig | None = None
    variables: dict[str, VariableValue] = {}


class ModelDefaults(Section):
    """What a model has when its own file does not say it."""

    dialect: str = "spark"
    kind: str | dict[str, Any] | None = None
    start: Annotated[str | None, BeforeValidator(lambda value: None if value is None else text_of(value))] = None
    cron: str = "@daily"
    owner: str = ""
    audits: tuple[str, ...] = ()
    storage_format: str | None = None
    table_format: str | None = None
    physical_properties: dict[str, str | int | float | bool] | None = None
    virtual_properties: dict[str, str | int | float | bool] | None = None
    pre_statements: tuple[str, ...] | str = ()
    post_statements: tuple[str, ...] | str = ()
    on_virtual_update: tuple[str, ...] | str = ()
    on_destructive_change: Literal["error", "warn", "allow", "ignore"] | None = None
    on_additive_change: Literal["error", "warn", "allow", "ignore"] | None = None
    allow_partials: bool | None = None
    interval_unit: str | None = None
    enabled: bool | None = None
    optimize_query: bool = True
    validate_query: bool = True


class LinterConfig(Section):
    """Rules that stop a plan, and rules that are only told; a name, ALL, or a list of names (`reading/linting.py`)."""

    enabled: bool = False
    rules: tuple[str, ...] | str = ()
    warn_rules: tuple[str, ...] | str = ()
    ignored_rules: tuple[str, ...] | str = ()


class FormatConfig(Section):
    """How `mergeplan format` lays SQL out."""

    normalize: bool = False
    pad: int = Field(default=2, ge=0)
    indent: int = Field(default=2, ge=0)
    normalize_functions: Literal["upper", "lower"] | bool | None = None
    leading_comma: bool = False
    max_text_width: int = Field(default=80, ge=1)
    append_newline: bool = False
    no_rewrite_casts: bool = False


class OpenLineageConfig(Section):
    """Where OpenLineage events go: a server's `url`, or a `file` of the project's folder."""

    url: str | None = None
    endpoint: str = "api/v1/lineage"
    file: str | None = None
    namespace: str = ""
    api_key: SecretStr | None = None
    timeout_seconds: float = Field(default=5.0, gt=0, le=60)

    @model_validator(mode="after")
    def _one_of_them(self) -> OpenLineageConfig:
        if (self.url is None) == (self.file is None):
            raise ValueError("give it either a `url` or a `file`")
        if self.url is not None and not re.fullmatch(r"https?://[^/\s@]+(/[^\s@]*)?", self.url):
            raise ValueError("`url` must be http://HOST or https://HOST, without user and password")
        return self

    @property
    def address(self) -> str:
        """Where events are posted."""
        return f"{(self.url or '').rstrip('/')}/{self.endpoint.lstrip('/')}"


class PlanConfig(Section):
    """Settings of `plan` that change what is asked and shown, never what is built."""

    no_diff: bool = False
    no_prompts: bool = False
    auto_apply: bool = False
    include_unmodified: bool = False
    early_cut_off: bool = True
    enable_preview: bool = True
    forward_only: bool = False
    use_finalized_state: Literal[False] = False
    always_recreate_environment: Literal[False] = False


Samples = Literal["full", "masked", "none"]


class AuditsConfig(Section):
    """How much of the bad rows is shown: their values, only their shapes, or nothing."""

    show_samples: Samples = "masked"


class Config(Section):
    """The whole of config.yaml."""

    project: str = ""
    gateways: dict[str, GatewayConfig] = Field(min_length=1)
    default_gateway: str = ""
    model_defaults: ModelDefaults = ModelDefaults()
    variables: dict[str, VariableValue] = {}
    linter: LinterConfig = LinterConfig()
    cicd_bot: dict[str, Any] | None = None  # the bot's own business: it reads and checks it
    plan: PlanConfig = PlanConfig()
    openlineage: OpenLineageConfig | None = None
    format: FormatConfig = FormatConfig()
    audits: AuditsConfig = AuditsConfig()
    ui: dict[str, Any] = {}
    run: dict[str, Any] = {}
    janitor: dict[str, Any] = {}
    migration: dict[str, Any] = {}
    users: tuple[dict[str, Any], ...] = ()
    notification_targets: tuple[dict[str, Any], ...] = ()
    snapshot_ttl: str | None = None
    environment_ttl: str | None = "in 1 week"
    pinned_environments: frozenset[str] = frozenset()
    environment_suffix_target: Literal["schema", "table", "catalog"] = "schema"
    environment_catalog_mapping: dict[str, str] = {}
    physical_schema_mapping: dict[str, str] = {}
    physical_table_naming_convention: Literal["schema_and_table", "table_only", "hash_md5"] = "schema_and_table"
    virtual_environment_mode: Literal["full", "dev_only"] = "full"
    default_target_environment: str = "prod"
    before_all: tuple[str, ...] | str = ()
    after_all: tuple[str, ...] | str = ()
    ignore_patterns: tuple[str, ...] = ()
    cache_dir: str | None = None
    log_limit: int = 20
    disable_anonymized_analytics: bool = True

    @property
    def gateway(self) -> str:
        """The gateway that is used when nobody names one."""
        return self.default_gateway or next(iter(self.gateways))


def read_config(document: Document) -> Config:
    """config.yaml as a Config; ProjectErrors with the line of each key that is unknown, missing or wrong."""
    if document.value is None:
        raise document.error((), "The file is empty.", "Run `mergeplan init` for an example.")
    config = validated(Config, document, document.value)
    if config.default_gateway and config.default_gateway not in config.gateways:
        message = f"`{config.default_gateway}` is not one of the gateways."
        hint = did_you_mean(config.default_gateway, config.gateways)
        raise document.error(("default_gateway",), message, hint)
    check_environments(config, document)
    return config


def read_defaults(config: Config, gateway: str, document: Document, now: datetime) -> Defaults:
    """What every file of the project inherits; ProjectError at the line of a wrong default."""
    given, at = config.model_defaults, ("model_defaults",)
    if why := cron_error(given.cron):
        raise document.error((*at, "cron"), f"`{given.cron}` is not a cron expression ({why.rstrip('.')}).")
    try:
        start = instant(given.start, now) if given.start else None
    except ValueError as error:
        raise document.error((*at, "start"), f"`start`: {error}") from None
    moving = given.start if given.start and moves(given.start) else ""
    return Defaults(
        now=now,
        dialect=checked_dialect(given.dialect, document.place((*at, "dialect"))),
        kind=_default_kind(given.kind, document.place((*at, "kind"))),
        start=start,
        start_moves=bool(moving),
        start_text=moving,
        cron=given.cron,
        owner=given.owner,
        properties=default_properties(given.model_dump(), document),
        around=default_statements(given.model_dump(), document, checked_dialect(given.dialect, document.place(at))),
        before_all=statement_parts(config.before_all, document, ("before_all",), given.dialect),
        after_all=statement_parts(config.after_all, document, ("after_all",), given.dialect),
        on_destructive_change=given.on_destructive_change or "",
        on_additive_change=given.on_additive_change or "",
        audits=tuple(audit_call(text, document.place((*at, "audits"))) for text in given.audits),
        variables=gateway_variables(config)[gateway],
        gateway=gateway,
        gateways=gateway_variables(config),
        apart=gateways_apart(config, gateway),
    )


def validated(kind: type[M], document: Document, value: object, at: tuple[str | int, ...] = ()) -> M:
    """A part of a document as a pydantic model; ProjectErrors with a line for each thing that is wrong."""
    if not isinstance(value, dict):
        raise document.error(at, "A mapping of `key: value` lines was expected here.")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        told = {_sentence(document, at, kind, each) for each in error.errors(include_url=False)}
        errors = tuple(
            document.error(path, message, hint)
            for path, message, hint in sorted(told, key=lambda each: (document.place(each[0]).line, each[1]))
        )
        raise errors[0] if len(errors) == 1 else ProjectErrors(errors) from None


def _sentence(
    document: Document, at: tuple[str | int, ...], kind: type[BaseModel], told: Mapping[str, Any]
) -> tuple[tuple[str | int, ...], str, str]:
    """Place, message and hint for one of pydantic's complaints."""
    own = tuple(told["loc"])
    path = (*at, *(part if isinstance(part, int) else str(part) for part in own))
    key = str(own[-1]) if own else ""
    match told["type"]:
        case "extra_forbidden" if key in LATER:
            return path, f"`{key}` is not supported yet.", ""
        case "extra_forbidden":
            return path, f"`{key}` is not a key that is known here.", did_you_mean(key, _keys(kind, own[:-1]), most=12)
        case "missing":
            return path[:-1], f"`{key}` is missing here.", ""
        case "literal_error" if own[-2:] == ("connection", "type"):
            return path, f"mergeplan runs on Spark, not on `{told['input']}`: set `type: spark`.", ""
    path = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in document.lines), path)
    message = str(told["msg"]).removeprefix("Value error, ")
    return path, f"`{path[-1] if path else key}`: {message[:1].lower()}{message[1:]}.", ""


def _keys(kind: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that are known at a path below a section."""
    section: Any = kind
    for part in path:
        fields = getattr(section, "model_fields", {})
        section = _section_of(fields[part].annotation) if part in fields else section
    return [*getattr(section, "model_fields", {})]


def _section_of(annotation: Any) -> Any:
    """The Section inside `Section | None` or `dict[str, Section]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for each in getattr(annotation, "__args__", ()) if (found := _section_of(each))), None)


def _default_kind(given: str | dict[str, Any] | None, place: Place) -> Kind:
    """The kind where `model_defaults` names it alone; one with settings is read like a model's own."""
    if given is None or isinstance(given, dict):
        return Kind.VIEW
    kind = kind_named(given, place)
    if kind not in (Kind.VIEW, Kind.FULL, Kind.EMBEDDED):
        hint = "Write `kind:` with `name:` and its settings below it."
        raise ProjectError(f"`{kind}` as every model's kind needs settings, or cannot be it.", place=place, hint=hint)
    return kind
