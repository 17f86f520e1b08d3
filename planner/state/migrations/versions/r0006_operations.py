"""Writes that a Spark Connect server goes on with when their planner has gone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0006"
down_revision = "r0005"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "operations",
        sa.Column("project", sa.Text(), primary_key=True),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("start_at", sa.DateTime, nullable=False),
        sa.Column("asked", sa.String(64), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("session", sa.String(36), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
    )
    op.create_index("ix_operations_table", "operations", ["project", "table_name"])


def downgrade() -> None:
    """Drop it: what runs is begun again."""
    op.drop_table("operations")
