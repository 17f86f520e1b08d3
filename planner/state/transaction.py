"""One project's rows in one database, read and written in transactions that see no other project."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa

from mergeplan.planner.state import database as db

T = TypeVar("T")
CHUNK = 500  # values in one IN: far below what either database allows
STATEMENTS = 128  # of each sort that are remembered


class Transaction:
    """One open transaction; a function that takes one is part of whatever its caller commits."""

    def __init__(self, connection: sa.Connection, project: str) -> None:
        self.connection = connection
        self.project = project

    def execute(self, statement: sa.Executable) -> sa.CursorResult[Any]:
        return self.connection.execute(statement)

    def own(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.project == self.project

    def select(self, table: sa.Table) -> sa.Select[Any]:
        """Return the project's rows of a table, to be narrowed."""
        return _select_rows(table, self.project)

    def update(self, table: sa.Table) -> sa.Update:
        return _update_rows(table, self.project)

    def delete(self, table: sa.Table) -> sa.Delete:
        return _delete_rows(table, self.project)

    def insert(self, table: sa.Table, row: Mapping[str, Any]) -> None:
        """Add a row; an error of the database when its key is taken."""
        self.execute(sa.insert(table).values({**row, "project": self.project}))

    def put(self, table: sa.Table, rows: Sequence[Mapping[str, Any]], *, update: bool = True) -> None:
        db.put_rows(self.connection, table, [{**row, "project": self.project} for row in rows], update=update)

    def wait_for_turn(self, purpose: str) -> None:
        """Wait until no other transaction of the project that asked for this turn is open; SQLite has one writer."""
        if self.connection.dialect.name == "postgresql":
            key = zlib.crc32(f"mergeplan:{self.project}:{purpose}".encode())
            self.execute(sa.text("SELECT pg_advisory_xact_lock(:key)").bindparams(key=key))

    def now(self) -> datetime:
        return db.database_time(self.connection)


# Statements that are never changed, only narrowed: to make one takes longer than SQLite needs to run it.
@lru_cache(maxsize=STATEMENTS)
def _select_rows(table: sa.Table, project: str) -> sa.Select[Any]:
    return sa.select(table).where(table.c.project == project)


@lru_cache(maxsize=STATEMENTS)
def _update_rows(table: sa.Table, project: str) -> sa.Update:
    return sa.update(table).where(table.c.project == project)


@lru_cache(maxsize=STATEMENTS)
def _delete_rows(table: sa.Table, project: str) -> sa.Delete:
    return sa.delete(table).where(table.c.project == project)


class Database:
    """The rows of one project; `project` keeps the repositories of a shared database apart."""

    def __init__(self, url: str, project: str = "", *, migrates: bool = False) -> None:
        self.project = project
        self.engine = db.open_upgraded(url, "mergeplan.planner.state", migrates=migrates)

    @property
    def name(self) -> str:
        """The address and the project, without a password."""
        return f"{self.engine.url.render_as_string(hide_password=True)} {self.project}"

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Open a transaction that only reads; RequestError for a row that no whole database holds."""
        with db.open_transaction(self.engine, read=True) as connection, db.guard_decoding(self.engine):
            yield Transaction(connection, self.project)

    def decode(self, read: Callable[[], T]) -> T:
        """Decode a row after its transaction; RequestError as there."""
        with db.guard_decoding(self.engine):
            return read()

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with db.open_transaction(self.engine) as connection:
            yield Transaction(connection, self.project)


def split_chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the values a few hundred at a time."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


class ProjectStore:
    def __init__(self, database: Database) -> None:
        self._database = database
