"""Processes to kill: a zygote that forks `mergeplan` children in no time, a warm Spark, and a reader that never stops.

The zygote has everything imported and no thread; each child is a session of its own, so that its whole group can be
killed. A child may be told to kill itself before or after the nth call of a step, which no clock would hit.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import FORMAT
from tests.wire import check_line

ROOT = Path(__file__).parents[2]
PAUSE = 0.3  # seconds between two reads: each is work for the one Spark
IMPORTED = (
    "pyspark.sql.connect.session",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "mergeplan.planner.cli.verbs.adopt",
    "mergeplan.planner.cli.verbs.apply",
    "mergeplan.planner.engine.spark.engine",
    "mergeplan.planner.cli.verbs.environments",
    "mergeplan.planner.cli.verbs.plan",
    "mergeplan.planner.cli.verbs.run",
    "mergeplan.planner.cli.verbs.upkeep",
)
WARM = """
import sys
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.process.warm import serve_warm

small = Connection(conf=(("spark.driver.memory", "900m"), ("spark.sql.shuffle.partitions", "2")), master="local[2]",
    formats=tuple(sys.argv[2:]))
serve_warm(Path(sys.argv[1]), small, profile="metadata", say=lambda line: print(line, flush=True))
"""
READER = """
import json, sys
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine

engine = open_engine(Connection(), Path(sys.argv[1]), wait=0)
query = "SELECT a.v, z.v FROM {0}.a CROSS JOIN {0}.z"
while sys.stdin.readline():
    for schema in sys.argv[2:]:
        try:
            told = [schema, *engine.fetch(query.format(schema)).rows[0]]
        except Exception as error:
            told = [schema, f"{type(error).__name__}: {error}"]
        print(json.dumps(told), flush=True)
"""


@dataclass(frozen=True)
class Step:
    """Where a process kills itself: before or after the nth call of a method, `Promotions.record_steps` for one."""

    method: str
    nth: int
    after: bool


@dataclass
class Ended:
    """How a child ended, and what it had said until then."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def events(self) -> list[dict[str, Any]]:
        """The whole lines that were written."""
        lines = self.out.splitlines(keepends=True)
        return [check_line(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def __str__(self) -> str:
        errors = [f"{event['kind']}: {event['message']}" for event in self.events if event["event"] == "error"]
        return f"exit code {self.code} after {self.seconds:.1f} s: {errors} {self.err[-500:]}"

    @property
    def result(self) -> dict[str, Any]:
        """The last line; it fails when the verb did not come to it."""
        assert self.events, (self.code, self.err)
        assert self.events[-1]["event"] == "result", (self.code, self.err)
        return self.events[-1]


class Zygote:
    """Forks children that run a verb."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.planner.killing"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def call(
        self,
        arguments: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        *,
        clock: tuple[float, int] | None = None,
        step: Step | None = None,
    ) -> Ended:
        """Run a verb to its end, or until it is killed: after so many seconds by a signal, or at a step of its own."""
        assert self._process.stdin
        assert self._process.stdout
        asked: dict[str, Any] = {"arguments": list(arguments), "folder": str(folder), "environ": dict(environ)}
        asked["step"] = step and vars(step)
        began = time.monotonic()
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        timer = threading.Timer(clock[0], _kill, (pid, clock[1])) if clock else None
        if timer:
            timer.start()
        code = int(self._process.stdout.readline())
        took = time.monotonic() - began
        if timer:
            timer.cancel()
            timer.join()
        return Ended(code, (folder / "out").read_text(), (folder / "err").read_text(), took)

    def close(self) -> None:
        self._process.communicate(timeout=300)


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it came to its end first
        os.killpg(pid, number)


class Reader:
    """A process that reads two joined views of each schema again and again."""

    def __init__(self, home: Path, schemas: Sequence[str]) -> None:
        self.reads: list[list[Any]] = []
        self._schemas = len(schemas)
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER, str(home), *schemas],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def start(self) -> None:
        self._thread.start()

    def round(self) -> dict[str, list[Any]]:
        """One read of each schema that begins now: schema -> what it returned."""
        with self._lock:
            assert self._process.stdin
            assert self._process.stdout
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
            told = [json.loads(self._process.stdout.readline()) for _ in range(self._schemas)]
        self.reads += told
        return {call[0]: call[1:] for call in told}

    @property
    def reads_failed(self) -> list[list[Any]]:
        return [read for read in self.reads if len(read) != 3]

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._process.communicate(timeout=300)

    def _loop(self) -> None:
        while not self._stop.wait(PAUSE):
            self.round()


@contextmanager
def warm_spark(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A warm Spark over a folder, while this lasts."""
    formats = [FORMAT] if FORMAT else []
    server = subprocess.Popen(
        [sys.executable, "-c", WARM, str(home), *formats], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        assert server.stdout.readline().startswith("warm Spark ready")
        yield server
    finally:
        server.terminate()
        server.communicate(timeout=300)


@dataclass
class _Counted:
    """A method that kills the process before or after its nth call."""

    step: Step
    calls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, method: Any) -> Any:
        def wrap_call(*arguments: Any, **named: Any) -> Any:
            with self.lock:
                self.calls += 1
                mine = self.calls == self.step.nth
            if mine and not self.step.after:
                os.killpg(0, signal.SIGKILL)
            done = method(*arguments, **named)
            if mine:
                os.killpg(0, signal.SIGKILL)
            return done

        return wrap_call


def _child(asked: dict[str, Any]) -> int:
    """What a fork does: a verb, in a session of its own, with its output in files."""
    from mergeplan.planner.cli.main import VERBS, run
    from mergeplan.planner.engine.spark.sessions import Sessions
    from mergeplan.planner.engine.spark.spark_catalog import SparkCatalog
    from mergeplan.planner.engine.spark.spark_tables import SparkTables
    from mergeplan.planner.state import (
        contents,
        costs,
        environments,
        intervals,
        physical_tables,
        plans,
        promotions,
        restatements,
    )

    killable = (
        Sessions, SparkCatalog, SparkTables, contents.KnownContents, costs.Costs, environments.Environments,
        intervals.Intervals, physical_tables.PhysicalTables, plans.Plans, promotions.Promotions,
        restatements.Restatements,
    )  # fmt: skip
    os.setsid()
    os.chdir(asked["folder"])
    for number, name in ((1, "out"), (2, "err")):
        opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
    os.environ.update(asked["environ"])
    if fields := asked["step"]:
        step = Step(**fields)
        name, _, method = step.method.partition(".")
        owner = {cls.__name__: cls for cls in killable}[name]
        setattr(owner, method, _Counted(step).around(getattr(owner, method)))
    return run(VERBS, [*asked["arguments"], "--output", "json"])


def _serve() -> None:
    for module in IMPORTED:
        importlib.import_module(module)

    for line in sys.stdin:
        asked = json.loads(line)
        if not (pid := os.fork()):
            code = 3
            try:
                code = _child(asked)
                sys.stdout.flush()
            finally:
                os._exit(code)
        _say(pid)
        _say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve()
