"""What we know of each pull request."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec

import sqlalchemy as sa
from pydantic import TypeAdapter

from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.tables import PULLS
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.planner.state.database import put_rows

_PULL = TypeAdapter(PullRecord)
P = ParamSpec("P")


class Pulls:
    """The records of every pull request."""

    def __init__(self, database: InboxDatabase) -> None:
        self._database = database
        self._alone: defaultdict[tuple[str, int], threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def alone(self, repository: str, number: int) -> Iterator[None]:
        """Hold a lock to write a pull request to GitHub: one thread at a time, of all services on this database."""
        with self._alone[repository, number], self._database.alone(f"{repository}#{number}"):
            yield

    def get(self, repository: str, number: int) -> PullRecord:
        """Return the record of a pull request; an empty one when there is none."""
        with self._database.reading() as connection:
            return read_pull(connection, repository, number) or PullRecord(repository, number)

    def all(self, repository: str) -> tuple[PullRecord, ...]:
        query = sa.select(PULLS.c.data).where(PULLS.c.repository == repository).order_by(PULLS.c.number)
        with self._database.reading() as connection:
            return tuple(_PULL.validate_json(row.data) for row in connection.execute(query))

    def newest(self, repository: str, most: int) -> tuple[PullRecord, ...]:
        query = sa.select(PULLS.c.data).where(PULLS.c.repository == repository).order_by(PULLS.c.number.desc())
        with self._database.reading() as connection:
            return tuple(_PULL.validate_json(row.data) for row in connection.execute(query.limit(most)))

    def filter_by_state(self, repository: str, *states: PullState) -> tuple[PullRecord, ...]:
        conditions = (PULLS.c.repository == repository, PULLS.c.state.in_([state.value for state in states]))
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(PULLS.c.data).where(*conditions).order_by(PULLS.c.number))
            return tuple(_PULL.validate_json(row.data) for row in rows)

    def update(
        self,
        repository: str,
        number: int,
        transition: Callable[Concatenate[PullRecord, P], PullRecord],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> PullRecord:
        """Apply a transition to the newest record of a pull request, in one transaction, and return the next record."""
        with self._database.writing() as connection:
            record = read_pull(connection, repository, number, lock=True) or PullRecord(repository, number)
            record = transition(record, *args, **kwargs)
            put_pull(connection, record)
            return record


def read_pull(connection: sa.Connection, repository: str, number: int, *, lock: bool = False) -> PullRecord | None:
    """Return the record of a pull request, in the caller's transaction; None when there is none."""
    query = sa.select(PULLS.c.data).where(PULLS.c.repository == repository, PULLS.c.number == number)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return _PULL.validate_json(row.data) if row else None


def put_pull(connection: sa.Connection, record: PullRecord) -> None:
    values = {"repository": record.repository, "number": record.number, "state": record.state.value}
    put_rows(connection, PULLS, [{**values, "head": record.head, "data": _PULL.dump_json(record).decode()}])
