"""The project of a verb: its options, settings from the environment and standard input, and its signals."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from mergeplan.planner.apply.events import Emit
from mergeplan.planner.cli.texts.unfinished_text import print_to_stderr
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.system import hide_process
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.settings import OPENLINEAGE_KEY, STATE_URL, SessionSettings, settings_of
from mergeplan.planner.session.use_cases.cancelling import cancel_on_signals
from mergeplan.planner.session.workspace import Workspace

P = ParamSpec("P")
R = TypeVar("R")


def workspace(command: Callable[P, R]) -> Callable[P, R]:
    folder = click.Path(path_type=Path)
    command = click.option("--gateway", help="The gateway to use instead of the project's default.")(command)
    where = click.option(
        "-p", "--project", "root", type=folder, multiple=True, callback=_one_folder, help="The project's folder."
    )
    return where(command)


def _one_folder(context: click.Context, option: click.Parameter, paths: tuple[Path, ...]) -> Path:
    """Return the folder; raise UsageError for several, because the last one's plan would remove the others' models."""
    if len(paths) > 1:
        hint = "Plan each by itself, with `project: NAME` in its config.yaml; tables of other projects are external."
        raise click.UsageError(f"`-p` is given twice: one project is planned at a time. {hint}")
    return paths[0] if paths else Path()


def settings(root: Path, gateway: str | None) -> SessionSettings:
    """Return the settings of a project from the environment; raise RequestError if its folder is none.

    Values that may hold a password are removed from there, because project code runs as the same user. `-` means a
    line of standard input, in the order of these names.
    """
    if not root.is_dir():
        raise RequestError(f"There is no folder `{root}`.")
    options = settings_of(os.environ, root, gateway)
    if options.state_url or options.openlineage_key:
        hide_process()  # project code of another run may run as the same user
    os.environ.pop(STATE_URL, "")
    os.environ.pop(OPENLINEAGE_KEY, "")
    url, key = (sys.stdin.readline().strip() if v == "-" else v for v in (options.state_url, options.openlineage_key))
    return replace(options, state_url=url, openlineage_key=key)


@contextmanager
def open_workspace(
    root: Path,
    gateway: str | None,
    profile: str = "metadata",
    execution_time: str | None = None,
    *,
    on_event: Emit = print_to_stderr,
    only_looks: bool = False,
) -> Iterator[Workspace]:
    """Open the workspace of a folder, now or at another moment; raise RequestError if it is no folder.

    A promotion that a crash interrupted is finished when the state is first used; a verb that `only_looks` leaves it
    and reports it. `cli.main.run` may pass the function that opens Spark. SIGINT and SIGTERM end what Spark is doing,
    and with it the verb. SIGUSR1 does so too, except for work that a Spark Connect server continues.
    """
    context = click.get_current_context()
    workspace_settings, open_engine = settings(root, gateway), context.obj
    if open_engine is not None:
        workspace_settings = replace(workspace_settings, open_engine=open_engine)
    opened_at = datetime.now(UTC)
    at = parse_moment(execution_time, opened_at) or opened_at
    work = Workspace(workspace_settings, profile, at, on_event, only_looks)
    ending = cancel_on_signals(work.cancel, (signal.SIGINT, signal.SIGTERM))
    with ending, cancel_on_signals(work.leave, (signal.SIGUSR1,)), closing(work):
        yield work
