"""Restatements in a copy of prod's table, beside the categories that people choose."""

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision = "r0004"


def upgrade() -> None:
    for column in (sa.Column("restates", sa.Boolean), sa.Column("since", sa.DateTime), sa.Column("until", sa.DateTime)):
        op.add_column("category_overrides", column)
