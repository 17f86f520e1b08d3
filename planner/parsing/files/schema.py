"""The keys of config.yaml, section by section, as frozen data.

Keys of SQLMesh that mergeplan does not use are grouped by the effect of ignoring them:

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
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from planner.parsing.sql.dates import text_of


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
    """Where plans, environments and intervals are stored: an SQLAlchemy `url`, or its parts as in SQLMesh."""

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
    """A Spark connection, a state database, and variables."""

    connection: ConnectionConfig
    state_connection: StateConfig | None = None
    test_connection: ConnectionConfig | None = None
    variables: dict[str, VariableValue] = {}


class ModelDefaults(Section):
    """The defaults of models."""

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
    """Rules that stop a plan, and rules that only warn; a name, ALL, or a list of names (`lint_config.py`)."""

    enabled: bool = False
    rules: tuple[str, ...] | str = ()
    warn_rules: tuple[str, ...] | str = ()
    ignored_rules: tuple[str, ...] | str = ()


class FormatConfig(Section):
    """The style of `mergeplan format`."""

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
            raise ValueError("set either `url` or `file`")
        if self.url is not None and not re.fullmatch(r"https?://[^/\s@]+(/[^\s@]*)?", self.url):
            raise ValueError("`url` must be http://HOST or https://HOST, without user and password")
        return self

    @property
    def address(self) -> str:
        """Where events are posted."""
        return f"{(self.url or '').rstrip('/')}/{self.endpoint.lstrip('/')}"


class PlanConfig(Section):
    """Settings of `plan` that change prompts and output, never what is built."""

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
    """How failing rows are shown: as they are, masked, or not at all."""

    show_samples: Samples = "masked"


class Config(Section):
    """The whole of config.yaml."""

    project: str = ""
    gateways: dict[str, GatewayConfig] = Field(min_length=1)
    default_gateway: str = ""
    model_defaults: ModelDefaults = ModelDefaults()
    variables: dict[str, VariableValue] = {}
    linter: LinterConfig = LinterConfig()
    cicd_bot: dict[str, Any] | None = None  # the bot reads and checks it
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
        """The gateway to use when none is named."""
        return self.default_gateway or next(iter(self.gateways))
