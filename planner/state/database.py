"""The state database: opening it from a URL, one transaction at a time, and bringing its tables up to date."""

from __future__ import annotations

import errno
import logging
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

from mergeplan.planner.errors import RequestError

# An interrupt while a connection closes is logged with a stack trace, and raised all the same.
logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
CONNECT_SECONDS = 10
STATEMENT_SECONDS = 60
IDLE_SECONDS = 90  # longer than a call of GitHub's with its retries, within which a service holds its turn
BUSY_SECONDS = 30
MIGRATION_SECONDS = 600
NEW_SECONDS, NEW_LOOKS = 2.0, 20
NEW_BYTES = 256 * 1024  # that a database with all its tables takes, and some more
FORBIDDEN = "42501"  # PostgreSQL: the user lacks a privilege
DAMAGED = (
    "Restore a copy of it; or move it away to start with an empty one, which has no record of the tables that were "
    "built. "
    "`mergeplan state export` writes a copy while it is whole."
)
EMPTIED = (
    "Restore a copy of it; or remove the file to start with an empty state, which has no record of the tables that "
    "were built."
)
UNREACHABLE = "Check the address, that the server runs, and that its folder can be written."
HINTS = {
    "SQLITE_BUSY": "Another process holds it: wait until that ends, or end it.",
    "SQLITE_FULL": "Make room on its disk and run this again: what was recorded before is kept.",
    "SQLITE_IOERR": "Check its disk, and that there is room, and run this again.",
    "SQLITE_READONLY": "Let the file and its folder be written by this user.",
    "SQLITE_CANTOPEN": "Check the path: it must be a file, and its folder one that this user may write.",
}
STATEMENTS = 128  # that are remembered: to make one takes longer than SQLite needs to run it
_READ = "mergeplan_read"  # the execution option that says: this transaction only reads


def open_database(url: str) -> sa.Engine:
    """Open a database that answers; RequestError, without the password, for a wrong or unreachable URL."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:  # a port that is no number is a ValueError
        raise RequestError("The state database's URL cannot be read.", hint=f"For example {EXAMPLE}.") from error
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        database = _open_sqlite(parsed)
    elif backend in ("postgresql", "postgres"):
        limits = f"-c statement_timeout={STATEMENT_SECONDS * 1000} -c timezone=UTC"
        # A process that stands still, on a paused machine perhaps, must not keep its locks from all others.
        limits += f" -c idle_in_transaction_session_timeout={IDLE_SECONDS * 1000}"
        arguments = {"connect_timeout": CONNECT_SECONDS, "application_name": "mergeplan", "options": limits}
        database = sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            pool_timeout=STATEMENT_SECONDS,
            connect_args={name: value for name, value in arguments.items() if name not in parsed.query},
        )
    else:
        raise RequestError(
            f"`{backend}` cannot keep the state.", hint=f"Use SQLite or PostgreSQL, for example {EXAMPLE}."
        )
    try:
        with open_transaction(database, read=True) as connection:
            connection.execute(sa.text("SELECT 1"))
    except BaseException:
        database.dispose()
        raise
    return database


def open_upgraded(url: str, package: str, *, migrates: bool = False) -> sa.Engine:
    """Open a database with the tables of one package up to date; RequestError when there is none."""
    database = open_database(url)
    try:
        upgrade_tables(database, package, migrates=migrates or database.dialect.name == "sqlite")
    except BaseException:
        database.dispose()
        raise
    return database


EXAMPLE = "`sqlite:///state.db` or `postgresql://user:password@host/database`"


def _open_sqlite(url: sa.URL) -> sa.Engine:
    if not url.database or ":memory:" in url.database:
        raise RequestError("The state cannot be kept in memory.", hint="Name a file, for example `sqlite:///state.db`.")
    file = Path(url.database).expanduser()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            with TemporaryFile(dir=file.parent) as trial:  # without room SQLite would leave an empty, so damaged, file
                trial.write(bytes(NEW_BYTES))
    except OSError as error:
        raise _unreachable_error(url, error) from error
    url = url.set(database=str(file))
    if _was_emptied(file):
        raise _damage_error(url, "the file is empty", EMPTIED)
    patience = {} if "timeout" in url.query else {"timeout": BUSY_SECONDS}
    database = sa.create_engine(url, connect_args={**patience, "check_same_thread": False})
    sa.event.listen(database, "connect", _prepare_sqlite)
    sa.event.listen(database, "begin", _begin_sqlite)
    return database


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Without this Python's driver opens transactions as it sees fit, and never around DDL.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    deadline = time.monotonic() + connection.execute("PRAGMA busy_timeout").fetchone()[0] / 1000
    # Two processes that both turn a new file to WAL get "locked" at once, whatever the busy timeout.
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if time.monotonic() > deadline or not error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that will write takes the write lock first: one that reads and then writes may fail half-way.
    read = connection.get_execution_options().get(_READ)
    connection.exec_driver_sql("BEGIN" if read else "BEGIN IMMEDIATE")


@contextmanager
def open_transaction(database: sa.Engine, *, read: bool = False) -> Iterator[sa.Connection]:
    """One transaction, committed unless something is raised; RequestError when the database does not answer."""
    try:
        with database.connect().execution_options(**{_READ: read}) as connection, connection.begin():
            yield connection
    except sa.exc.TimeoutError as error:
        raise _unreachable_error(database.url, error) from error
    except sa.exc.DBAPIError as error:
        if _is_ours(error):
            raise
        raise _unreachable_error(database.url, error.orig or error) from error
    except UnicodeDecodeError as error:
        raise _damage_error(database.url, str(error)) from error


@contextmanager
def guard_decoding(database: sa.Engine) -> Iterator[None]:
    """Around rows that become what they stand for: RequestError for one that a whole database could not hold."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # MergeplanErrors are none of these
        reason = f"a row of it cannot be read ({type(error).__name__}: {str(error).splitlines()[0][:200]})"
        raise _damage_error(database.url, reason) from error


def _is_ours(error: sa.exc.DBAPIError) -> bool:
    """Return True when the database is well, and the statement was wrong: two rows of one key, bad SQL."""
    if isinstance(error, sa.exc.ProgrammingError):
        return not error.connection_invalidated and getattr(error.orig, "sqlstate", "") not in (None, FORBIDDEN)
    return isinstance(error, (sa.exc.IntegrityError, sa.exc.DataError, sa.exc.NotSupportedError))


def _unreachable_error(url: sa.URL, error: BaseException) -> RequestError:
    lines = str(error).strip().splitlines()
    reason = lines[0].rstrip(".") if lines else type(error).__name__
    candidates = [url.password, *(value for name, value in url.query.items() if "password" in name)]
    for secret in [str(secret) for secret in candidates if secret]:
        reason = reason.replace(secret, "***")
    # SQLite tells what kind of error it is by a name, whose first two words are the class: SQLITE_IOERR_WRITE.
    kind = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        kind = "SQLITE_FULL"
    if kind in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        return _damage_error(url, reason)
    return RequestError(
        f"The state database {_redact_url(url)} does not answer: {reason}.", hint=HINTS.get(kind, UNREACHABLE)
    )


def _damage_error(url: sa.URL, reason: str, hint: str = DAMAGED) -> RequestError:
    return RequestError(f"The state database {_redact_url(url)} is damaged: {reason}.", hint=hint)


def _redact_url(url: sa.URL) -> str:
    hidden = {name: "***" for name in url.query if "password" in name}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def _was_emptied(file: Path) -> bool:
    """Return True if a file stays empty, as a full disk leaves it, and is not being made: prod would look unbuilt."""
    for _ in range(NEW_LOOKS):
        if not file.is_file() or file.stat().st_size or file.with_name(f"{file.name}-wal").exists():
            return False
        time.sleep(NEW_SECONDS / NEW_LOOKS)
    return True


def database_time(connection: sa.Connection) -> datetime:
    """Now, by the database's own clock: processes on several machines that share it must agree about a lease's end."""
    if connection.dialect.name == "postgresql":
        server_time: datetime = connection.execute(sa.text("SELECT clock_timestamp()")).scalar_one()
        return server_time.astimezone(UTC)
    return datetime.now(UTC)


def _insert_statement(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # not for those whose state is a file

        return postgresql.insert(table)
    return sqlite.insert(table)


def put_rows(
    connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]], *, update: bool = True
) -> None:
    """Insert rows; where the primary key is taken the row is updated, or left as it is when `update` is false."""
    if rows:
        statement = _put_statement(connection.dialect.name, table, tuple(rows[0]) if update else ())
        connection.execute(statement, list(rows))


@lru_cache(maxsize=STATEMENTS)
def _put_statement(dialect: str, table: sa.Table, names: tuple[str, ...]) -> sa.Insert:
    statement = _insert_statement(dialect, table)
    keys = [column.name for column in table.primary_key]
    if changed := {name: statement.excluded[name] for name in names if name not in keys}:
        return statement.on_conflict_do_update(index_elements=keys, set_=changed)
    return statement.on_conflict_do_nothing(index_elements=keys)


def upgrade_tables(database: sa.Engine, package: str, *, migrates: bool = False) -> None:
    """Bring a package's tables (`mergeplan.planner.state`, `mergeplan.bot.inbox`) up to date; one query if they are.

    The package's migrations are `<package>/migrations/versions/r0001_<what>.py`, in one line, with revisions `r0001`,
    `r0002` and so on. Two processes may start at once. Only who `migrates` changes tables of an earlier version, as
    that locks earlier versions out. RequestError when the database is of another version and stays so.
    """
    package_revisions = list_revisions(package)
    if _read_revision(database, package) == package_revisions[-1]:
        return
    with open_transaction(database) as connection:
        if connection.dialect.name == "postgresql":
            lock = zlib.crc32(f"mergeplan:{package.split('.')[1]}".encode())
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})
            connection.execute(sa.text(f"SET LOCAL statement_timeout = {MIGRATION_SECONDS * 1000}"))
        table = version_table(package)
        revision = (
            connection.execute(_version_query(package)).scalar() if sa.inspect(connection).has_table(table) else None
        )
        if revision is not None and revision not in package_revisions:
            raise RequestError(
                f"The state database is of a newer version ({revision}) than this mergeplan ({package_revisions[-1]}).",
                hint="Install the newer mergeplan.",
            )
        if revision is not None and revision != package_revisions[-1] and not migrates:
            raise RequestError(
                f"The state database is of an earlier version ({revision}) than this mergeplan "
                f"({package_revisions[-1]}).",
                hint="Install the version that the others use; or run `mergeplan migrate`, after which they refuse the "
                "database until they are as new.",
            )
        if revision != package_revisions[-1]:
            _run_migrations(connection, package)


def list_revisions(package: str) -> list[str]:
    """Return a package's revisions, oldest first, by its files' names."""
    folder = resources.files(package) / "migrations" / "versions"
    return sorted(name.split("_")[0] for name in (entry.name for entry in folder.iterdir()) if _is_revision(name))


def version_table(package: str) -> str:
    return f"alembic_version_{package.split('.')[1]}"


def _is_revision(name: str) -> bool:
    return name.endswith(".py") and name[:1] == "r" and name[1:5].isdigit()


def _version_query(package: str) -> sa.Select[Any]:
    return sa.select(sa.column("version_num", sa.String)).select_from(sa.table(version_table(package)))


def _read_revision(database: sa.Engine, package: str) -> str | None:
    try:
        with database.connect().execution_options(**{_READ: True}) as connection:
            revision: str | None = connection.execute(_version_query(package)).scalar()
            return revision
    except (sa.exc.DBAPIError, UnicodeDecodeError):
        return None  # no such table yet; a database that does not answer is told by the next transaction


def _run_migrations(connection: sa.Connection, package: str) -> None:
    # Alembic takes a tenth of a second to import; nobody pays for it once the tables are there.
    from alembic import command
    from alembic.config import Config

    config = Config()
    # One env.py serves every package; only the versions are the package's own.
    config.set_main_option("script_location", "mergeplan.planner.state:migrations")
    config.set_main_option("version_locations", f"{package}:migrations/versions")
    config.set_main_option("path_separator", "newline")
    config.attributes.update(connection=connection, version_table=version_table(package))
    command.upgrade(config, "head")
