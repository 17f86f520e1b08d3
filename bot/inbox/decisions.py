"""Who decided what, on record for good."""

from __future__ import annotations

import sqlalchemy as sa

from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.tables import DECISIONS


class DecisionLog:
    """The decisions about every pull request."""

    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def record(self, repository: str, number: int, who: str, what: str, plan_id: str = "") -> None:
        with self._database.writing() as connection:
            row = {
                "at": database_seconds(connection),
                "repository": repository,
                "number": number,
                "who": who,
                "what": what,
            }
            connection.execute(DECISIONS.insert().values({**row, "plan_id": plan_id}))

    def list_decisions(self, repository: str, number: int) -> tuple[tuple[float, str, str, str], ...]:
        """Return each decision, oldest first: time (seconds of the epoch), person, decision and plan."""
        where = (DECISIONS.c.repository == repository, DECISIONS.c.number == number)
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(DECISIONS).where(*where).order_by(DECISIONS.c.id))
            return tuple((row.at, row.who, row.what, row.plan_id) for row in rows)
