"""What the classes and enumerations of SQLMesh's configuration are in YAML, by their names."""

from __future__ import annotations

PACKAGE = "sqlmesh."
TYPES = {
    "AthenaConnectionConfig": "athena",
    "AzureSQLConnectionConfig": "azuresql",
    "BigQueryConnectionConfig": "bigquery",
    "BuiltInSchedulerConfig": "builtin",
    "ClickhouseConnectionConfig": "clickhouse",
    "DatabricksConnectionConfig": "databricks",
    "Db2ConnectionConfig": "db2",
    "DuckDBConnectionConfig": "duckdb",
    "FabricConnectionConfig": "fabric",
    "GCPPostgresConnectionConfig": "gcp_postgres",
    "GithubCICDBotConfig": "github",
    "MSSQLConnectionConfig": "mssql",
    "MotherDuckConnectionConfig": "motherduck",
    "MySQLConnectionConfig": "mysql",
    "PostgresConnectionConfig": "postgres",
    "RedshiftConnectionConfig": "redshift",
    "RisingwaveConnectionConfig": "risingwave",
    "SnowflakeConnectionConfig": "snowflake",
    "SparkConnectionConfig": "spark",
    "StarRocksConnectionConfig": "starrocks",
    "TrinoConnectionConfig": "trino",
}
ENUMERATIONS = frozenset(
    """AutoCategorizationMode EnvironmentSuffixTarget IntervalUnit MergeMethod NotificationEvent OnAdditiveChange
    OnDestructiveChange TableNamingConvention UserRole VirtualEnvironmentMode""".split()
)
MODES = {"all_full": "full", "all_semi": "semi", "all_off": "off"}  # of `CategorizerConfig`
CATEGORIZED = ("external", "python", "sql", "seed")


def class_named(name: str) -> str:
    """The class of SQLMesh that a full name means, '' when it is something else.

    >>> class_named("sqlmesh.core.config.GatewayConfig"), class_named("sqlmesh.dbt.loader.sqlmesh_config")
    ('GatewayConfig', '')
    """
    last = name.rpartition(".")[2]
    known = last in TYPES or not last.endswith(("ConnectionConfig", "SchedulerConfig"))
    return last if name.startswith(PACKAGE) and last[:1].isupper() and not last.isupper() and known else ""


def member_named(name: str) -> str | None:
    """A member of an enumeration as YAML writes it, None for other names.

    >>> member_named("sqlmesh.core.config.EnvironmentSuffixTarget.TABLE")
    'table'
    """
    owner, _, member = name.rpartition(".")
    kind = owner.rpartition(".")[2]
    if not owner.startswith(PACKAGE) or not member.isupper():
        return None
    if kind == "ModelKindName":
        return member
    return member.lower() if kind in ENUMERATIONS else None
