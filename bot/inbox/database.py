"""The bot's tables in the state database, one transaction at a time."""

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import sqlalchemy as sa

from mergeplan.bot.inbox.tables import QUEUE
from mergeplan.planner.state.database import database_time, open_transaction, open_upgraded


class _Undone(Exception):
    """Ends a transaction that is not to be committed."""


class InboxDatabase:
    def __init__(self, url: str, *, migrates: bool = False) -> None:
        self._engine = open_upgraded(url, "mergeplan.bot.inbox", migrates=migrates)

    def close(self) -> None:
        self._engine.dispose()

    def ping(self) -> None:
        """Raise RequestError when the database takes no write; SQLite answers `SELECT 1` without a look at its file."""
        with self.undone() as connection:
            connection.execute(sa.delete(QUEUE).where(QUEUE.c.key == ""))

    @property
    def is_shared(self) -> bool:
        """True for a database that serves more than one machine."""
        return self._engine.dialect.name == "postgresql"

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Hold a lock that one process has at a time, on any machine; an SQLite file serves one service and needs none.

        It ends with the transaction, and so with its process. One thread must not take it twice.
        """
        if not self.is_shared:
            yield
            return
        with self.writing() as connection:
            connection.detach()  # from the pool: it is held while GitHub answers, and others only ask
            connection.execute(sa.text("SET LOCAL statement_timeout = '600s'"))  # others write at GitHub's pace
            # Two numbers: ours among other programs', and the name's. A collision only waits.
            numbers = {"group": 0x6D70, "key": zlib.crc32(name.encode()) - 2**31}
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:group, :key)"), numbers)
            yield

    @contextmanager
    def undone(self) -> Iterator[sa.Connection]:
        """Open a transaction that writes and is rolled back at its end."""
        with suppress(_Undone), self.writing() as connection:
            yield connection
            raise _Undone

    def reading(self) -> AbstractContextManager[sa.Connection]:
        return open_transaction(self._engine, read=True)

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """Open a transaction that writes, committed unless something is raised."""
        return open_transaction(self._engine)


def database_seconds(connection: sa.Connection) -> float:
    """Return the seconds of the epoch, by the database's own clock."""
    return database_time(connection).timestamp()
