"""Whether a promotion moves its views at one moment."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0004"
down_revision = "r0003"


def upgrade() -> None:
    """Add the column; promotions until now moved their views one by one."""
    with op.batch_alter_table("promotions") as table:
        table.add_column(sa.Column("wait_seconds", sa.Float()))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("promotions") as table:
        table.drop_column("wait_seconds")
