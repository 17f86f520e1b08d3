"""The command line driven from outside: arguments and an answer go in, an exit code and two streams come out."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.conftest import empty
from tests.planner.engines import Double
from tests.planner.shop import write_shop
from tests.stores import open_store
from tests.wire import check_line

TODAY = "2026-01-06 05:00:00"
VARIABLES = ("MERGEPLAN_HOME", "MERGEPLAN_STATE_URL", "MERGEPLAN_PROJECT")


@dataclass(frozen=True)
class Ran:
    """How a verb ended and what it said."""

    code: int
    out: str
    err: str
    jobs: int | None = None  # that Spark ran meanwhile, where somebody counted

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON, line by line: it fails when anything else stands there, or not as published."""
        return [check_line(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        """The last line."""
        last = self.lines[-1]
        assert last["event"] == "result"
        return last


class Lent(Double):
    """The test process's one Spark, as a verb may have it: it does not close what is not its own."""

    def close(self) -> None:
        """Whoever lent it closes it."""


@dataclass
class CommandLine:
    """`mergeplan` in a folder; without an engine a verb that asks for Spark fails as our defect, exit code 3."""

    root: Path
    engine: Engine | None = None
    opened: list[str] = field(default_factory=list)  # the profile of each Spark that was asked for

    def __call__(self, *arguments: str, answer: str = "") -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with _input(answer), chdir(self.root), redirect_stdout(out), redirect_stderr(err):
            code = run(VERBS, arguments, self._open)
        return Ran(code, out.getvalue(), err.getvalue())

    @property
    def state(self) -> StateStore:
        """What the verbs remember."""
        return open_store(f"sqlite:///{self.root}/.mergeplan/state.db")

    def write(self, name: str, text: str) -> None:
        """Put a file into the project."""
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file of the project."""
        text = (self.root / name).read_text()
        assert old in text
        (self.root / name).write_text(text.replace(old, new))

    def _open(self, _connection: Connection, _home: Path, profile: str) -> Engine:
        self.opened.append(profile)
        assert self.engine is not None, "Spark was started"
        return Lent(self.engine)


@contextmanager
def _input(answer: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.StringIO(answer)
    try:
        yield
    finally:
        sys.stdin = before


@contextmanager
def clear_tables(engine: SparkEngine) -> Iterator[SparkEngine]:
    """A Spark that has no tables again afterwards."""
    yield engine
    empty(engine)


@pytest.fixture(autouse=True, scope="session")
def own_folders() -> Iterator[None]:
    """The verbs work in the folder of their project, wherever the person at this machine keeps hers."""
    before = {name: os.environ.pop(name) for name in VARIABLES if name in os.environ}
    yield
    os.environ.update(before)


@pytest.fixture
def offline(tmp_path: Path) -> CommandLine:
    """`mergeplan` in an empty folder, where no Spark may be started."""
    return CommandLine(tmp_path)


@pytest.fixture
def shop(tmp_path: Path, engine: SparkEngine) -> Callable[..., CommandLine]:
    """Makes a shop of these files and gives the command line in it."""

    def open_shop(**files: str) -> CommandLine:
        write_shop(tmp_path, **files)
        return CommandLine(tmp_path, engine)

    return open_shop
