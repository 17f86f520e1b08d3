"""The bot's tables in the state database; `bot/inbox/migrations` makes them and brings them up to date."""

import sqlalchemy as sa

META = sa.MetaData()
DELIVERIES = sa.Table(
    "bot_deliveries",
    META,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("guid", sa.String(120), nullable=False, unique=True),
    sa.Column("kind", sa.String(80)),
    sa.Column("queue_key", sa.Text),
    sa.Column("head", sa.String(64)),
    sa.Column("received_at", sa.Float),
    sa.Column("trace", sa.String(64)),  # the W3C traceparent of what took it in
)
QUEUE = sa.Table(
    "bot_queue",
    META,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("repository", sa.Text),
    sa.Column("number", sa.Integer),
    sa.Column("wanted", sa.Integer),
    sa.Column("due_at", sa.Float),
    sa.Column("settle_until", sa.Float),
    sa.Column("owner", sa.Text),
    sa.Column("owned_until", sa.Float),
    sa.Column("attempts", sa.Integer),
    sa.Column("error", sa.Text),
)
COMMANDS = sa.Table(
    "bot_commands",
    META,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("comment_id", sa.BigInteger, primary_key=True),
    sa.Column("number", sa.Integer),
    sa.Column("state", sa.String(20)),
    sa.Column("seen", sa.Boolean),
    sa.Column("data", sa.Text),
)
REPOSITORIES = sa.Table(
    "bot_repositories",
    META,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),  # GitHub's, which stays as names change
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
)
PULLS = sa.Table(
    "bot_pulls",
    META,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("state", sa.String(20)),
    sa.Column("head", sa.String(64)),
    sa.Column("data", sa.Text),
)
PRODS = sa.Table("bot_prods", META, sa.Column("repository", sa.Text, primary_key=True), sa.Column("data", sa.Text))
RUNS = sa.Table(
    "bot_runs",
    META,
    sa.Column("run_id", sa.String(40), primary_key=True),
    sa.Column("queue_key", sa.Text),
    sa.Column("purpose", sa.Text),
    sa.Column("worker", sa.Text),
    sa.Column("pid", sa.Integer),
    sa.Column("birth", sa.Text),
    sa.Column("started_at", sa.Float),
    sa.Column("ended_at", sa.Float),
    sa.Column("exit_code", sa.Integer),
)
PROGRESS = sa.Table(
    "bot_progress",
    META,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("data", sa.Text),
)
DECISIONS = sa.Table(
    "bot_decisions",
    META,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float),
    sa.Column("repository", sa.Text),
    sa.Column("number", sa.Integer),
    sa.Column("who", sa.Text),
    sa.Column("what", sa.Text),
    sa.Column("plan_id", sa.Text),
)
CATALOGS = sa.Table(
    "bot_catalogs",
    META,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("mark", sa.String(120)),
    sa.Column("made_at", sa.Float),
    sa.Column("data", sa.LargeBinary),
)
PUBLICATIONS = sa.Table(
    "bot_publications",
    META,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("mark", sa.String(120), nullable=False),
    sa.Column("data", sa.Text, nullable=False),
)
READS = sa.Table(
    "bot_reads",
    META,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("data", sa.Text, nullable=False),
    sa.Index("bot_reads_by_table", "table_name"),
)
