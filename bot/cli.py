"""serve, action, sandbox, demo: the bot's verbs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bot.demo import run_demo
from bot.sandbox.server import KEY_FILE, Sandbox, run_sandbox
from bot.service.action import run_action
from bot.service.serve import run_service
from bot.settings import load_settings
from planner.model.model import TABLE_FORMATS


@click.command()
@click.option("--host", help="The address to listen on (MERGEPLAN_HOST).")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on (MERGEPLAN_PORT).")
def serve(host: str | None, port: int | None) -> int:
    """Run the bot as a service; MERGEPLAN_* variables configure it (docs/service.md).

    \b
    MERGEPLAN_WEBHOOK_SECRET=... MERGEPLAN_GITHUB_APP_ID=... \\
    MERGEPLAN_GITHUB_PRIVATE_KEY_PATH=key.pem mergeplan serve --port 8000
    """
    given = {"host": host, "port": port}
    run_service(load_settings({name: value for name, value in given.items() if value is not None}))
    return 0


@click.command()
def action() -> int:
    """Run the bot once for the event in GITHUB_EVENT_PATH, as the Action does (docs/action.md).

    \b
    mergeplan action
    """
    return run_action(os.environ)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8900, show_default=True)
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".sandbox"), show_default=True, help="Its repositories."
)
@click.option("--webhook-url", help="Where webhooks go, for example http://127.0.0.1:8000/webhook.")
@click.option("--secret", default="sandbox-secret", show_default=True, help="What webhooks are signed with.")
def sandbox(host: str, port: int, folder: Path, webhook_url: str | None, secret: str) -> int:
    """Run a GitHub on this machine: git, pull requests, comments, checks, webhooks, and pages to click in.

    \b
    mergeplan sandbox --webhook-url http://127.0.0.1:8000/webhook
    """

    def started(github: Sandbox) -> None:
        click.echo(f"The sandbox is at {github.url}; its App is {github.app_id}, with the key in {folder / KEY_FILE}.")

    run_sandbox(host, port, folder, webhook_url, secret, started=started)
    return 0


@click.command()
@click.option("--keep", is_flag=True, help="Leave everything running at the end, to look and click around.")
@click.option("--folder", type=click.Path(path_type=Path), default=Path(".demo"), show_default=True)
@click.option("--format", "form", type=click.Choice(TABLE_FORMATS), help="The tables' format; parquet files otherwise.")
def demo(keep: bool, folder: Path, form: str | None) -> int:
    """Start a GitHub and the bot on this machine and take two pull requests from plan to prod.

    \b
    mergeplan demo
    mergeplan demo --keep
    mergeplan demo --format delta
    """
    return run_demo(folder, keep=keep, spark=f"table_format: {form}" if form else "")
