"""A real `dagster dev`: its webserver, its daemon, and what GraphQL says of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.dagster.scene import PYTHON
from tests.screenshots import take_screenshot
from tests.waiting import wait_for

PROJECT = {
    "pyproject.toml": '[tool.dg]\ndirectory_type = "project"\n\n[tool.dg.project]\nroot_module = "pipeline"\n',
    "pipeline/__init__.py": "",
    "pipeline/definitions.py": "from pathlib import Path\n\nfrom dagster import definitions, load_from_defs_folder\n\n"
    "@definitions\ndef defs():\n    return load_from_defs_folder(path_within_project=Path(__file__).parent)\n",
}
ENDED = ("SUCCESS", "FAILURE", "CANCELED")
LAUNCH = """mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { id } }
    ... on RunConfigValidationInvalid { errors { message } }
    ... on PythonError { message }
  }
}"""
RUN = """query ($id: ID!) {
  runOrError(runId: $id) { ... on Run {
    status
    tags { key value }
    stepStats { stepKey startTime endTime status }
    eventConnection { events {
      __typename
      ... on MessageEvent { message }
      ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } }
      ... on AssetCheckEvaluationEvent { evaluation { success checkName assetKey { path } } }
      ... on MaterializationEvent { assetKey { path } partition }
    } }
  } }
}"""


@dataclass
class DagsterDev:
    """A running `dagster dev`."""

    port: int
    log: Path

    def ask(self, query: str, **variables: Any) -> Any:
        """The data that GraphQL answers."""
        body = {"query": query, "variables": variables}
        answer = httpx.post(f"http://127.0.0.1:{self.port}/graphql", json=body, timeout=120).raise_for_status().json()
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def is_ready(self) -> bool:
        """True when the code location is loaded."""
        try:
            return self.location() is not None
        except (httpx.HTTPError, AssertionError):
            return False

    def location(self) -> dict[str, Any] | None:
        """The repository with its jobs; None before it is loaded."""
        query = (
            "{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } jobs { name }"
            " schedules { name scheduleState { status } } sensors { name } } } } }"
        )
        nodes = self.ask(query)["repositoriesOrError"].get("nodes") or [None]
        node: dict[str, Any] | None = nodes[0]
        return node

    def launch(self, job: str, config: Mapping[str, Any] | None = None, assets: tuple[str, ...] = ()) -> str:
        """Launch a run; its id."""
        node = self.location()
        assert node is not None
        selector: dict[str, Any] = {
            "repositoryLocationName": node["location"]["name"], "repositoryName": node["name"], "jobName": job,
        }  # fmt: skip
        if assets:
            selector |= {"assetSelection": [{"path": name.split(".")} for name in assets], "assetCheckSelection": []}
        answer = self.ask(LAUNCH, params={"selector": selector, "runConfigData": json.dumps(config or {})})["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["id"])

    def picture(self, name: str, path: str, size: tuple[int, int] = (1300, 620)) -> None:
        """A page for the guides, where pictures are to be taken."""
        take_screenshot(f"http://127.0.0.1:{self.port}{path}", name, size)

    def finish(self, id: str, seconds: float = 400) -> dict[str, Any]:
        """A run when it has ended, with its events."""

        def ended() -> dict[str, Any] | None:
            run: dict[str, Any] = self.ask(RUN, id=id)["runOrError"]
            return run if run["status"] in ENDED else None

        run = wait_for(f"the run {id}", ended, seconds)
        run["events"] = run.pop("eventConnection")["events"]
        return run

    def run(self, job: str, config: Mapping[str, Any] | None = None, assets: tuple[str, ...] = ()) -> dict[str, Any]:
        """Launch a run, and wait for its end."""
        return self.finish(self.launch(job, config, assets))


@contextmanager
def start_dagster(folder: Path, home: Path, defs: str, environ: Mapping[str, str]) -> Iterator[DagsterDev]:
    """`dagster dev` of a project with one `defs.yaml`, until the end."""
    files = {**PROJECT, "pipeline/defs/shop/defs.yaml": defs}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [PYTHON.parent / "dagster", "dev", "-m", "pipeline.definitions", "-h", "127.0.0.1", "-p", str(port)]
    path = f"{PYTHON.parent}:{os.environ['PATH']}"
    variables = {**os.environ, **environ, "DAGSTER_HOME": str(home), "PYTHONPATH": str(folder), "PATH": path}
    with (folder / "dev.log").open("w") as log:
        process = subprocess.Popen(argv, cwd=folder, env=variables, stdout=log, stderr=log, start_new_session=True)
        try:
            dev = DagsterDev(port, folder / "dev.log")
            wait_for("dagster dev", dev.is_ready, 200)
            yield dev
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)
