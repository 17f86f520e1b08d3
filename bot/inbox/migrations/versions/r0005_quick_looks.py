"""Indexes for what is looked for several times a second, among all pull requests and commands that there were."""

from alembic import op

revision = "r0005"
down_revision = "r0004"


def upgrade() -> None:
    op.create_index("bot_queue_by_owner", "bot_queue", ["owner"])
    op.create_index("bot_commands_by_seen", "bot_commands", ["seen"])
    op.create_index("bot_runs_by_end", "bot_runs", ["ended_at"])
