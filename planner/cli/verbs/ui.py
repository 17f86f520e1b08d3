"""ui: the server of `/api/v1` and its pages, over one project."""

import os
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.workspace import settings, workspace
from mergeplan.planner.isolation.system import hide_process

MODES = ("catalog", "plan", "all")


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The host to listen on; any other needs tokens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any that is free.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="all",
    show_default=True,
    help="Only the catalog; plans and diffs too; or all, with applying, runs and rollbacks.",
)
@click.option("--edit", is_flag=True, help="Let files of the project be written.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="How many jobs run at once.")
@click.option("--keep", type=click.IntRange(1, 100_000), default=200, show_default=True, help="Jobs that are kept.")
@click.option("--env", "passed", multiple=True, metavar="NAME", help="An environment variable that jobs see too.")
@workspace
def ui(root: Path, gateway: str | None, **option_values: Any) -> int:
    """Serve the project's catalog, environments and plans over HTTP, until it is stopped.

    \b
    mergeplan ui
    mergeplan ui --port 9000 --mode catalog
    MERGEPLAN_API_READ_TOKEN=... mergeplan ui --host 0.0.0.0
    """
    project = settings(root, gateway)
    from mergeplan.planner.api import access, app, opening, serving
    from mergeplan.planner.api.jobs.store import JobLimits
    from mergeplan.planner.ui.routes import make_pages

    tokens = access.read_tokens(os.environ)
    hide_process()  # project code may run as the same user
    for name in access.token_variables():
        os.environ.pop(name, None)
    rules = access.Access(access.Mode(option_values["mode"]), option_values["host"], tokens)
    listener = serving.open_socket(option_values["host"], option_values["port"])
    with listener:
        limits = JobLimits(running=option_values["jobs"], kept=option_values["keep"])
        context = opening.open_context(
            project, rules, dict(os.environ), edit=option_values["edit"], passed=option_values["passed"], limits=limits
        )
        address = listener.getsockname()
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        click.echo(f"http://{host}:{address[1]}/")
        serving.serve_app(app.create_app(context, make_pages()), listener)
    return 0
