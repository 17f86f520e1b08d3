"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None

NAME = sa.Text()
HASH = sa.String(64)


def _project_column() -> sa.Column[str]:
    return sa.Column("project", NAME, primary_key=True)


def upgrade() -> None:
    op.create_table(
        "snapshots",
        _project_column(),
        sa.Column("id", HASH, primary_key=True),
        sa.Column("name", NAME, nullable=False),
        sa.Column("fingerprint", HASH, nullable=False),
        sa.Column("version", HASH, nullable=False),
        sa.Column("forced", sa.Boolean, nullable=False),
        sa.Column("columns", sa.JSON(none_as_null=True)),
        sa.Column("model", sa.JSON, nullable=False),
        sa.Column("parts", sa.JSON, nullable=False),
        sa.Column("meaning", sa.JSON(none_as_null=True)),
        sa.Column("stored", NAME),
    )
    op.create_table(
        "physical_tables",
        _project_column(),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("reads", sa.JSON, nullable=False),
        sa.Column("garbage", sa.Boolean, nullable=False),
        sa.Column("touched_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "intervals",
        _project_column(),
        sa.Column("table_name", NAME, primary_key=True),
        sa.Column("start_at", sa.DateTime, primary_key=True),
        sa.Column("end_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "costs",
        _project_column(),
        sa.Column("table_name", NAME, primary_key=True),
        sa.Column("start_at", sa.DateTime, primary_key=True),
        sa.Column("units", sa.Integer, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("bytes_read", sa.BigInteger),
        sa.Column("at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "passed_audits",
        _project_column(),
        sa.Column("table_name", NAME, primary_key=True),
        sa.Column("audit", sa.String(64), primary_key=True),
    )
    op.create_table(
        "passed_tests",
        _project_column(),
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "contents",
        _project_column(),
        sa.Column("table_name", NAME, primary_key=True),
        sa.Column("columns", sa.String(32), primary_key=True),
        sa.Column("period", sa.String(32), primary_key=True),
        sa.Column("start_at", sa.DateTime),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(32), nullable=False),
    )
    op.create_table(
        "environments",
        _project_column(),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.DateTime),
    )
    op.create_table(
        "environment_history",
        _project_column(),
        sa.Column("environment", NAME, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("action", sa.String(20), nullable=False),
        sa.Column("snapshots", sa.JSON, nullable=False),
        sa.Column("views", sa.JSON, nullable=False),
        sa.Column("plan_id", NAME, nullable=False),
        sa.Column("who", NAME, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("naming", sa.JSON(none_as_null=True)),
    )
    op.create_table(
        "promotions",
        _project_column(),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("environment", NAME, nullable=False),
        sa.Column("old_revision", sa.Integer, nullable=False),
        sa.Column("new_revision", sa.Integer, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("began_at", sa.DateTime, nullable=False),
        sa.Column("ended_at", sa.DateTime),
        sa.Column("wait_seconds", sa.Float),
        sa.Column("replaces", sa.Boolean),
        sa.Index("ix_promotions_status", "project", "status"),
    )
    op.create_table(
        "promotion_steps",
        _project_column(),
        sa.Column("promotion_id", sa.String(32), primary_key=True),
        sa.Column("view", NAME, primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "leases",
        _project_column(),
        sa.Column("name", NAME, primary_key=True),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("holder", NAME, nullable=False),
        sa.Column("machine", NAME, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("since", sa.DateTime, nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "operations",
        _project_column(),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("table_name", NAME, nullable=False),
        sa.Column("start_at", sa.DateTime, nullable=False),
        sa.Column("request", HASH, nullable=False),
        sa.Column("server", NAME, nullable=False),
        sa.Column("session", sa.String(36), nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Index("ix_operations_table", "project", "table_name"),
    )
    op.create_table(
        "plans",
        _project_column(),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("environment", NAME, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("components", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON, nullable=False),
        sa.Column("tables", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "category_overrides",
        _project_column(),
        sa.Column("environment", NAME, primary_key=True),
        sa.Column("model", NAME, primary_key=True),
        sa.Column("old", HASH, primary_key=True),
        sa.Column("new", HASH, primary_key=True),
        sa.Column("category", sa.String(40), nullable=False),
        sa.Column("who", NAME, nullable=False),
        sa.Column("at", sa.DateTime),
    )
