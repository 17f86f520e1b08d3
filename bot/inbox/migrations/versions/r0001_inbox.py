"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None

NAME = sa.Text()


def upgrade() -> None:
    op.create_table(
        "bot_deliveries",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("guid", sa.String(120), nullable=False, unique=True),
        sa.Column("kind", sa.String(80), nullable=False),
        sa.Column("queue_key", NAME, nullable=False, index=True),
        sa.Column("head", sa.String(64), nullable=False),
        sa.Column("received_at", sa.Float, nullable=False),
        sa.Column("trace", sa.String(64)),
    )
    op.create_table(
        "bot_queue",
        sa.Column("key", NAME, primary_key=True),
        sa.Column("repository", NAME, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("due_at", sa.Float, index=True),
        sa.Column("settle_until", sa.Float),
        sa.Column("owner", NAME),
        sa.Column("owned_until", sa.Float),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("error", NAME, nullable=False),
    )
    op.create_table(
        "bot_commands",
        sa.Column("repository", NAME, primary_key=True),
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("state", sa.String(20), nullable=False, index=True),
        sa.Column("seen", sa.Boolean, nullable=False),
        sa.Column("data", NAME, nullable=False),
    )
    op.create_table(
        "bot_pulls",
        sa.Column("repository", NAME, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("state", sa.String(20), nullable=False, index=True),
        sa.Column("head", sa.String(64), nullable=False, index=True),
        sa.Column("data", NAME, nullable=False),
    )
    op.create_table(
        "bot_prods", sa.Column("repository", NAME, primary_key=True), sa.Column("data", NAME, nullable=False)
    )
    op.create_table(
        "bot_runs",
        sa.Column("run_id", sa.String(40), primary_key=True),
        sa.Column("queue_key", NAME, nullable=False),
        sa.Column("purpose", NAME, nullable=False),
        sa.Column("worker", NAME, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("birth", NAME, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("exit_code", sa.Integer),
    )
    op.create_table(
        "bot_progress",
        sa.Column("repository", NAME, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", NAME, nullable=False),
    )
    op.create_table(
        "bot_decisions",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("repository", NAME, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("who", NAME, nullable=False),
        sa.Column("what", NAME, nullable=False),
        sa.Column("plan_id", NAME, nullable=False),
    )
