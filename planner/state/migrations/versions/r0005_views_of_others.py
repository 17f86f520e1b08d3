"""Whether a promotion replaces views that others made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision = "r0004"


def upgrade() -> None:
    """Add the column; a promotion that a crash had left replaces none."""
    with op.batch_alter_table("promotions") as table:
        table.add_column(sa.Column("replaces", sa.Boolean()))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("promotions") as table:
        table.drop_column("replaces")
