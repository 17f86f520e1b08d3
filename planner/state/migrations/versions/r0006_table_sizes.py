"""The bytes of each table's files, as the janitor measured them last."""

import sqlalchemy as sa
from alembic import op

revision = "r0006"
down_revision = "r0005"


def upgrade() -> None:
    for column in (sa.Column("bytes", sa.BigInteger), sa.Column("measured_at", sa.DateTime)):
        op.add_column("physical_tables", column)
