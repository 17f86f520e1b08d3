"""How far runs have come, and the trace that a delivery began."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"


def upgrade() -> None:
    """Add them."""
    op.create_table(
        "bot_progress",
        sa.Column("repository", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.add_column("bot_deliveries", sa.Column("trace", sa.String(64)))
