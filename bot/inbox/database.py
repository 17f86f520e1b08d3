"""The bot's tables in the state database, one transaction at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager

import sqlalchemy as sa

from planner.state.database import clock, open_upgraded, transaction


class InboxDatabase:
    """The database that the stores of an inbox share."""

    def __init__(self, url: str) -> None:
        self._engine = open_upgraded(url, "bot.inbox")

    def close(self) -> None:
        """Lets go of the connections."""
        self._engine.dispose()

    def ping(self) -> None:
        """Raises RequestError when the database does not answer."""
        with self.reading() as connection:
            connection.execute(sa.text("SELECT 1"))

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that only reads."""
        return transaction(self._engine, read=True)

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that writes, committed unless something is raised."""
        return transaction(self._engine)


def now(connection: sa.Connection) -> float:
    """Seconds of the epoch, by the database's own clock."""
    return clock(connection).timestamp()
