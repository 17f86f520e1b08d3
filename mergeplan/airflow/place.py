"""Where a project, its mergeplan and its state are, as a DAG says it. Standard library only; it holds no secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STATE_URL = "MERGEPLAN_STATE_URL"
PROJECT = "MERGEPLAN_PROJECT"


class StateError(RuntimeError):
    """mergeplan's state cannot be read; its text is mergeplan's message, with a hint."""


@dataclass(frozen=True)
class Place:
    """The project's folder on a worker, the command that starts mergeplan there, and the state of an environment.

    `state_conn_id` is an Airflow connection with the state's URL; "": as MERGEPLAN_STATE_URL or config.yaml say.
    `project` is the project's name in the state; None: as config.yaml says. `env` are variables of the command.
    """

    folder: str
    environment: str = "prod"
    command: tuple[str, ...] = ("mergeplan",)
    gateway: str = ""
    state_conn_id: str = ""
    project: str | None = None
    env: tuple[tuple[str, str], ...] = ()

    def argv(self, verb: str, *arguments: str) -> list[str]:
        gateway = ["--gateway", self.gateway] if self.gateway else []
        return [*self.command, verb, *arguments, "--project", self.folder, *gateway]

    def environ(self, state_url: str) -> dict[str, str]:
        """Return the variables of the command, over those of this process."""
        variables = dict(self.env)
        if state_url:
            variables[STATE_URL] = state_url
        if self.project is not None:
            variables[PROJECT] = self.project
        return {**os.environ, **variables}

    def serialize(self) -> dict[str, Any]:
        return {**vars(self), "command": list(self.command), "env": [list(pair) for pair in self.env]}

    @classmethod
    def deserialize(cls, fields: Mapping[str, Any]) -> Place:
        command, env = tuple(fields["command"]), tuple((name, value) for name, value in fields["env"])
        return cls(**{**fields, "command": command, "env": env})
