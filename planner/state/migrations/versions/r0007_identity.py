"""The ID of each project's state, which the tables that it makes carry."""

import sqlalchemy as sa
from alembic import op

revision = "r0007"
down_revision = "r0006"


def upgrade() -> None:
    op.create_table(
        "identity", sa.Column("project", sa.Text(), primary_key=True), sa.Column("id", sa.String(64), nullable=False)
    )
