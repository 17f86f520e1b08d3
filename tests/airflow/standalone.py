"""A real Airflow in a folder, with its REST API and its database; and a project beside it with a warm Spark."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from tests.screenshots import take_screenshot
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
AIRFLOW = ROOT / ".venv-airflow" / "bin" / "airflow"
COMMAND = [sys.executable, "-m", "mergeplan"]
CONFIG = {
    "CORE__LOAD_EXAMPLES": "False",
    "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "CORE__PARALLELISM": "4",
    "API__HOST": "127.0.0.1",
    "API__WORKERS": "1",
    "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "2",
    "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "CORE__DAGBAG_IMPORT_TIMEOUT": "300",  # a machine that runs other tests is slow
    "WORKERS__EXECUTION_API_TIMEOUT": "120",
    "API__WORKER_TIMEOUT": "300",
    "TRIGGERER__RUNNER_HEALTH_CHECK_THRESHOLD": "300",
    "TRIGGERER__CAPACITY": "2000",
    "USAGE_DATA_COLLECTION__ENABLED": "False",
}


@dataclass
class Airflow:
    """A running Airflow."""

    home: Path
    port: int
    token: str = ""

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of the REST API."""
        base = f"http://127.0.0.1:{self.port}"
        if not self.token:
            self.token = httpx.get(f"{base}/auth/token", timeout=300).raise_for_status().json()["access_token"]
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.request(method, f"{base}/api/v2{path}", json=body, headers=headers, timeout=300)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json() if answer.content else None

    def is_ready(self) -> bool:
        """True when its programs have said that they are there."""
        try:
            health = self.api("GET", "/monitor/health")
        except (httpx.HTTPError, AssertionError):
            return False
        return all(health[part]["status"] == "healthy" for part in ("scheduler", "triggerer", "dag_processor"))

    def trigger(self, dag: str, run: str, logical_date: str | None, **conf: Any) -> None:
        """Begin a DAG run."""
        self.api("POST", f"/dags/{dag}/dagRuns", {"dag_run_id": run, "logical_date": logical_date, "conf": conf})

    def states(self, dag: str, run: str) -> dict[str, str]:
        """Task -> its state."""
        rows = self.api("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances?limit=1000")["task_instances"]
        return {row["task_id"]: row["state"] for row in rows}

    def wait_for_run(self, dag: str, run: str, seconds: float = 600) -> dict[str, str]:
        """The states of the tasks when the DAG run has ended."""

        def has_ended() -> bool:
            return self.api("GET", f"/dags/{dag}/dagRuns/{run}")["state"] in ("success", "failed")

        try:
            wait_for(f"{dag}/{run}", has_ended, seconds)
        finally:
            states = self.states(dag, run)
        return states

    def clear(self, dag: str, run: str, *tasks: str, only_failed: bool = False) -> None:
        """Clear tasks of a DAG run, as the button does."""
        body = {"dry_run": False, "dag_run_id": run, "only_failed": only_failed, "reset_dag_runs": True}
        own = {"task_ids": list(tasks), "include_downstream": False} if tasks else {}
        self.api("POST", f"/dags/{dag}/clearTaskInstances", {**body, **own})

    def result(self, dag: str, run: str, task: str) -> Any:
        """What a task returned."""
        return self.api("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value")["value"]

    def picture(self, name: str, path: str) -> None:
        """A page for the guides, where pictures are to be taken."""
        take_screenshot(f"http://127.0.0.1:{self.port}{path}", name)

    def log(self, dag: str, run: str, task: str) -> str:
        """All that a task's logs say, of all tries."""
        folder = self.home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
        return "\n".join(path.read_text() for path in sorted(folder.glob("*.log")))

    def count(self, table: str) -> int:
        """How many rows a table of its database has."""
        with sqlite3.connect(f"file:{self.home / 'airflow.db'}?mode=ro", uri=True) as database:
            return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@contextmanager
def start_airflow(home: Path, dags: str, variables: Mapping[str, str] = MappingProxyType({})) -> Iterator[Airflow]:
    """An Airflow of its own in a folder with a file of DAGs and variables of its own, until the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "dags").mkdir(parents=True)
    (home / "dags/made.py").write_text(dags)
    own = {**CONFIG, "API__PORT": str(port), "API__BASE_URL": f"http://127.0.0.1:{port}",
           "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/"}  # fmt: skip
    environ = {**os.environ, **variables, "AIRFLOW_HOME": str(home), "PATH": f"{AIRFLOW.parent}:{os.environ['PATH']}"}
    environ |= {f"AIRFLOW__{name}": value for name, value in own.items()}
    environ.pop("MERGEPLAN_SPARK_ARCHIVE", None)
    with (home / "standalone.log").open("w") as log:
        process = subprocess.Popen(
            [AIRFLOW, "standalone"], env=environ, stdout=log, stderr=log, start_new_session=True, cwd=home
        )
        try:
            airflow = Airflow(home, port)
            wait_for("Airflow", airflow.is_ready, 400)
            yield airflow
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)


def mergeplan(folder: Path, *arguments: str) -> str:
    """What a verb prints; a failed test when it fails."""
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fetch(folder: Path, sql: str) -> Sequence[Sequence[str]]:
    """The rows of a query on the project's Spark."""
    return [line.split(",") for line in mergeplan(folder, "fetchdf", sql, "--output", "csv").splitlines()[1:]]


@contextmanager
def warm_spark(folder: Path) -> Iterator[None]:
    """A Spark that the verbs of a project share."""
    process = subprocess.Popen(
        [*COMMAND, "warm"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()
