"""The keys of config.yaml, section by section, as frozen data.

Keys of SQLMesh that mergeplan does not use are grouped by the effect of ignoring them:

    accepted, no effect here    project, ui, users, notification_targets,
                                disable_anonymized_analytics, log_limit, cache_dir, janitor, migration, run,
                                plan.{no_prompts,auto_categorize_changes,use_finalized_state,
                                always_recreate_environment}, username, infer_python_dependencies,
                                gateways.*.{test_connection,state_schema}, default_test_connection,
                                a `scheduler` of type builtin, model_defaults.{optimize_query,validate_query}
    accepted, others read them  gateways, default_gateway, model_defaults, variables, ignore_patterns, cicd_bot, linter,
                                default_target_environment, format, openlineage, audits, agents, how long things are
                                kept (environment_ttl, ...) and what they are called (environment_suffix_target, ...)
    refused with a sentence     all others: they would change tables, names or results
"""

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_core.core_schema import CoreSchema, literal_schema

from mergeplan.planner.data_field import describe
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.parsing.files.agent_rules import AgentsConfig
from mergeplan.planner.parsing.files.section import Section
from mergeplan.planner.parsing.sql.dates import text_of


@dataclass(frozen=True)
class OneOf:
    """A text that is one of these, as `Literal` has it where they are written out."""

    texts: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return literal_schema([*self.texts])


FUNCTION = re.compile(r"\w{2,}(\.\w+){0,2}(\.?\*)?")  # a name, or a beginning with a `*`
NAMES = ", ".join(f"`{name}`" for name in TABLE_FORMATS)
DATABRICKS = ("server_hostname", "access_token", "databricks_connect_cluster_id")


class ConnectionConfig(Section):
    """How to reach Spark: a classic session (`master`), Spark Connect (`remote`), or a cluster of Databricks."""

    type: Literal["spark", "databricks"] = Field(description="The engine: a Spark, or that of a Databricks workspace.")
    server_hostname: str | None = describe(None, "Databricks: the host of the workspace.")
    access_token: str | None = Field(
        default=None,
        repr=False,
        description="Databricks: a personal access token; take it from the environment: `{{ env_var('NAME') }}`.",
    )
    databricks_connect_cluster_id: str | None = describe(None, "Databricks: the cluster that runs the models.")
    http_path: str | None = describe(None, "Accepted, no effect here.")
    config_dir: str | None = describe(None, "A folder with `spark-defaults.conf` and `hive-site.xml`.")
    catalog: str | None = describe(None, "The default catalog: of names of two parts.")
    default_catalog: str | None = describe(
        None, "The name of the default catalog in the project's files, if Spark has another one for it."
    )
    catalogs: tuple[str, ...] = describe((), "Further catalogs of the Spark, where `config` does not configure them.")
    table_format: Annotated[str, OneOf(TABLE_FORMATS)] | None = describe(
        None, "The table format of models that set none, if this is the project's gateway."
    )
    jars_dir: str | None = describe(None, "A folder with the jars of the table formats; otherwise Spark fetches them.")
    config: dict[str, str | int | float | bool] = describe({}, "Settings of Spark, by name.")
    functions: tuple[str, ...] = describe(
        (),
        "Functions beside Spark's own that SQL may call: of jars and of the catalog, by name (`st_area`, "
        "`shop.mask`) or by a beginning (`st_*`); of those that read files or addresses, by name only.",
    )
    master: str | None = describe(
        None, "The Spark master of a classic session: `spark://host:7077`, `yarn`, `local[4]`."
    )
    remote: str | None = Field(default=None, repr=False, description="A Spark Connect server: `sc://host:15002`.")
    spark_ui: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s()<>\"'`\[\]]+$",
        description="The address of Spark's own pages, shown while tables are computed; `{application_id}` becomes the "
        "application's.",
    )
    concurrent_tasks: int = Field(default=4, ge=1, description="How many models are computed at the same time.")
    shared_catalog: str | None = describe(None, "A name that gateways share which see the same tables.")
    register_comments: bool = describe(True, "Whether tables, views and columns get comments.")
    pre_ping: bool = describe(False, "Accepted, no effect here.")
    pretty_sql: bool = describe(False, "Accepted, no effect here.")

    @field_validator("functions")
    @classmethod
    def _check_functions(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not FUNCTION.fullmatch(name):
                raise ValueError(f"`{name}` is neither the name of a function nor the beginning of one (`st_*`)")
        return names

    @property
    def extra_functions(self) -> frozenset[str]:
        """`functions` in lower case."""
        return frozenset(name.lower() for name in self.functions)

    @model_validator(mode="before")
    @classmethod
    def _of_databricks(cls, section: Any) -> Any:
        """Return the section of a Databricks cluster as a Spark Connect server whose tables are in Delta."""
        if not isinstance(section, dict):
            return section
        if section.get("type") != "databricks":
            if key := next((key for key in DATABRICKS if section.get(key) is not None), None):
                raise ValueError(f"`{key}` belongs to `type: databricks`")
            return section
        if key := next((key for key in DATABRICKS if not section.get(key)), None):
            raise ValueError(f"`type: databricks` needs `{key}`")
        if key := next((key for key in ("remote", "master", "config_dir") if section.get(key)), None):
            raise ValueError(f"`{key}` belongs to `type: spark`")
        host, token, cluster = (quote(str(section[key]).strip(), safe="") for key in DATABRICKS)
        remote = f"sc://{host}:443/;use_ssl=true;token={token};x-databricks-cluster-id={cluster}"
        return {"table_format": "delta", **section, "remote": remote}


class StateConfig(Section):
    """Where plans, environments and intervals are stored: an SQLAlchemy `url`, or its parts as in SQLMesh."""

    type: Literal["sqlite", "postgres"] = Field(description="The kind of database.")
    url: str | None = describe(None, "An SQLAlchemy URL, in place of the other keys.")
    database: str | None = describe(None, "The name of the database; for `sqlite` a file.")
    host: str | None = describe(None, "The host of the database.")
    port: int | None = describe(None, "The port of the database.")
    user: str | None = describe(None, "The user to log in as.")
    password: str | None = Field(
        default=None,
        repr=False,
        description="The user's password; take it from the environment: `{{ env_var('NAME') }}`.",
    )
    sslmode: str | None = describe(None, "PostgreSQL's `sslmode`.")
    connect_timeout: int | None = describe(None, "Accepted, no effect here.")
    concurrent_tasks: int = describe(1, "Accepted, no effect here.")


VariableValue = str | int | float | bool | date | datetime | None | list[Any] | dict[str, Any]


class SchedulerConfig(Section):
    """Who runs models when they are due: SQLMesh's own scheduler, which `mergeplan run` stands for."""

    type: Literal["builtin"] = describe("builtin", "`builtin`: `mergeplan run` runs what is due.")


class ModelNaming(Section):
    """Where the names of models come from."""

    infer_names: bool = describe(
        False, "Whether a model without `name` is called after its path: `models/shop/orders.sql` is `shop.orders`."
    )


class ModelDefaults(Section):
    """The defaults of models."""

    dialect: str = describe("spark", "The SQL dialect of the models' files.")
    kind: str | dict[str, Any] | None = describe(None, "The kind of a model, as a name or as `name` with its settings.")
    start: Annotated[str | None, BeforeValidator(lambda value: None if value is None else text_of(value))] = describe(
        None, "The first day that models have rows for."
    )
    cron: str = describe("@daily", "The schedule of models, as a cron.")
    cron_tz: str | None = describe(None, "The time zone of the models' `cron`, such as `Asia/Tokyo`.")
    gateway: str | None = describe(None, "The gateway that runs the models.")
    batch_concurrency: int | None = Field(
        default=None, ge=1, description="How many batches of a model by time range run at once."
    )
    formatting: bool | None = describe(None, "Whether `mergeplan format` lays out the models' files.")
    owner: str = describe("", "The owner of the models.")
    audits: tuple[str, ...] = describe((), "Audits of every model, besides its own.")
    storage_format: str | None = describe(None, "The format of the tables' files: `parquet` or `orc`.")
    table_format: str | None = describe(None, f"The table format: {NAMES}, or `hive` for plain files.")
    physical_properties: dict[str, str | int | float | bool] | None = describe(
        None, "Properties of every table; a model's own hide those of the same name."
    )
    session_properties: dict[str, str | int | float | bool] | None = describe(
        None, "Settings `spark.sql...` of every model's session; a model's own hide these."
    )
    virtual_properties: dict[str, str | int | float | bool] | None = describe(
        None, "Properties of every view; a model's own hide those of the same name."
    )
    pre_statements: tuple[str, ...] | str = describe((), "Statements that run before every model's query.")
    post_statements: tuple[str, ...] | str = describe((), "Statements that run after every model's query.")
    on_virtual_update: tuple[str, ...] | str = describe(
        (), "Statements that run when a model's view is created or swapped."
    )
    on_destructive_change: Literal["error", "warn", "allow", "ignore"] | None = describe(
        None, "The action when a forward-only change drops a column or changes its type."
    )
    on_additive_change: Literal["error", "warn", "allow", "ignore"] | None = describe(
        None, "The action when a forward-only change adds a column."
    )
    allow_partials: bool | None = describe(None, "Whether models are computed before their last interval is over.")
    interval_unit: str | None = describe(None, "The unit of the models' intervals, such as `day` or `hour`.")
    enabled: bool | None = describe(None, "Whether models are part of the project.")
    optimize_query: bool = describe(True, "Accepted, no effect here.")
    validate_query: bool = describe(True, "Accepted, no effect here.")


class GatewayConfig(Section):
    """A Spark connection, a state database, and variables."""

    connection: ConnectionConfig = Field(description="How to reach Spark.")
    state_connection: StateConfig | None = describe(
        None, "The database that keeps plans, environments and intervals; SQLite in `.mergeplan` otherwise."
    )
    scheduler: SchedulerConfig | None = describe(None, "Accepted as `type: builtin` only.")
    test_connection: dict[str, Any] | None = describe(None, "Accepted, no effect here.")
    state_schema: str | None = describe(None, "Accepted, no effect here.")
    variables: dict[str, VariableValue] = describe(
        {}, "Variables that hide the project's own, for the models that run on this gateway."
    )
    model_defaults: ModelDefaults | None = describe(
        None, "Defaults of the models that run on this gateway: they hide the project's own."
    )


class LinterConfig(Section):
    """Rules that stop a plan, and rules that only warn; a name, ALL, or a list of names (`lint_config.py`)."""

    enabled: bool = describe(False, "Whether models are held to the rules.")
    rules: tuple[str, ...] | str = describe((), "Rules that stop a plan: names, or `ALL`.")
    warn_rules: tuple[str, ...] | str = describe((), "Rules that only warn: names, or `ALL`.")
    ignored_rules: tuple[str, ...] | str = describe((), "Rules that are not checked: names, or `ALL`.")


class FormatConfig(Section):
    """The style of `mergeplan format`."""

    normalize: bool = describe(False, "Whether names are written in lower case.")
    pad: int = Field(default=2, ge=0, description="Spaces by which the inside of parentheses is indented.")
    indent: int = Field(default=2, ge=0, description="Spaces by which a clause's body is indented.")
    normalize_functions: Literal["upper", "lower"] | bool | None = describe(
        None, "The case of the names of SQL's functions; `upper` otherwise."
    )
    leading_comma: bool = describe(False, "Whether commas stand at the beginning of lines.")
    max_text_width: int = Field(default=80, ge=1, description="How long a list in brackets may be on one line.")
    append_newline: bool = describe(True, "Whether files end with a newline.")
    no_rewrite_casts: bool = describe(False, "Whether `CAST(x AS INT)` stays, instead of `x::INT`.")


class OpenLineageConfig(Section):
    """Where OpenLineage events go: a server's `url`, or a `file` of the project's folder."""

    url: str | None = describe(None, "The server that events are sent to: `http://HOST` or `https://HOST`.")
    endpoint: str = describe("api/v1/lineage", "The path on that server.")
    file: str | None = describe(None, "A file that events are written to, in place of a server.")
    namespace: str = describe("", "The namespace of jobs; the project's name otherwise.")
    api_key: SecretStr | None = describe(None, "The server's API key.")
    timeout_seconds: float = Field(default=5.0, gt=0, le=60, description="How long to wait for the server.")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.url is None) == (self.file is None):
            raise ValueError("set either `url` or `file`")
        if self.url is not None and not re.fullmatch(r"https?://[^/\s@]+(/[^\s@]*)?", self.url):
            raise ValueError("`url` must be http://HOST or https://HOST, without user and password")
        return self

    @property
    def address(self) -> str:
        """The address that receives events."""
        return f"{(self.url or '').rstrip('/')}/{self.endpoint.lstrip('/')}"


class PlanConfig(Section):
    """Settings of `plan` that change prompts and output, never what is built."""

    no_diff: bool = describe(False, "Whether `mergeplan plan` in a terminal leaves out how texts differ.")
    no_prompts: bool = describe(False, "Accepted, no effect here.")
    auto_apply: bool = describe(False, "Whether `mergeplan plan` in a terminal applies without asking.")
    include_unmodified: bool = describe(False, "Whether environments beside prod show every model, changed or not.")
    early_cut_off: bool = describe(
        True, "Whether rebuilt tables are compared with those they replace, and unchanged inputs skip models."
    )
    enable_preview: bool = describe(True, "Whether previews of forward-only changes are computed.")
    forward_only: bool = describe(False, "Whether every plan is forward-only.")
    auto_categorize_changes: dict[str, str] = describe({}, "Accepted, no effect here.")
    use_finalized_state: bool = describe(False, "Accepted, no effect here.")
    always_recreate_environment: bool = describe(False, "Accepted, no effect here.")


class PromotionConfig(Section):
    """How prod's views move to their new tables."""

    atomic: bool = describe(False, "Whether prod's views move at one moment for readers, instead of one by one.")
    wait_seconds: float = Field(
        default=5.0,
        ge=0,
        le=300,
        description="How long an atomic promotion waits, before the views move and after, for queries that were being "
        "analysed.",
    )
    replaces_views: bool = describe(
        False, "Whether a view that mergeplan did not make, and that has the name of a model, is replaced."
    )


Samples = Literal["full", "masked", "none"]


class AuditsConfig(Section):
    """How failing rows are shown: as they are, masked, or not at all."""

    show_samples: Samples = describe("masked", "How failing rows are shown: masked, in full or not at all.")


class DbtConfig(Section):
    """How a dbt project in the same folder is compiled: by default as the target of its profile says."""

    target: str = describe("", "The target of profiles.yml that is prod; the profile's own otherwise.")
    target_schema: str = describe("", "The schema of prod's tables, where no profiles.yml says it.")
    target_catalog: str = describe("", "The catalog of prod's tables, where no profiles.yml says it.")
    target_http_path: str = describe(
        "", "The path of prod's warehouse or cluster of Databricks, for templates that read it."
    )
    adapter: Literal["spark", "databricks"] = describe(
        "spark", "The adapter by which dbt compiles, where no profiles.yml says it."
    )
    vars: dict[str, Any] = describe({}, "The variables, as for `dbt --vars`.")
    manifest: str = describe(
        "", "The manifest.json of `dbt compile --full-refresh`, which is read in place of running dbt."
    )
    manifest_later: str = describe(
        "", "That of `dbt compile` where the tables are: the later form of incremental models."
    )


class Config(Section):
    """The whole of config.yaml."""

    project: str = describe("", "The name under which state is kept, for several projects in one database.")
    gateways: dict[str, GatewayConfig] = Field(min_length=1, description="The gateways on which models run, by name.")
    default_connection: dict[str, Any] | None = describe(
        None, "The `connection` of gateways that have none of their own."
    )
    default_test_connection: dict[str, Any] | None = describe(None, "Accepted, no effect here.")
    default_scheduler: SchedulerConfig | None = describe(None, "Accepted as `type: builtin` only.")
    default_gateway: str = describe("", "The gateway that is used when none is named; the first one otherwise.")
    model_defaults: ModelDefaults = describe(
        ModelDefaults(), "The defaults of models; a model's own file overrides them."
    )
    variables: dict[str, VariableValue] = describe({}, "Values that models and macros read with `@var`.")
    model_naming: ModelNaming = describe(ModelNaming(), "How models get names.")
    time_column_format: Literal["%Y-%m-%d"] = describe(
        "%Y-%m-%d", "Accepted as `%Y-%m-%d` only; another format belongs to a `time_column`."
    )
    env_vars: Annotated[dict[str, str], Field(max_length=0)] = describe({}, "Accepted when empty.")
    username: str = describe("", "Accepted, no effect here.")
    infer_python_dependencies: bool = describe(True, "Accepted, no effect here.")
    gateway_managed_virtual_layer: Literal[False] = describe(False, "Accepted as `false` only.")
    linter: LinterConfig = describe(LinterConfig(), "Rules about how models are written.")
    cicd_bot: dict[str, Any] | None = describe(None, "The rules of the bot.")  # the bot reads and checks it
    agents: AgentsConfig = describe(
        AgentsConfig(), "The limits of agents of `mergeplan mcp`: they only narrow the operator's."
    )
    dbt: DbtConfig = describe(DbtConfig(), "How the dbt project of this folder is compiled.")
    plan: PlanConfig = describe(PlanConfig(), "Settings of `mergeplan plan`.")
    promotion: PromotionConfig = describe(PromotionConfig(), "Settings of promotions to prod.")
    openlineage: OpenLineageConfig | None = describe(None, "The receiver of OpenLineage events.")
    format: FormatConfig = describe(FormatConfig(), "How SQL files are laid out by `mergeplan format`.")
    audits: AuditsConfig = describe(AuditsConfig(), "How the results of audits are shown.")
    ui: dict[str, Any] = describe({}, "Accepted, no effect here.")
    run: dict[str, Any] = describe({}, "Accepted, no effect here.")
    janitor: dict[str, Any] = describe({}, "Accepted, no effect here.")
    migration: dict[str, Any] = describe({}, "Accepted, no effect here.")
    users: tuple[dict[str, Any], ...] = describe((), "Accepted, no effect here.")
    notification_targets: tuple[dict[str, Any], ...] = describe((), "Accepted, no effect here.")
    snapshot_ttl: str | None = describe(
        None, "How long tables are kept that no environment shows, such as `in 2 weeks`."
    )
    history_ttl: str | None = describe(
        None, "How long the history of promotions is kept, such as `in 1 year`; never less than `snapshot_ttl`."
    )
    table_history_ttl: str | None = describe(
        None,
        "How long tables keep versions of their rows that were replaced, if their format has any, such as "
        "`in 2 weeks`; at least a week. The janitor removes older ones. `null`: for ever.",
    )
    environment_ttl: str | None = describe(
        "in 1 week", "How long an environment is kept after its last plan, such as `in 1 week`; `null`: for ever."
    )
    pinned_environments: frozenset[str] = describe(frozenset(), "Environments that never expire.")
    environment_suffix_target: Literal["schema", "table", "catalog"] = describe(
        "schema", "The part of a view's name that names the environment."
    )
    environment_catalog_mapping: dict[str, str] = describe(
        {}, "The catalog of an environment's views, by a pattern of its name."
    )
    physical_schema_mapping: dict[str, str] = describe(
        {}, "The schema of models' tables, by a pattern of the models' schema."
    )
    physical_table_naming_convention: Literal["schema_and_table", "table_only", "hash_md5"] = describe(
        "schema_and_table", "How tables are named."
    )
    virtual_environment_mode: Literal["full", "dev_only"] = describe(
        "full", "Whether prod has views over its tables (`full`)."
    )
    default_target_environment: str = describe(
        "prod", "The environment that `mergeplan plan` is for when none is named."
    )
    before_all: tuple[str, ...] | str = describe((), "Statements that run before a plan or a run is applied.")
    after_all: tuple[str, ...] | str = describe((), "Statements that run after a plan or a run is applied.")
    ignore_patterns: tuple[str, ...] = describe((), "Files to leave out, as globs.")
    cache_dir: str | None = describe(None, "Accepted, no effect here.")
    log_limit: int = describe(20, "Accepted, no effect here.")
    disable_anonymized_analytics: bool = describe(True, "Accepted, no effect here.")

    @model_validator(mode="before")
    @classmethod
    def _fill_connections(cls, section: Any) -> Any:
        """Return the section with `default_connection` in gateways without one, or as `default`'s if there are none."""
        default = section.get("default_connection") if isinstance(section, dict) else None
        gateways = (section.get("gateways") or {"default": {}}) if default else None
        if not isinstance(gateways, dict):
            return section
        filled = {
            name: {"connection": default, **gateway} if isinstance(gateway, dict) else gateway
            for name, gateway in gateways.items()
        }
        return {**section, "gateways": filled}

    @property
    def gateway(self) -> str:
        """The gateway to use when none is named."""
        return self.default_gateway or next(iter(self.gateways))
