"""A server over a small project in the test's own process, and jobs that stand in for a `mergeplan`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from mergeplan.planner.api.access import Access
from mergeplan.planner.api.app import create_app
from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.jobs.child import Launch
from mergeplan.planner.api.jobs.store import JobLimits
from mergeplan.planner.api.opening import open_context
from mergeplan.planner.session.settings import SessionSettings

LOCAL = "http://localhost:8080"
FINAL = {"done", "failed", "refused", "cancelled", "interrupted"}


@contextmanager
def serve(
    root: Path,
    access: Access | None = None,
    *,
    edit: bool = False,
    command: tuple[str, ...] | None = None,
    limits: JobLimits | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[tuple[TestClient, ApiContext]]:
    """A client of a server over the project in a folder; its jobs are `command`, or a `mergeplan`."""
    settings = SessionSettings(root)
    variables = dict(os.environ if environ is None else environ)
    context = open_context(settings, access or Access(), variables, edit=edit, limits=limits)
    if command:
        context.jobs._launch = replace(Launch(settings, variables), command=command)
    with TestClient(create_app(context), base_url=LOCAL) as client:
        yield client, context


def fake_job(*lines: str, after: str = "") -> tuple[str, ...]:
    """A program in place of `mergeplan`: it prints these lines, and then runs this Python."""
    code = f"import sys, time, signal\nfor line in {lines!r}: print(line, flush=True)\n{after}"
    return (sys.executable, "-I", "-c", code)


def wait_for(client: TestClient, address: str, seconds: float = 120.0) -> dict[str, Any]:
    """The job at an address, when it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        job: dict[str, Any] = client.get(address).json()
        if job["status"] in FINAL:
            return job
        time.sleep(0.05)
    raise AssertionError(f"{address} is still {job['status']}")


def wait_until(client: TestClient, address: str, status: str, seconds: float = 60.0) -> dict[str, Any]:
    """The job at an address, as soon as it has a status."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        job: dict[str, Any] = client.get(address).json()
        if job["status"] == status:
            return job
        time.sleep(0.05)
    raise AssertionError(f"{address} is still {job['status']}")
