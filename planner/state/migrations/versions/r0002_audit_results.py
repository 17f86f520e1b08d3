"""What audits found, with its history."""

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"

NAME = sa.Text()


def upgrade() -> None:
    op.create_table(
        "audit_results",
        sa.Column("project", NAME, primary_key=True),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("environment", NAME, nullable=False),
        sa.Column("model", NAME, nullable=False),
        sa.Column("audit", NAME, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("audited_table", NAME, nullable=False),
        sa.Column("start_at", sa.DateTime),
        sa.Column("end_at", sa.DateTime),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("blocking", sa.Boolean, nullable=False),
        sa.Index("ix_audit_results_at", "project", "at"),
        sa.Index("ix_audit_results_model", "project", "model", "at"),
    )
