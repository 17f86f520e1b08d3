"""The catalogs of what prods show."""

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"


def upgrade() -> None:
    op.create_table(
        "bot_catalogs",
        sa.Column("repository", sa.Text(), primary_key=True),
        sa.Column("mark", sa.String(120), nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
