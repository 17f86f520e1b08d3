"""What schedulers ask of a project's state from Python."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from mergeplan.planner.contract.schedule import Schedule
from mergeplan.planner.session.scheduling.schedule import make_schedule
from mergeplan.planner.session.settings import SessionSettings, settings_of
from mergeplan.planner.session.state_access import open_state
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name


def read_schedule(
    folder: str | Path = ".",
    *,
    environment: str = PROD,
    gateway: str | None = None,
    state_url: str | None = None,
    project: str | None = None,
) -> Schedule:
    """Return the models that an environment shows with parents, cron, columns and tables, from the state alone.

    With `state_url` and `project`, its name in the state, no file is read and no variable of config.yaml resolved.
    Otherwise config.yaml says where the state is. Raise RequestError if the environment does not exist.
    """
    settings = _resolve_settings(folder, gateway, state_url)
    with open_state(settings, project) as store:
        return make_schedule(store, parse_environment_name(environment))


def _resolve_settings(folder: str | Path, gateway: str | None, state_url: str | None) -> SessionSettings:
    settings = settings_of(os.environ, Path(folder), gateway)
    return settings if state_url is None else replace(settings, state_url=state_url)
