"""What the rules said of a model and Spark's analyzer did not agree with."""

import sqlalchemy as sa
from alembic import op

revision = "r0004"
down_revision = "r0003"

NAME = sa.Text()


def upgrade() -> None:
    op.create_table(
        "refuted_claims",
        sa.Column("project", NAME, primary_key=True),
        sa.Column("claim", sa.String(64), primary_key=True),
        sa.Column("model", NAME, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
    )
