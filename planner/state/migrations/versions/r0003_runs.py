"""Runs with an id, and what became of each of their models."""

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"

NAME = sa.Text()


def _project_column() -> sa.Column[str]:
    return sa.Column("project", NAME, primary_key=True)


def upgrade() -> None:
    op.create_table(
        "runs",
        _project_column(),
        sa.Column("id", NAME, primary_key=True),
        sa.Column("environment", NAME, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("execution_time", sa.DateTime, nullable=False),
        sa.Column("began_at", sa.DateTime, nullable=False),
        sa.Column("ended_at", sa.DateTime),
    )
    op.create_table(
        "run_models",
        _project_column(),
        sa.Column("run", NAME, primary_key=True),
        sa.Column("model", NAME, primary_key=True),
        sa.Column("environment", NAME, nullable=False),
        sa.Column("physical_table", NAME, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("intervals", sa.JSON, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("audits", sa.JSON, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("reported_at", sa.DateTime),
    )
