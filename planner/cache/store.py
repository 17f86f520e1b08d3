"""Texts by key in one SQLite file, shared by processes: what is damaged, locked or full is as if it were not there.

The keys are digests of all that the texts follow from, so an entry never becomes wrong; it is only no longer asked for.
Every entry has a checksum, because nothing in the file is synced to the disk: a text that is not what was written is
not returned. The format is data, which nobody can make run.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from datetime import date
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
LARGEST = 512 * 1024 * 1024  # bytes of the file, before the entries that were not read for longest go
KEPT = 0.6  # of these bytes, when they go
WAIT = 2.0  # seconds for another process to finish its write
AT_ONCE = 900  # keys in one question; SQLite takes no more than 999 everywhere
_TABLE = """CREATE TABLE IF NOT EXISTS entries
    (key TEXT PRIMARY KEY, text BLOB NOT NULL, checksum BLOB NOT NULL, used INTEGER NOT NULL)"""


class Cache:
    """The entries below a folder, or none at all; no call raises for what is wrong with the file."""

    def __init__(self, folder: Path | None, largest: int = LARGEST) -> None:
        self._file = folder / "entries.db" if folder else None
        self._largest = largest

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it keeps, of those that its folder has: the rest of the folder is somebody else's."""
        named = (self._file, self._file.with_name(f"{self._file.name}-journal")) if self._file else ()
        return tuple(path for path in named if path.is_file())

    def get(self, keys: Collection[str]) -> dict[str, str]:
        return self._use_file(lambda connection: _read_texts(connection, keys)) or {} if keys else {}

    def put(self, entries: Mapping[str, str], read: Collection[str] = ()) -> None:
        """Store these texts in one transaction and note the others as read; drop the least recently read for room."""
        if entries:
            self._use_file(lambda connection: _write_texts(connection, entries, self._largest))
        if read:
            self._use_file(lambda connection: _mark_used(connection, read))

    def open(self) -> sqlite3.Connection | None:
        """Open a connection that only reads; None where nothing is stored, or the file cannot be read."""
        if self._file is None or not self._file.is_file():
            return None
        try:
            return sqlite3.connect(
                f"{self._file.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT, check_same_thread=False
            )
        except sqlite3.Error:
            return None

    def _use_file(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Work with the file; None when it is missing or unusable; a damaged one is removed."""
        if self._file is None:
            return None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=WAIT)) as connection:
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute(_TABLE)
                return work(connection)
        except sqlite3.OperationalError:
            return None  # locked for long, a full disk, a folder that cannot be written
        except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError):
            with suppress(OSError):
                for file in reversed(self.files):  # a journal that stayed would be played into the next file
                    file.unlink()
        except OSError:
            pass
        return None


NO_CACHE = Cache(None)


class Lookups:
    """The texts of a cache one by one, over one connection; what is new is written by `keep`, all at once."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._new: dict[str, str] = {}
        self._stale: list[str] = []
        self._connection = cache.open()

    def get(self, key: str) -> str | None:
        if key in self._new:
            return self._new[key]
        try:
            texts, stale = _select_texts(self._connection, [key]) if self._connection else ({}, [])
        except (sqlite3.Error, UnicodeDecodeError, OverflowError):
            self.close()  # `keep` removes what is damaged
            return None
        self._stale += stale
        return texts.get(key)

    def put(self, key: str, text: str) -> None:
        self._new[key] = text

    def keep(self) -> None:
        """Write what is new, and note what was read."""
        self.close()
        self._cache.put(self._new, self._stale)
        self._new, self._stale = {}, []
        self._connection = self._cache.open()

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None


def _read_texts(connection: sqlite3.Connection, keys: Collection[str]) -> dict[str, str]:
    texts, stale = _select_texts(connection, keys)
    with suppress(sqlite3.OperationalError):  # somebody else writes: what was read is read
        _mark_used(connection, stale)
    return texts


def _mark_used(connection: sqlite3.Connection, keys: Collection[str]) -> None:
    today = date.today().toordinal()
    connection.executemany("UPDATE entries SET used = ? WHERE key = ?", [(today, key) for key in keys])
    connection.commit()


def _select_texts(connection: sqlite3.Connection, keys: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Return the texts of these keys, and the keys that were last read on another day."""
    texts: dict[str, str] = {}
    stale: list[str] = []
    today = date.today().toordinal()
    listed = list(keys)
    for batch in (listed[at : at + AT_ONCE] for at in range(0, len(listed), AT_ONCE)):
        marks = ",".join("?" * len(batch))
        rows = connection.execute(f"SELECT key, text, checksum, used FROM entries WHERE key IN ({marks})", batch)
        for key, text, checksum, used in rows:
            if type(text) is bytes and type(key) is str and checksum == _text_checksum(key, text):
                texts[key] = text.decode()
                if used != today:
                    stale.append(key)
    return texts, stale


def _write_texts(connection: sqlite3.Connection, entries: Mapping[str, str], largest: int) -> None:
    today = date.today().toordinal()
    rows = ((key, data := text.encode(), _text_checksum(key, data), today) for key, text in entries.items())
    connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    pages, size = (connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("page_count", "page_size"))
    if pages * size > largest:
        connection.execute(
            """DELETE FROM entries WHERE key IN (
                SELECT key FROM (SELECT key, SUM(LENGTH(text)) OVER (ORDER BY used DESC, key) AS size FROM entries)
                WHERE size > ?)""",
            (int(largest * KEPT),),
        )
        connection.commit()
        connection.execute("VACUUM")


def _text_checksum(key: str, data: bytes) -> bytes:
    return hashlib.blake2b(data, key=key.encode()[:64], digest_size=16).digest()
