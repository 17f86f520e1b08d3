"""Fifty readers at once while a job computes tables: each gets its answer, and none waits for a lock of the state."""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.planner.api.serving import FINAL
from tests.planner.shop import write_shop

pytestmark = [pytest.mark.prove, pytest.mark.timeout(1800)]
READERS = 50
DAILY = (  # a batch each two weeks
    "MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 14));\n"
    "SELECT id, day, price FROM shop.items WHERE day BETWEEN @start_date AND @end_date"
)
PATHS = (
    "/api/v1/models", "/api/v1/models/shop.daily", "/api/v1/environments", "/api/v1/jobs", "/api/v1/meta", "/",
    "/models/shop.daily", "/lineage?focus=shop.daily", "/environments", "/plans",
)  # fmt: skip


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[str]:
    write_shop(tmp_path, daily=DAILY)
    command = [sys.executable, "-m", "mergeplan.planner.cli.main", "ui", "--port=0", f"--project={tmp_path}"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip().rstrip("/")
        process.terminate()


def wait_for(client: httpx.Client, place: str) -> dict[str, object]:
    while True:
        job: dict[str, object] = client.get(place).json()
        if job["status"] in FINAL:
            return job
        time.sleep(0.3)


def test_each_of_fifty_readers_is_answered_while_a_backfill_runs(server: str) -> None:
    client = httpx.Client(base_url=server, timeout=600)
    plan = client.post("/api/v1/plans", json={"environment": "prod"}).headers["location"]
    assert wait_for(client, plan)["status"] == "done"
    job = client.post(f"{plan}/apply", json={}).headers["location"]
    over, answers = threading.Event(), list[tuple[float, int, str]]()

    def read(number: int) -> None:
        with httpx.Client(base_url=server, timeout=600) as reader:
            turn = number
            while not over.is_set():
                began, path = time.monotonic(), PATHS[turn % len(PATHS)]
                answer = reader.get(path, headers={"Accept": "*/*"})
                text = answer.text if answer.status_code != 200 or "locked" in answer.text else ""
                answers.append((time.monotonic() - began, answer.status_code, f"{path}: {text[:300]}"))
                turn += 1
                over.wait(0.5)  # a person reads

    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    applied = wait_for(client, job)
    over.set()
    for thread in threads:
        thread.join()
    seconds = sorted(seconds for seconds, _, _ in answers)
    p95 = statistics.quantiles(seconds, n=20)[-1]
    sys.stderr.write(f"\n{len(answers)} answers, median {statistics.median(seconds):.3f} s, p95 {p95:.3f} s\n")

    assert applied["status"] == "done"
    assert len(answers) >= READERS
    assert not [text for _, status, text in answers if status != 200 or "locked" in text]
