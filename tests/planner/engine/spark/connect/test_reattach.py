"""A write on a Spark Connect server goes on when its client is killed, and another client waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mergeplan.planner.engine.protocol import Connection, Operation
from mergeplan.planner.engine.spark.connect.connect_session import session_url
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.engine.spark.session import USER
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import Cancelled, QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.semantics.spark.spark_settings import DEFAULTS

NAME = "phys.slow"
FORMAT = os.environ.get("MERGEPLAN_TABLE_FORMAT") or "parquet"  # what `make prove-lakehouse` lays tables out in
TABLE = Table(NAME, (Column("g", "bigint"), Column("n", "bigint")), format=FORMAT)
# Some seconds: so long that a client is killed within them.
COUNTED = "count(DISTINCT sqrt(a.id * b.id))"
ROWS = f"SELECT a.id % 3 AS g, {COUNTED} AS n FROM range({{size}}) a CROSS JOIN range(90) b GROUP BY 1"
LONG = 400_000  # a minute: what is not ended ends by itself
SLOW, QUICK = ROWS.format(size=20_000), ROWS.format(size=10)

CLIENT = """
import json, sys, time
from dataclasses import astuple
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine
from tests.planner.engine.spark.connect.test_reattach import TABLE, Noted

class Telling(Noted):
    def begin(self, asked, operation):
        super().begin(asked, operation)
        print(json.dumps([asked, *astuple(operation)]), flush=True)

remote, conf, sql = json.loads(sys.argv[1])
engine = open_engine(Connection(conf=tuple(map(tuple, conf)), remote=remote), Path(sys.argv[2]))
with engine.reattaching(Telling()):
    engine.tables.replace(TABLE, sql)
print("written", flush=True)
time.sleep(60)
"""


@dataclass
class Noted:
    """What is written down of operations, in memory."""

    known: dict[str, Operation] = field(default_factory=dict)
    begun: list[Operation] = field(default_factory=list)
    awaited: int = 0
    repeated: int = 0

    def take_leftover(self, request_key: str) -> Operation | None:
        return self.known.pop(request_key, None)

    def begin(self, request_key: str, operation: Operation) -> None:
        self.begun.append(operation)

    def report_resumed(self) -> None:
        self.awaited += 1

    def report_repeated(self) -> None:
        self.repeated += 1


def settings(engine: SparkEngine) -> tuple[tuple[str, str], ...]:
    """Those of the server that change results: a client has to name them."""
    return tuple((key, value) for key, value in engine._shared.server().conf if key in DEFAULTS)


@pytest.fixture
def client(engine: SparkEngine, tmp_path: Path) -> Iterator[SparkEngine]:
    """A client of a Spark Connect server on which the table stands."""
    client = open_engine(Connection(conf=settings(engine), remote=engine._shared.server().url), tmp_path)
    client.tables.create(TABLE)
    yield client
    client.close()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something of Spark's, some minutes at most."""
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def kill_write(engine: SparkEngine, home: Path, sql: str, *, when: str = "") -> tuple[str, Operation]:
    """The write of a client that was killed while it ran, or after it had printed a line."""
    request = json.dumps([engine._shared.server().url, settings(engine), sql])
    # Only this write may run: one of an earlier test that was ended before Spark had begun it goes on.
    context = engine._shared.spark.sparkContext
    running = context.statusTracker().getActiveJobsIds
    context.cancelAllJobs()
    wait_until(lambda: not running())
    argv = [sys.executable, "-c", CLIENT, request, str(home)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[5]) as child:
        assert child.stdout is not None
        asked, *ids = json.loads(child.stdout.readline())
        while when and child.stdout.readline().strip() != when:
            pass
        if not when:
            wait_until(lambda: bool(running()))
        child.kill()
    return asked, Operation(*ids)


def holds(engine: SparkEngine, operation: Operation) -> bool:
    """True when the table shows what that operation wrote, as far as its format tells."""
    rows = engine.fetch(f"DESCRIBE TABLE EXTENDED {NAME}").rows
    place = next(row[1] for row in rows if row[0] == "Location")
    return FORMAT != "parquet" or bool(place.endswith(operation.id.replace("-", "")))


def status(engine: SparkEngine, operation: Operation) -> str:
    """What the server says of an operation; '' when it knows none of that name."""
    service: Any = engine._shared.gateway.jvm.org.apache.spark.sql.connect.service
    key = service.ExecuteKey(USER, operation.session, operation.id)
    server = getattr(getattr(service, "SparkConnectService$"), "MODULE$")
    holder = server.executionManager().getExecuteHolder(key)
    return str(holder.get().eventsManager().status()) if holder.isDefined() else ""


@pytest.mark.prove
def test_a_write_whose_client_was_killed_is_waited_for(
    engine: SparkEngine, client: SparkEngine, tmp_path: Path
) -> None:
    asked, operation = kill_write(engine, tmp_path, SLOW)
    noted = Noted({asked: operation})
    with client.reattaching(noted):
        written = client.tables.replace(TABLE, SLOW)
    assert (noted.awaited, noted.repeated, noted.begun, written.rows) == (1, 0, [], 3)
    assert holds(client, operation)
    assert client.fetch(f"SELECT g FROM {NAME} ORDER BY g").rows == ((0,), (1,), (2,))


@pytest.mark.prove
def test_a_write_that_the_server_does_not_know_is_begun(client: SparkEngine) -> None:
    session = str(uuid4())
    noted = Noted()
    with client.reattaching(noted):
        client.tables.replace(TABLE, QUICK)
    gone = Operation(noted.begun[0].server, session, str(uuid4()))
    again = _Always(gone)
    with client.reattaching(again):
        assert client.tables.replace(TABLE, QUICK).rows == 3
    assert (again.awaited, again.repeated, len(again.begun)) == (1, 1, 1)
    assert holds(client, again.begun[0])


def test_only_just_the_same_write_is_waited_for(client: SparkEngine) -> None:
    asked: list[str] = []
    noted = Noted()
    noted.take_leftover = lambda text: asked.append(text)  # type: ignore[method-assign,return-value]
    with client.reattaching(noted):
        for sql in (QUICK, QUICK, f"{QUICK} LIMIT 1"):
            client.tables.replace(TABLE, sql)
    assert asked[0] == asked[1] != asked[2]
    assert len({operation.id for operation in noted.begun}) == 3


def test_cancelling_ends_a_write_that_another_client_began(
    engine: SparkEngine, client: SparkEngine, tmp_path: Path
) -> None:
    asked, operation = kill_write(engine, tmp_path, ROWS.format(size=LONG))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_replace_rows, client, Noted({asked: operation}), ROWS.format(size=LONG))
        while not client.goes_on and not waiting.done():
            threading.Event().wait(0.05)
        threading.Event().wait(1.0)
        client.cancel()
        with pytest.raises(Cancelled):
            waiting.result()
    assert not client.goes_on


@pytest.mark.prove
def test_a_write_for_which_nobody_waits_is_ended(engine: SparkEngine, client: SparkEngine, tmp_path: Path) -> None:
    asked, operation = kill_write(engine, tmp_path, ROWS.format(size=LONG))
    client.end_operation(operation)
    noted = Noted({asked: operation})
    with client.reattaching(noted):  # it ended badly, so that it is written anew
        with pytest.raises(QueryError):
            client.tables.replace(TABLE, "SELECT 1 AS nothing_of_it")
        client.tables.replace(TABLE, QUICK)
    assert len(noted.begun) == 2
    assert holds(client, noted.begun[-1])


def test_a_write_that_is_ended_has_ended_once_that_is_said(
    engine: SparkEngine, client: SparkEngine, tmp_path: Path
) -> None:
    _, operation = kill_write(engine, tmp_path, ROWS.format(size=LONG))
    before = status(engine, operation)
    client.end_operation(operation)
    assert (before, status(engine, operation)) in {("ReadyForExecution", after) for after in ("Canceled", "Closed", "")}


def test_a_warm_spark_outlasts_nobody(engine: SparkEngine, client: SparkEngine) -> None:
    assert client.outlasts
    assert not engine.outlasts
    noted = Noted()
    with engine.reattaching(noted):
        engine.tables.replace(TABLE, QUICK)
    assert noted.begun == []


@pytest.mark.parametrize("remote", ["sc://here", "sc://here/", "sc://here/;session_id=old"])
def test_an_address_leads_to_one_session(remote: str) -> None:
    assert session_url(remote, "new") == "sc://here/;session_id=new"
    assert session_url("sc://here:1/;use_ssl=true;token=t", "new") == "sc://here:1/;use_ssl=true;token=t;session_id=new"


def _replace_rows(client: SparkEngine, noted: Noted, sql: str) -> None:
    with client.reattaching(noted):
        client.tables.replace(TABLE, sql)


class _Always(Noted):
    def __init__(self, operation: Operation) -> None:
        super().__init__()
        self.operation = operation

    def take_leftover(self, request_key: str) -> Operation | None:
        return self.operation
