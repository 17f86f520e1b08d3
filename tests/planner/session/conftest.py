"""A session on a small shop, with the test process's Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.cli.conftest import TODAY, Lent
from tests.planner.shop import write_shop


def refuse_engine(*_: object) -> Engine:
    """For sessions that need no Spark."""
    raise AssertionError("Spark was started")


@pytest.fixture
def offline(tmp_path: Path) -> Iterator[Session]:
    """A session on the shop, where no Spark may be started."""
    write_shop(tmp_path)
    with Session(SessionSettings(tmp_path, open_engine=refuse_engine), TODAY) as session:
        yield session


@pytest.fixture
def shop(tmp_path: Path, engine: SparkEngine) -> Iterator[Callable[..., Session]]:
    """Makes a shop of these files and gives a session on it."""
    with ExitStack() as opened:

        def open_shop(**files: str) -> Session:
            write_shop(tmp_path, **files)
            settings = SessionSettings(tmp_path, open_engine=lambda *_: Lent(engine))
            return opened.enter_context(Session(settings, TODAY))

        yield open_shop
