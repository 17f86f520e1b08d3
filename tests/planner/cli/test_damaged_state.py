"""A state database that cannot be used: a sentence that says what to do, exit code 1, whatever is wrong with it."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import ALONE, write_shop

SECRET = "hunter2"  # noqa: S105  # no secret of anybody
HOLDS = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print(1, flush=True); input()"
)
NO_ROOM = """
import resource, sys
from mergeplan.planner.cli.main import VERBS, run
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(run(VERBS, ["plan", "dev", "--no-prompts", "--skip-tests"]))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state database of some pages, closed in order."""
    file = tmp_path_factory.mktemp("whole") / "state.db"
    with closing(StateStore(f"sqlite:///{file}")) as store, store.leases.hold("prod", "test") as lease:
        shown = [snapshot(f"shop.m{n}", f"v{n}") for n in range(40)]
        for version in shown:
            store.tables.register(version.table, ())
        store.promotions.finish(lease, store.promotions.begin(lease, Environment("prod"), environment("prod", *shown)))
    return file


@pytest.fixture
def mergeplan(offline: CommandLine, whole: Path) -> CommandLine:
    """A project whose state is that of `whole`; a verb that starts Spark fails."""
    write_shop(offline.root, **ALONE)
    (offline.root / ".mergeplan").mkdir(exist_ok=True)
    shutil.copy(whole, offline.root / ".mergeplan/state.db")
    return offline


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)  # noqa: S311  # not for secrets


def over(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


def sql(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def instead(file: Path, make: Callable[[], object]) -> None:
    file.unlink()
    make()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "random bytes": (lambda file: file.write_bytes(noise(1, 90_000)), "is damaged"),
    "text": (lambda file: file.write_text("hello\n" * 999), "is damaged"),
    "a header of random bytes": (lambda file: over(file, 0, noise(2, 100)), "is damaged"),
    "random bytes after the header": (lambda file: over(file, 4096, noise(3, 60_000)), "is damaged"),
    "cut in half": (lambda file: os.truncate(file, file.stat().st_size // 8192 * 4096), "is damaged"),
    "cut within a page": (lambda file: file.write_bytes(file.read_bytes()[:5000]), "is damaged"),
    "cut within the header": (lambda file: file.write_bytes(file.read_bytes()[:50]), "is damaged"),
    "nothing": (lambda file: file.write_bytes(b""), "is damaged: the file is empty"),
    "a folder": (lambda file: instead(file, file.mkdir), "unable to open database file"),
    "a link to itself": (lambda file: instead(file, lambda: file.symlink_to(file)), "does not answer"),
    "a device": (lambda file: instead(file, lambda: file.symlink_to("/dev/full")), "does not answer"),
    "of tomorrow": (lambda file: sql(file, "UPDATE alembic_version_planner SET version_num='r9999'"), "newer version"),
    "without a table": (lambda file: sql(file, "PRAGMA foreign_keys=0", "DROP TABLE environments"), "no such table"),
    "rows that are no JSON": (lambda file: sql(file, "UPDATE snapshots SET model='{\"na'"), "is damaged"),
    "rows of another shape": (lambda file: sql(file, "UPDATE snapshots SET model='[]'"), "is damaged"),
    "words that nobody knows": (lambda file: sql(file, "UPDATE environment_history SET action='x'"), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_a_sentence_in_every_verb_that_needs_it(damage: str, mergeplan: CommandLine) -> None:
    harm, told = DAMAGES[damage]
    harm(mergeplan.root / ".mergeplan/state.db")

    for arguments in (["environments", "prod"], ["rollback", "prod"], ["plan", "--no-prompts"]):
        if arguments[0] != "environments" and damage == "words that nobody knows":
            continue  # they need not read how prod came about
        ran = mergeplan(*arguments)

        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), (arguments, ran)
        assert ran.err.startswith("Error: The state database ")
        assert told in ran.err
        assert "defect" not in ran.err
        assert ran.err.rstrip().endswith(".")


def test_an_emptied_state_says_what_to_do_and_a_removed_one_begins_anew(mergeplan: CommandLine) -> None:
    file = mergeplan.root / ".mergeplan/state.db"
    file.write_bytes(b"")

    refused = mergeplan("environments")

    assert (refused.code, file.read_bytes()) == (1, b"")
    assert "Restore a copy of it; or remove the file to start with an empty state" in refused.err
    file.unlink()
    assert mergeplan("environments").code == 0


def test_nobody_waits_for_a_state_that_is_whole_or_new(mergeplan: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def asleep(seconds: float) -> None:
        raise AssertionError(f"slept for {seconds} s")

    # in that module alone: other threads of this process may sleep
    monkeypatch.setattr(
        "mergeplan.planner.state.database.time", SimpleNamespace(sleep=asleep, monotonic=time.monotonic)
    )

    assert mergeplan("environments").code == 0
    (mergeplan.root / ".mergeplan/state.db").unlink()
    assert mergeplan("environments").code == 0


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_are_never_a_defect_of_ours(seed: int, mergeplan: CommandLine) -> None:
    file = mergeplan.root / ".mergeplan/state.db"
    choose = random.Random(seed)  # noqa: S311
    for _ in range(40):
        over(file, choose.randrange(file.stat().st_size), choose.randbytes(choose.choice([1, 4, 32])))

    ran = mergeplan("environments", "prod")

    assert ran.code in (0, 1, 4), ran
    assert "defect" not in ran.err


def test_a_state_that_another_process_holds_is_told(mergeplan: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    file = mergeplan.root / ".mergeplan/state.db"
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline()
    monkeypatch.setenv("MERGEPLAN_STATE_URL", f"sqlite:///{file}?timeout=0.2")

    ran = mergeplan("rollback", "prod")

    holder.communicate(b"\n", timeout=60)
    assert ran.code == 1
    assert ran.err.endswith(
        "does not answer: database is locked. Another process holds it: wait until that ends, or end it.\n"
    )


def test_a_disk_without_room_is_told_and_nothing_is_lost(mergeplan: CommandLine) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NO_ROOM, "4096"],
        cwd=mergeplan.root, env=dict(os.environ, PYTHONPATH=str(Path(__file__).parents[3])),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert ran.returncode == 1, ran
    assert ran.stderr.startswith("Error: The state database ")
    assert "defect" not in ran.stderr
    assert mergeplan("environments").code == 0


@pytest.fixture
def url_with_password(new_postgresql: Callable[[], str], postgresql: str) -> Iterator[str]:
    """A PostgreSQL database to which `ann` gets with a password only."""
    url = new_postgresql()
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgresql, autocommit=True) as admin:
        hba = Path(str(admin.execute("SHOW hba_file").fetchone()[0]))  # type: ignore[index]
        before = hba.read_text()
        hba.write_text(f"local {name} ann scram-sha-256\n{before}")
        admin.execute(f"CREATE ROLE ann LOGIN PASSWORD '{SECRET}2'")
        admin.execute("SELECT pg_reload_conf()")
        yield url
        hba.write_text(before)
        admin.execute("SELECT pg_reload_conf()")
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        admin.execute("DROP ROLE ann")


REFUSED = {
    "nobody listens": "postgresql://ann:{secret}@127.0.0.1:1/db",
    "no such host": "postgresql://ann:{secret}@nowhere.invalid/db",
    "a port that is none": "postgresql://ann:{secret}@127.0.0.1:abc/db",
    "an option that is none": "postgresql://ann:{secret}@127.0.0.1/db?colour=red",
    "a password among the options": "postgresql://127.0.0.1:1/db?user=ann&password={secret}",
    "no such driver": "postgresql+nothing://ann:{secret}@127.0.0.1:1/db",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_postgresql_that_is_not_there_is_told_without_the_password(
    case: str, mergeplan: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERGEPLAN_STATE_URL", REFUSED[case].format(secret=SECRET))

    ran = mergeplan("environments")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith("Error: The state database")
    assert SECRET not in ran.err
    assert "defect" not in ran.err


@pytest.mark.parametrize(
    ("user", "database", "told"),
    [
        (f"ann:{SECRET}", "", "password authentication failed"),
        (f"ann:{SECRET}2", "", "permission denied"),
        ("postgres", "none", "does not exist"),
        ("nobody", "", "does not exist"),
    ],
)
def test_a_postgresql_that_refuses_is_told_without_the_password(
    user: str, database: str, told: str, url_with_password: str, mergeplan: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = url_with_password.replace("//postgres:@", f"//{user}@", 1)
    url = url.replace("/db_", f"/{database}_") if database else url
    assert f"//{user}@" in url
    monkeypatch.setenv("MERGEPLAN_STATE_URL", url)

    ran = mergeplan("environments")

    assert (ran.code, ran.out) == (1, "")
    assert told in ran.err
    assert SECRET not in ran.err
    assert "defect" not in ran.err


def test_a_postgresql_that_ends_a_transaction_is_told(new_postgresql: Callable[[], str], postgresql: str) -> None:
    from mergeplan.planner.errors import RequestError
    from mergeplan.planner.state.database import database_time, open_transaction

    with closing(StateStore(new_postgresql())) as store, psycopg.connect(postgresql, autocommit=True) as admin:
        with (
            pytest.raises(RequestError, match="does not answer"),
            open_transaction(store.database.engine) as connection,
        ):
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])
            database_time(connection)

        assert store.environments.all() == ()
