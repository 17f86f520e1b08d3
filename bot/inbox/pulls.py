"""What we know of each pull request."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec
from weakref import WeakValueDictionary

import sqlalchemy as sa
from pydantic import TypeAdapter

from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.tables import PULLS
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.planner.state.database import put_rows

_PULL = TypeAdapter(PullRecord)
# Built once: to build a statement takes as long as to run it.
_KEY = (PULLS.c.repository == sa.bindparam("repository"), PULLS.c.number == sa.bindparam("number"))
_SELECT = sa.select(PULLS.c.data).where(*_KEY)
_LOCK = _SELECT.with_for_update()
P = ParamSpec("P")
OVER = (PullState.CLOSED.value, PullState.PROMOTED.value)


class Pulls:
    def __init__(self, database: InboxDatabase) -> None:
        self._database = database
        # A lock is forgotten when no thread has it: there are as many pull requests as there ever were.
        self._alone: WeakValueDictionary[tuple[str, int], threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()

    @contextmanager
    def alone(self, repository: str, number: int) -> Iterator[None]:
        """Hold a lock to write a pull request to GitHub: one thread at a time, of all services on this database."""
        with self._guard:
            lock = self._alone.setdefault((repository, number), threading.Lock())
        with lock, self._database.alone(f"{repository}#{number}"):
            yield

    def get(self, repository: str, number: int) -> PullRecord:
        """Return the record of a pull request; an empty one when there is none."""
        with self._database.reading() as connection:
            return read_pull(connection, repository, number) or PullRecord(repository, number)

    def all(self, repository: str) -> tuple[PullRecord, ...]:
        return self._load_records(_select_data(repository).order_by(PULLS.c.number))

    def list_current(self, repository: str, also: Sequence[int] = ()) -> tuple[PullRecord, ...]:
        """Return the records that are neither closed nor promoted, and those with the other numbers."""
        is_listed = sa.or_(PULLS.c.state.not_in(OVER), PULLS.c.number.in_(also))
        return self._load_records(_select_data(repository).where(is_listed).order_by(PULLS.c.number))

    def last_promoted(self, repository: str, most: int) -> tuple[PullRecord, ...]:
        return self._load_records(_select_promoted(PULLS.c.data, repository).limit(most))

    def list_numbers(self, repository: str, most_promoted: int) -> tuple[int, ...]:
        """Return the numbers of those that are neither closed nor promoted, and of the promoted ones the newest."""
        current = sa.select(PULLS.c.number).where(PULLS.c.repository == repository, PULLS.c.state.not_in(OVER))
        with self._database.reading() as connection:
            promoted = connection.execute(_select_promoted(PULLS.c.number, repository).limit(most_promoted)).scalars()
            return tuple(sorted([*connection.execute(current).scalars(), *promoted]))

    def newest(self, repository: str, most: int) -> tuple[PullRecord, ...]:
        return self._load_records(_select_data(repository).order_by(PULLS.c.number.desc()).limit(most))

    def filter_by_state(self, repository: str, *states: PullState) -> tuple[PullRecord, ...]:
        is_filtered = PULLS.c.state.in_([state.value for state in states])
        return self._load_records(_select_data(repository).where(is_filtered).order_by(PULLS.c.number))

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

    def _load_records(self, query: sa.Select[Any]) -> tuple[PullRecord, ...]:
        with self._database.reading() as connection:
            return tuple(_PULL.validate_json(row.data) for row in connection.execute(query))


def _select_data(repository: str) -> sa.Select[Any]:
    return sa.select(PULLS.c.data).where(PULLS.c.repository == repository)


def _select_promoted(column: sa.Column[Any], repository: str) -> sa.Select[Any]:
    promoted = (PULLS.c.repository == repository, PULLS.c.state == PullState.PROMOTED.value)
    return sa.select(column).where(*promoted).order_by(PULLS.c.number.desc())


def read_pull(connection: sa.Connection, repository: str, number: int, *, lock: bool = False) -> PullRecord | None:
    """Return the record of a pull request, in the caller's transaction; None when there is none."""
    row = connection.execute(_LOCK if lock else _SELECT, {"repository": repository, "number": number}).first()
    return _PULL.validate_json(row.data) if row else None


def put_pull(connection: sa.Connection, record: PullRecord) -> None:
    values = {"repository": record.repository, "number": record.number, "state": record.state.value}
    put_rows(connection, PULLS, [{**values, "head": record.head, "data": _PULL.dump_json(record).decode()}])
