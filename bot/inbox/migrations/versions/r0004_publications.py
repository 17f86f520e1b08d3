"""What projects publish of their prods, for the pull requests of others."""

import sqlalchemy as sa
from alembic import op

revision = "r0004"
down_revision = "r0003"


def upgrade() -> None:
    op.create_table(
        "bot_publications",
        sa.Column("repository", sa.Text(), primary_key=True),
        sa.Column("mark", sa.String(120), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
    )
    op.create_table(
        "bot_reads",
        sa.Column("repository", sa.Text(), primary_key=True),
        sa.Column("table_name", sa.Text(), primary_key=True),
        sa.Column("data", sa.Text(), nullable=False),
    )
    op.create_index("bot_reads_by_table", "bot_reads", ["table_name"])
