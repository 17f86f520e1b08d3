"""The tables of the state database; every one of them is cut by `project`, since several may share a database."""

from datetime import UTC, datetime

import sqlalchemy as sa

NAME = sa.Text()
HASH = sa.String(64)


class Utc(sa.TypeDecorator[datetime]):
    """An aware time, stored as naive UTC so that SQLite and PostgreSQL keep and order it alike."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """To naive UTC; a naive time is a defect of ours."""
        if value is None:
            return None
        assert value.tzinfo is not None, "times are aware"
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


metadata = sa.MetaData()


def _project_column() -> sa.Column[str]:
    return sa.Column("project", NAME, primary_key=True)


identity = sa.Table("identity", metadata, _project_column(), sa.Column("id", HASH, nullable=False))

# A snapshot's id is the hash of all it holds: a row is never changed, only added or forgotten.
snapshots = sa.Table(
    "snapshots",
    metadata,
    _project_column(),
    sa.Column("id", HASH, primary_key=True),
    sa.Column("name", NAME, nullable=False),
    sa.Column("fingerprint", HASH, nullable=False),
    sa.Column("version", HASH, nullable=False),
    sa.Column("forced", sa.Boolean, nullable=False),
    sa.Column("columns", sa.JSON(none_as_null=True)),
    sa.Column("model", sa.JSON, nullable=False),
    sa.Column("parts", sa.JSON, nullable=False),  # the fingerprint's three parts
    sa.Column("meaning", sa.JSON(none_as_null=True)),  # digests of its rows and columns
    sa.Column("stored", NAME),  # its table's name, where it is not the usual one
)

# Every physical table that we ever said we would create and have not yet forgotten.
physical_tables = sa.Table(
    "physical_tables",
    metadata,
    _project_column(),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("columns", sa.JSON, nullable=False),  # names and types as Spark has them, hidden ones left out
    sa.Column("reads", sa.JSON, nullable=False),  # a physical view's tables: they live as long as it does
    sa.Column("garbage", sa.Boolean, nullable=False),
    sa.Column("touched_at", Utc, nullable=False),  # when a plan last meant to use it
    sa.Column("bytes", sa.BigInteger),  # of its files; None: not measured yet
    sa.Column("measured_at", Utc),
)

intervals = sa.Table(
    "intervals",
    metadata,
    _project_column(),
    sa.Column("table_name", NAME, primary_key=True),
    sa.Column("start_at", Utc, primary_key=True),
    sa.Column("end_at", Utc, nullable=False),
)

# What each batch cost when it was last computed: what the next version of the table is judged by.
costs = sa.Table(
    "costs",
    metadata,
    _project_column(),
    sa.Column("table_name", NAME, primary_key=True),
    sa.Column("start_at", Utc, primary_key=True),
    sa.Column("units", sa.Integer, nullable=False),  # of time; 1 for a full refresh
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("bytes_read", sa.BigInteger),  # None: not known
    sa.Column("at", Utc, nullable=False),
)

# Audits that found nothing in a table as a whole, by a hash of what they ask.
passed_audits = sa.Table(
    "passed_audits",
    metadata,
    _project_column(),
    sa.Column("table_name", NAME, primary_key=True),
    sa.Column("audit", sa.String(64), primary_key=True),
)

# What audits found, passes included; `audited_table` may be gone, and its results stay.
audit_results = sa.Table(
    "audit_results",
    metadata,
    _project_column(),
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("at", Utc, nullable=False),
    sa.Column("environment", NAME, nullable=False),
    sa.Column("model", NAME, nullable=False),  # '' of a standalone audit
    sa.Column("audit", NAME, nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),  # pairs of name and SQL
    sa.Column("audited_table", NAME, nullable=False),
    sa.Column("start_at", Utc),  # of the rows that it looked at; None for all
    sa.Column("end_at", Utc),
    sa.Column("rows", sa.BigInteger, nullable=False),  # that it found
    sa.Column("blocking", sa.Boolean, nullable=False),
    sa.Index("ix_audit_results_at", "project", "at"),
    sa.Index("ix_audit_results_model", "project", "model", "at"),
)

# Unit tests that passed, by a digest of all that their outcome rests on.
passed_tests = sa.Table(
    "passed_tests",
    metadata,
    _project_column(),
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("at", Utc, nullable=False),  # when it was last asked about
)

# What the rules said of a model and Spark's analyzer did not agree with.
refuted_claims = sa.Table(
    "refuted_claims",
    metadata,
    _project_column(),
    sa.Column("claim", sa.String(64), primary_key=True),
    sa.Column("model", NAME, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("at", Utc, nullable=False),
)

# What tables hold, by hash; a write of a table removes what it touches, so that a row that is here is true.
contents = sa.Table(
    "contents",
    metadata,
    _project_column(),
    sa.Column("table_name", NAME, primary_key=True),
    sa.Column("columns", sa.String(32), primary_key=True),  # the key of a column set
    sa.Column("period", sa.String(32), primary_key=True),  # the value of a partition, '' for all that the table holds
    sa.Column("start_at", Utc),  # of the period; None for all that the table holds
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.String(32), nullable=False),
)

environments = sa.Table(
    "environments",
    metadata,
    _project_column(),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),  # the row of its history that is in force
    sa.Column("expires_at", Utc),  # None: never
)

environment_history = sa.Table(
    "environment_history",
    metadata,
    _project_column(),
    sa.Column("environment", NAME, primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),
    sa.Column("action", sa.String(20), nullable=False),
    sa.Column("snapshots", sa.JSON, nullable=False),  # model -> snapshot id
    sa.Column("views", sa.JSON, nullable=False),  # models that have a view
    sa.Column("plan_id", NAME, nullable=False),
    sa.Column("who", NAME, nullable=False),
    sa.Column("at", Utc, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("naming", sa.JSON(none_as_null=True)),  # of its views; None: the usual one
)

promotions = sa.Table(
    "promotions",
    metadata,
    _project_column(),
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("environment", NAME, nullable=False),
    sa.Column("old_revision", sa.Integer, nullable=False),
    sa.Column("new_revision", sa.Integer, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("token", sa.Integer, nullable=False),  # of the lease under which it began
    sa.Column("began_at", Utc, nullable=False),
    sa.Column("ended_at", Utc),
    sa.Column("wait_seconds", sa.Float),  # null: its views move one by one
    sa.Column("replaces", sa.Boolean),  # views of others; null: no
    sa.Index("ix_promotions_status", "project", "status"),
)

promotion_steps = sa.Table(
    "promotion_steps",
    metadata,
    _project_column(),
    sa.Column("promotion_id", sa.String(32), primary_key=True),
    sa.Column("view", NAME, primary_key=True),
    sa.Column("at", Utc, nullable=False),
)

# A lease's row outlives it, so that its token only ever grows.
leases = sa.Table(
    "leases",
    metadata,
    _project_column(),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("token", sa.Integer, nullable=False),
    sa.Column("holder", NAME, nullable=False),  # '' when nobody holds it
    sa.Column("machine", NAME, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("since", Utc, nullable=False),
    sa.Column("expires_at", Utc, nullable=False),
)

# Writes that a Spark goes on with when their planner has gone.
operations = sa.Table(
    "operations",
    metadata,
    _project_column(),
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("table_name", NAME, nullable=False),
    sa.Column("start_at", Utc, nullable=False),  # of the batch
    sa.Column("request", HASH, nullable=False),  # a digest of all that it depends on
    sa.Column("server", NAME, nullable=False),
    sa.Column("session", sa.String(36), nullable=False),
    sa.Column("token", sa.Integer, nullable=False),  # of the table's lease under which it began
    sa.Column("at", Utc, nullable=False),
    sa.Index("ix_operations_table", "project", "table_name"),
)

plans = sa.Table(
    "plans",
    metadata,
    _project_column(),
    sa.Column("id", NAME, primary_key=True),
    sa.Column("environment", NAME, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("components", sa.JSON, nullable=False),
    sa.Column("result", sa.JSON, nullable=False),
    sa.Column("tables", sa.JSON, nullable=False),  # that it needs, so that the janitor leaves them
    sa.Column("created_at", Utc, nullable=False),
)

overrides = sa.Table(
    "category_overrides",
    metadata,
    _project_column(),
    sa.Column("environment", NAME, primary_key=True),
    sa.Column("model", NAME, primary_key=True),
    sa.Column("old", HASH, primary_key=True),
    sa.Column("new", HASH, primary_key=True),
    sa.Column("category", sa.String(40), nullable=False),
    sa.Column("who", NAME, nullable=False),
    sa.Column("at", Utc),
    sa.Column("restates", sa.Boolean),  # true: of a model that nobody edited; NULL in rows of earlier versions
    sa.Column("since", Utc),  # the days that it restates, from and up to
    sa.Column("until", Utc),
)

# Runs that a scheduler gave an id, so that it can ask what became of each model.
runs = sa.Table(
    "runs",
    metadata,
    _project_column(),
    sa.Column("id", NAME, primary_key=True),
    sa.Column("environment", NAME, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),  # of the environment
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("message", sa.Text, nullable=False),  # why it failed
    sa.Column("execution_time", Utc, nullable=False),  # the moment as of which it computed
    sa.Column("began_at", Utc, nullable=False),
    sa.Column("ended_at", Utc),
)

run_models = sa.Table(
    "run_models",
    metadata,
    _project_column(),
    sa.Column("run", NAME, primary_key=True),
    sa.Column("model", NAME, primary_key=True),
    sa.Column("environment", NAME, nullable=False),
    sa.Column("physical_table", NAME, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("intervals", sa.JSON, nullable=False),  # that were due, as pairs of times
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("audits", sa.JSON, nullable=False),  # name, rows found, blocking
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("at", Utc, nullable=False),  # of the last change
    sa.Column("reported_at", Utc),  # when a scheduler took the result up
)
