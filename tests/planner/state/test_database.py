"""Opening a state database, and bringing its tables up to date."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from mergeplan.planner.errors import RequestError
from mergeplan.planner.state import database
from mergeplan.planner.state.database import database_time, open_database, open_transaction, put_rows, upgrade_tables
from mergeplan.planner.state.tables import metadata

pytestmark = pytest.mark.usefixtures("migrations")
UPGRADE = (
    "import sys; from mergeplan.planner.state.database import *; "
    "upgrade_tables(open_database(sys.argv[1]), 'mergeplan.planner.state'); print('done')"
)


def test_the_parent_folder_of_a_file_is_created(tmp_path: Path) -> None:
    open_database(f"sqlite:///{tmp_path}/a/b/state.db").dispose()

    assert (tmp_path / "a/b/state.db").exists()


FULL = (
    "import resource, sys; from mergeplan.planner.state.database import *; "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); open_database(sys.argv[1])"
)


def test_a_new_database_without_room_leaves_no_empty_file_which_would_count_as_damaged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    ran = subprocess.run([sys.executable, "-c", FULL, url], capture_output=True, text=True, timeout=60)

    assert "Make room on its disk" in ran.stderr
    assert not (tmp_path / "state.db").exists()


def test_sqlite_is_opened_for_many_readers_and_one_writer(tmp_path: Path) -> None:
    opened = open_database(f"sqlite:///{tmp_path}/state.db")

    with open_transaction(opened, read=True) as connection:
        pragmas = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "foreign_keys")]
    opened.dispose()

    assert pragmas == ["wal", 1]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ann:s3cret@127.0.0.1:1/shop", "postgresql+psycopg://ann:***@127.0.0.1:1/shop does not answer"),
        ("not a url", "URL cannot be read"),
        ("mysql://ann:s3cret@host/shop", "`mysql` cannot keep the state"),
        ("sqlite://", "cannot be kept in memory"),
        ("sqlite:////proc/nowhere/state.db", "does not answer"),
    ],
)
def test_a_url_that_does_not_serve_is_told_without_its_password(url: str, told: str) -> None:
    with pytest.raises(RequestError) as raised:
        open_database(url)

    assert told in str(raised.value)
    assert "s3cret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_upgrading_makes_the_tables_that_the_code_uses(empty_url: str) -> None:
    opened = open_database(empty_url)

    upgrade_tables(opened, "mergeplan.planner.state")
    with open_transaction(opened, read=True) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "alembic_version_planner"})
        differences = compare_metadata(context, metadata)
    opened.dispose()

    assert differences == []


def test_upgrading_what_is_up_to_date_asks_one_question(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_database(empty_url)
    upgrade_tables(opened, "mergeplan.planner.state")
    asked: list[str] = []
    sa.event.listen(opened, "before_cursor_execute", lambda *call: asked.append(call[2]))
    monkeypatch.setattr(database, "_run_migrations", None)

    upgrade_tables(opened, "mergeplan.planner.state")
    opened.dispose()

    assert len([statement for statement in asked if "BEGIN" not in statement]) == 1


def test_two_processes_may_upgrade_at_once(empty_url: str) -> None:
    start = [sys.executable, "-c", UPGRADE, empty_url]
    both = [subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]

    assert [process.communicate(timeout=60) for process in both] == [("done\n", "")] * 2


def test_a_database_from_the_future_is_refused(empty_url: str) -> None:
    opened = open_database(empty_url)
    upgrade_tables(opened, "mergeplan.planner.state")
    with open_transaction(opened) as connection:
        connection.execute(sa.text("UPDATE alembic_version_planner SET version_num = 'r9999'"))

    with pytest.raises(RequestError, match="newer version"):
        upgrade_tables(opened, "mergeplan.planner.state")
    opened.dispose()


def test_the_files_names_tell_the_revisions_that_alembic_sees() -> None:
    config = Config()
    config.set_main_option("script_location", "mergeplan.planner.state:migrations")
    script = ScriptDirectory.from_config(config)

    assert [step.revision for step in script.walk_revisions()] == database.list_revisions("mergeplan.planner.state")[
        ::-1
    ]


def test_nothing_is_kept_of_a_transaction_that_failed(empty_url: str) -> None:
    opened = open_database(empty_url)
    with pytest.raises(ZeroDivisionError), open_transaction(opened) as connection:
        connection.execute(sa.text("CREATE TABLE left_over (a int)"))
        raise ZeroDivisionError

    with open_transaction(opened, read=True) as connection:
        assert not sa.inspect(connection).has_table("left_over")
    opened.dispose()


def test_the_clock_is_aware_and_near_ours(empty_url: str) -> None:
    opened = open_database(empty_url)
    with open_transaction(opened, read=True) as connection:
        now = database_time(connection)
    opened.dispose()

    assert now.tzinfo is UTC
    assert abs(now - datetime.now(UTC)) < timedelta(hours=1)


@pytest.mark.parametrize(("update", "expected"), [(True, "new"), (False, "old")])
def test_putting_a_row_twice(empty_url: str, update: bool, expected: str) -> None:
    table = sa.Table("t", sa.MetaData(), sa.Column("k", sa.Integer, primary_key=True), sa.Column("v", sa.Text))
    opened = open_database(empty_url)
    with open_transaction(opened) as connection:
        table.create(connection)
        put_rows(connection, table, [{"k": 1, "v": "old"}])

        put_rows(connection, table, [{"k": 1, "v": "new"}], update=update)

        assert connection.execute(sa.select(table.c.v)).scalars().all() == [expected]
    opened.dispose()


def test_the_password_stays_out_of_a_failure_later_on(new_postgresql: Callable[[], str]) -> None:
    url = new_postgresql().replace("postgres:@", "postgres:s3cret@")
    opened = open_database(url)

    with pytest.raises(RequestError) as raised, open_transaction(opened) as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))
    opened.dispose()

    assert "s3cret" not in str(raised.value)


def test_an_interrupt_while_a_connection_closes_shows_no_stack_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_database(f"sqlite:///{tmp_path}/state.db")

    def interrupt(connection: sqlite3.Connection) -> None:
        connection.close()
        raise KeyboardInterrupt

    with opened.connect():
        pass
    with monkeypatch.context() as patch:
        patch.setattr(opened.dialect, "do_close", interrupt)

        with pytest.raises(KeyboardInterrupt):
            opened.dispose()

    assert caplog.records == []
