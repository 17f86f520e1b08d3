"""The quickstart on what teams run Spark on, and a kill in the middle of a promotion there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.open_session import open_session
from mergeplan.planner.engine.spark.process.java import Profile
from mergeplan.planner.errors import RequestError, SparkUnavailable
from tests.planner import runtimes
from tests.planner.runtimes import ROOT, TOKEN, Runtime, write_shop

pytestmark = pytest.mark.prove


@pytest.fixture(params=["run_in_process", "derby", "hive_on_postgresql", "cluster", "connect_server"])
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runtime]:
    """Each of them, while a test lasts."""
    with ExitStack() as stack:
        if request.param == "hive_on_postgresql":
            url = request.getfixturevalue("postgresql")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE DATABASE metastore")
            folder = parse_qs(urlsplit(url).query)["host"][0]
            try:
                yield stack.enter_context(runtimes.hive_on_postgresql(tmp_path, Path(folder) / ".s.PGSQL.5432"))
            except RequestError as error:
                pytest.skip(f"no jar: {error}")
            return
        made = getattr(runtimes, request.param)(tmp_path)
        yield stack.enter_context(nullcontext(made) if isinstance(made, Runtime) else made)


def step(name: str, folder: Path, runtime: Runtime) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.planner.runtimes", name, str(folder)],
        cwd=ROOT, env={**os.environ, **runtime.environ, "MERGEPLAN_SPARK_PROFILE": "metadata"},
        capture_output=True, text=True, timeout=900, check=False, start_new_session=True,
    )  # fmt: skip


def json_output(done: subprocess.CompletedProcess[str]) -> list[Any]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_quickstart_runs_and_a_killed_promotion_is_finished(
    runtime: Runtime, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    shop = tmp_path / "shop"
    write_shop(shop, runtime)

    told = json_output(step("quickstart", shop, runtime))
    killed = step("kill", shop, runtime)
    after = json_output(step("after", shop, runtime))
    one_by_one, atomic = json_output(step("window", shop, runtime))
    sys.stderr.write(f"\n{request.node.name}: {one_by_one}, {atomic}\n")

    assert told == [
        ["built", 7, 3, ["prod"], {}],
        ["tried", 7, 3, ["dev", "prod"], {}],
        ["promoted", 7, 4, ["dev", "prod"], {"batches": 0, "jobs": 0}],
        ["rolled back", 7, 3, ["dev", "prod"], {"jobs": 0}],
    ]
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert after == [["after the kill", 7, 5, ["dev", "prod"], {}]]
    assert atomic[1] == 0, "a reader saw two revisions in an atomic promotion"


def test_a_wrong_token_is_refused_and_is_in_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with runtimes.connect_server(tmp_path) as runtime:
        monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", runtime.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"])
        remote = runtime.spark.split('"')[1].partition("{{")[0]

        with pytest.raises(SparkUnavailable) as refused:
            open_session(Connection(remote=f"{remote}wrong-{TOKEN}"), tmp_path, Profile.METADATA)
        with pytest.raises(RequestError, match="was started without Delta") as lacking:
            open_session(Connection(remote=f"{remote}{TOKEN}", formats=("delta",)), tmp_path, Profile.METADATA)

    assert TOKEN not in str(refused.value)
    assert TOKEN not in str(lacking.value)
