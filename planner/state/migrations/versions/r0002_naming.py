"""What an environment's views are called, when it expires, and where a snapshot's table is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"


def upgrade() -> None:
    """Add the columns; what was there before has the usual names and never expires."""
    op.add_column("snapshots", sa.Column("stored", sa.Text()))
    op.add_column("environments", sa.Column("expires_at", sa.DateTime))
    op.add_column("environment_history", sa.Column("naming", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Drop them."""
    for table, column in (("environment_history", "naming"), ("environments", "expires_at"), ("snapshots", "stored")):
        with op.batch_alter_table(table) as altered:
            altered.drop_column(column)
