"""mergeplan as a resource: which project, which environment, and how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
from pydantic import Field

from mergeplan.dagster.child import ChildEnded, stream_lines
from mergeplan.dagster.deployment import Deployment, parse_deployment
from mergeplan.dagster.request import Request, Verb, environment_of
from mergeplan.planner.contract.wire import Line, read_line

STATE_URL = "MERGEPLAN_STATE_URL"
LOOKING = 600.0  # seconds for reading the state


class MergeplanResource(dg.ConfigurableResource):
    """Runs mergeplan as a process of its own, which reports in JSON lines; this process never starts Spark."""

    project: str = Field(description="The project's folder.")
    environment: str = Field(
        default="prod", description="The environment; in a branch deployment it is that of the pull request."
    )
    pull_request_environment: str = Field(
        default="pr_{number}", description="The name of a pull request's environment."
    )
    gateway: str | None = Field(default=None, description="The gateway, if not the project's default.")
    python: str = Field(default=sys.executable, description="The Python that mergeplan is installed in.")
    state_url: str | None = Field(
        default=None, description="The address of the state, if config.yaml does not have it."
    )
    variables: dict[str, str] = Field(default={}, description="Further environment variables of the process.")
    execution_time: str | None = Field(default=None, description="Run as of this time, not now; to try things out.")
    timeout_seconds: float | None = Field(default=None, description="Ends a run that takes longer; null: no limit.")
    wait_seconds: float = Field(
        default=3600.0, description="How long to wait for another run of the environment before this one fails."
    )

    @property
    def target_environment(self) -> str:
        """The environment, in a branch deployment that of the pull request."""
        return environment_of(os.environ, self.environment, self.pull_request_environment)

    def read_deployment(self, *, lineage: bool = False) -> Deployment:
        """Read what the environment shows now from the state.

        Raise ChildEnded if there is no state or environment, and ProjectError if that mergeplan is of another version.
        """
        flags = ["--lineage"] if lineage else []
        gateway = ["--gateway", self.gateway] if self.gateway else []
        argv = self._argv("mergeplan.dagster.export", self.target_environment, "--project", ".", *gateway, *flags)
        return parse_deployment("".join(self._stream(argv, lambda _line: None, LOOKING)), self.python)

    def stream(self, request: Request | Verb, on_stderr: Callable[[str], None]) -> Iterator[Line]:
        """Yield the lines of a request as they arrive; raise ChildEnded at their end if the exit code is not 0."""
        gateway = ["--gateway", self.gateway] if self.gateway else []
        at = ["--execution-time", self.execution_time] if self.execution_time and isinstance(request, Request) else []
        argv = self._argv("mergeplan", *request.arguments, *gateway, *at)
        for text in self._stream(argv, on_stderr, self.timeout_seconds):
            if line := read_line(text):
                yield line

    def _argv(self, module: str, *arguments: str) -> list[str]:
        return [self.python, "-P", "-m", module, *arguments]

    def _stream(self, argv: list[str], on_stderr: Callable[[str], None], timeout: float | None) -> Iterator[str]:
        environ = {**os.environ, **self.variables}
        if self.state_url:
            environ[STATE_URL] = self.state_url
        return stream_lines(argv, environ, Path(self.project), on_stderr, timeout)


__all__ = ["ChildEnded", "MergeplanResource"]
