"""The child's main: queries of rules run here, over tables in memory, and can be killed.

A pull request wrote the query. It may read and call functions, and nothing else: SQLite asks an authorizer for each
step of a statement, and limits time, rows, and the length of texts. Nesting that SQLite unfolds before it runs is
ended by the parent, with this process.
"""

import re
import resource
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mergeplan.planner.python.serving import serve_pipes

SECONDS = 5.0  # for a query
ROWS_MAX = 10_000
TEXT_MAX = 10_000  # characters of a cell of the catalog
MEMORY = 1 << 30
STEPS = 10_000  # of SQLite's machine between looks at the clock
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
LIST_TABLES = {"json_each", "json_tree"}
FORBIDDEN = {"load_extension", "fts3_tokenizer"}  # functions that load code, and that tell addresses
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 50_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
ONE_SELECT = "A rule is one SELECT over the tables of the catalog."
STATEMENT = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*(\w*)", re.DOTALL)
NAMED = re.compile(r"""near "(.+?)":|no such \w+: (?:\w+\.)*(\w+)|ambiguous column name: (?:\w+\.)*(\w+)""")


class QueryError(Exception):
    """A query that does not run; `line` is where, 0 if that is not known."""

    is_sentence = True

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class Database:
    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._tables: set[str] = set()
        self._read: set[str] = set()
        self._end = 0.0

    def answer(self, request: Mapping[str, Any]) -> Any:
        match request["op"]:
            case "create":
                self._create_tables(request["tables"])
            case "fill":
                marks = ", ".join("?" * request["columns"])
                rows = ([cell[:TEXT_MAX] if isinstance(cell, str) else cell for cell in row] for row in request["rows"])
                self._connection.executemany(f'INSERT INTO "{request["table"]}" VALUES ({marks})', rows)
            case "tables":
                return self._find_tables(request["query"])
            case "rows":
                return self._fetch_rows(request["query"])
        return None

    def locate(self, error: BaseException) -> tuple[str, int]:
        return "", error.line if isinstance(error, QueryError) else 0

    def interrupt(self) -> None:
        self._connection.interrupt()

    def _create_tables(self, tables: Mapping[str, Mapping[str, str]]) -> None:
        connection = self._connection
        for table, columns in tables.items():
            texts = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f'CREATE TABLE "{table}" ({texts})')
            self._tables.add(table)
        for table in LIST_TABLES:
            connection.execute(f"SELECT * FROM {table}('[]')")  # declares it, which no query may
        connection.execute("PRAGMA temp_store = MEMORY")
        for limit, value in LIMITS.items():
            connection.setlimit(limit, value)

    def _find_tables(self, query: str) -> list[str]:
        """Return the tables that a query reads; raise QueryError if it is not one SELECT, or fails."""
        first = STATEMENT.match(query)
        if first is None or first[1].upper() not in ("SELECT", "WITH", "VALUES"):
            raise QueryError(ONE_SELECT, query.count("\n", 0, first.start(1) if first else 0) + 1)
        self._read = set()
        with self._guard(query):
            self._connection.execute(f"EXPLAIN {query}")
        return sorted(self._read)

    def _fetch_rows(self, query: str) -> dict[str, Any]:
        with self._guard(query):
            cursor = self._connection.execute(query)
            rows = cursor.fetchmany(ROWS_MAX + 1)
        if len(rows) > ROWS_MAX:
            raise QueryError(f"It returns more than {ROWS_MAX:,} rows.")
        if any(isinstance(cell, bytes) for row in rows for cell in row):
            raise QueryError("It returns bytes: a cell is a text or a number.")
        return {"columns": [column[0] for column in cursor.description], "rows": rows}

    @contextmanager
    def _guard(self, query: str) -> Iterator[None]:
        connection, self._end = self._connection, time.monotonic() + SECONDS
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard == resource.RLIM_INFINITY or hard > MEMORY:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, hard))
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(lambda: time.monotonic() > self._end, STEPS)
        try:
            yield
        except MemoryError:
            raise QueryError("It takes too much memory.") from None
        except sqlite3.Error as error:
            raise QueryError(*_describe_error(query, str(error))) from None
        finally:
            connection.set_authorizer(None)
            connection.set_progress_handler(None, 0)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    def _authorize(self, action: int, name: str | None, detail: str | None, database: str | None, _: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            if name in self._tables:
                self._read.add(name)
            elif database and name not in LIST_TABLES:
                return sqlite3.SQLITE_DENY
        is_allowed = action in ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and detail in FORBIDDEN)
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _describe_error(query: str, message: str) -> tuple[str, int]:
    """Return a sentence about an error of SQLite, and the line that it names, 0 for none."""
    if message == "interrupted":
        return f"It takes longer than {SECONDS:.0f} seconds.", 0
    if "one statement" in message or "not authorized" in message or "prohibited" in message:
        return ONE_SELECT, 0
    named = NAMED.search(message)
    name = next((part for part in named.groups() if part), "") if named else ""
    place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE) if name else None
    return f"SQLite: {message.rstrip('.')}.", query.count("\n", 0, place.start()) + 1 if place else 0


def main() -> None:
    serve_pipes(Database())


if __name__ == "__main__":
    main()
