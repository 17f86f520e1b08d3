"""Which unit tests passed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"


def upgrade() -> None:
    """Create the table; every test runs once more."""
    op.create_table(
        "passed_tests",
        sa.Column("project", sa.Text(), primary_key=True),
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("passed_tests")
