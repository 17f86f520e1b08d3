"""`mergeplan ui` as a process: where it listens, what it refuses, and what outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.planner.shop import write_shop

MERGEPLAN = (sys.executable, "-m", "mergeplan.planner.cli.main")


@contextmanager
def start_server(root: Path, *options: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of its own, and its address."""
    environment = {**os.environ, "MERGEPLAN_CACHE": "off", **variables}
    arguments = [*MERGEPLAN, "ui", "--port", "0", "-p", str(root), *options]
    server = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with server:
        try:
            assert server.stdout
            line = server.stdout.readline()
            assert line.startswith("http://"), server.communicate()
            yield server, line.strip().rstrip("/")
        finally:
            server.kill()


def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with start_server(tmp_path, "--mode", "catalog") as (server, address):
        meta = httpx.get(f"{address}/api/v1/meta", timeout=60).json()
        headers = httpx.get(f"{address}/api/v1/models", timeout=60).headers
        second = subprocess.run(
            [*MERGEPLAN, "ui", "--port", "0", "-p", str(tmp_path)], capture_output=True, text=True, check=False
        )
        server.send_signal(signal.SIGTERM)
        code = server.wait(30)

    assert (meta["mode"], meta["models"], code) == ("catalog", 5, 0)
    assert "server" not in headers
    assert second.returncode == 4 and "Another `mergeplan ui` serves this project" in second.stderr


def test_tokens_are_read_and_taken_out_of_the_environment(tmp_path: Path) -> None:
    write_shop(tmp_path)
    token = "t" * 32
    with start_server(tmp_path, "--host", "127.0.0.2", MERGEPLAN_API_READ_TOKEN=token) as (_server, address):
        without = httpx.get(f"{address}/api/v1/meta", timeout=60)
        allowed = httpx.get(f"{address}/api/v1/meta", headers={"Authorization": f"Bearer {token}"}, timeout=60)

    assert (without.status_code, allowed.status_code, allowed.json()["scope"]) == (401, 200, "read")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "0.0.0.0"), "there is no token"),  # noqa: S104 - refused
        (("--host", "203.0.113.7"), "there is no token"),
        (("--host", "127.0.0.1", "--port", "1"), "cannot listen"),
    ],
)
def test_where_it_cannot_listen_it_says_so(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    write_shop(tmp_path)
    if os.geteuid() == 0 and "--port" in options:
        pytest.skip("root may listen on every port")
    ended = subprocess.run(
        [*MERGEPLAN, "ui", "-p", str(tmp_path), *options], capture_output=True, text=True, check=False, timeout=60
    )

    assert ended.returncode == 1 and message in ended.stderr and "Traceback" not in ended.stderr


def test_a_plan_imports_nothing_of_the_server(tmp_path: Path) -> None:
    write_shop(tmp_path)
    code = (
        "import sys\nfrom mergeplan.planner.cli.main import VERBS, run\n"
        f"code = run(VERBS, ['plan', '--no-prompts', '-p', {str(tmp_path)!r}])\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('fastapi', 'uvicorn', 'starlette')"
        " or name.startswith('mergeplan.planner.api')], code)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines()[-1] == "[] 0"


@pytest.mark.prove
def test_a_server_that_is_killed_in_an_apply_loses_nothing(tmp_path: Path) -> None:
    write_shop(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text().replace("start: 2026-01-01", "start: 2 days ago"))
    with start_server(tmp_path) as (server, address), httpx.Client(base_url=f"{address}/api/v1", timeout=120) as client:
        plan = client.post("/plans", json={"environment": "prod"}).json()["id"]
        while client.get(f"/plans/{plan}").json()["status"] in ("waiting", "running"):
            time.sleep(0.2)
        job = client.post(f"/plans/{plan}/apply", json={"note": "by hand"}).json()["id"]
        last = follow(client, job, until="table")
        server.kill()
        server.wait()
    with start_server(tmp_path) as (_, address), httpx.Client(base_url=f"{address}/api/v1", timeout=300) as client:
        followed = follow(client, job, last)
        ended = client.get(f"/jobs/{job}").json()
        history = client.get("/environments/prod/history").json()["revisions"]

    assert followed > last
    assert (ended["status"], ended["result"]["applied"]) == ("done", True)
    assert [(row["revision"], row["note"]) for row in history] == [(1, "by hand")]


def follow(client: httpx.Client, job: str, last: int = 0, until: str = "") -> int:
    """The id of the last event that came: the first of a name, or the end. Each id is the next one."""
    with client.stream("GET", f"/jobs/{job}/events", headers={"Last-Event-ID": str(last)}) as stream:
        for line in stream.iter_lines():
            if line.startswith("id: "):
                assert int(line[4:]) > last
                last = int(line[4:])
            if line.startswith("data: ") and until and json.loads(line[6:])["event"] == until:
                break
    return last
