"""What was read of a state that is a file, as statements that can be made again: while they return the same rows, the
state is the same to whoever read them.

Read by the driver alone, for who needs nothing else of the state.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WAIT = 2.0  # seconds for another process to finish its write
Read = tuple[str, list[Any]]  # a statement with its parameters
# A snapshot's id is the hash of all it holds: its row says the same whenever it is read by its id.
_BY_ID = "WHERE snapshots.project = ? AND snapshots.id IN"


@dataclass
class StateReads:
    """The statements of one process, and whether it, or anybody else, wrote meanwhile."""

    file: str = ""  # of the database; '' for one that is no file
    statements: dict[str, Read] = field(default_factory=dict)  # by its text, so that each is made once
    writes: set[str] = field(default_factory=set)  # the first words of statements that may have written
    _connection: sqlite3.Connection | None = None
    _version: int = 0

    def begin(self, file: str) -> None:
        """From now on statements are noted; of what is no path of a file, but an address of SQLite's, none."""
        with suppress(sqlite3.Error, ValueError):
            self._connection = _open(file)
            self._version = _data_version(self._connection)
            self.file = file

    def note(self, statement: str, parameters: Sequence[object]) -> None:
        """One statement that is being made."""
        first = " ".join(statement.split()[:3]).upper()
        if first.startswith("SELECT"):
            if _BY_ID not in " ".join(statement.split()):
                self.statements[repr((statement, parameters))] = statement, list(parameters)
        elif first not in ("BEGIN", "BEGIN IMMEDIATE"):
            self.writes.add(first)

    def digests(self) -> list[str] | None:
        """A digest of what each statement returns; None when anything was written since the first was made."""
        if self._connection is None or self.writes:
            return None
        with suppress(sqlite3.Error):
            self._connection.execute("BEGIN")
            rows = [_digest_rows(self._connection, read) for read in self.statements.values()]
            self._connection.rollback()
            return rows if _data_version(self._connection) == self._version else None
        return None

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def digest_reads(file: str, reads: Sequence[Read]) -> list[str] | None:
    """A digest of what each of these statements returns now; None when the database cannot be read."""
    try:
        with closing(_open(file)) as connection:
            connection.execute("BEGIN")
            return [_digest_rows(connection, read) for read in reads if read[0].startswith("SELECT")]
    except (sqlite3.Error, ValueError, TypeError):
        return None


def _open(file: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{Path(file).absolute().as_uri()}?mode=rw", uri=True, timeout=WAIT, isolation_level=None
    )
    try:
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _digest_rows(connection: sqlite3.Connection, read: Read) -> str:
    statement, parameters = read
    hashed = hashlib.blake2b(digest_size=16)
    for row in connection.execute(statement, parameters):
        hashed.update(repr(row).encode())
    return hashed.hexdigest()
