"""Opening a project from Python."""

from __future__ import annotations

import os
from pathlib import Path

from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import OPENLINEAGE_KEY, STATE_URL, settings_of


def open(
    folder: str | Path = ".",
    *,
    gateway: str | None = None,
    state_url: str | None = None,
    execution_time: str | None = None,
) -> Session:
    """Return a session on the project in a folder; use it as a context manager, or `close` it.

    Defaults are those of the command line: MERGEPLAN_STATE_URL, MERGEPLAN_HOME and the project's config.yaml. With an
    `execution_time` every call plans and computes as if it were that moment.
    """
    settings = settings_of(os.environ, Path(folder), gateway, state_url)
    for variable, value in ((STATE_URL, settings.state_url), (OPENLINEAGE_KEY, settings.openlineage_key)):
        if value == "-":
            message = f"{variable} is `-`: only the command line reads standard input."
            raise RequestError(message, hint="Give the value itself.")
    return Session(settings, execution_time)
