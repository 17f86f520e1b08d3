"""Child processes, on record from start to end."""

from dataclasses import dataclass

import sqlalchemy as sa

from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.tables import RUNS


@dataclass(frozen=True)
class Run:
    """A child process that was started and not yet seen to end."""

    run_id: str
    key: str
    worker: str
    pid: int
    birth: str


class Runs:
    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def begin(self, run: Run, purpose: str) -> None:
        """Store a child process, so that the next worker can find it should this one die."""
        row = {"run_id": run.run_id, "queue_key": run.key, "purpose": purpose}
        process = {"worker": run.worker, "pid": run.pid, "birth": run.birth}
        with self._database.writing() as connection:
            connection.execute(RUNS.insert().values({**row, **process, "started_at": database_seconds(connection)}))

    def end(self, run_id: str, exit_code: int) -> None:
        with self._database.writing() as connection:
            ended = {"ended_at": database_seconds(connection), "exit_code": exit_code}
            connection.execute(RUNS.update().where(RUNS.c.run_id == run_id).values(ended))

    def open(self) -> tuple[Run, ...]:
        query = sa.select(RUNS).where(RUNS.c.ended_at.is_(None))
        with self._database.reading() as connection:
            rows = connection.execute(query)
            return tuple(Run(row.run_id, row.queue_key, row.worker, row.pid, row.birth) for row in rows)
