"""serve, action, app_manifest, replay, sandbox, demo: the bot's verbs."""

import json
import os
import webbrowser
from dataclasses import replace
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import click

from mergeplan.bot.service.action import run_action
from mergeplan.bot.service.register_app import Registration, register_app
from mergeplan.bot.service.replay import post_delivery, read_stored, rehearse_delivery
from mergeplan.bot.service.serve import run_service
from mergeplan.bot.settings import load_settings
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.versions import mergeplan_version


@click.command()
@click.option("--host", help="The address to listen on (MERGEPLAN_HOST).")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on (MERGEPLAN_PORT).")
def serve(host: str | None, port: int | None) -> int:
    """Run the bot as a service; MERGEPLAN_* variables configure it (docs/reference/settings.md).

    \b
    MERGEPLAN_WEBHOOK_SECRET=... MERGEPLAN_GITHUB_APP_ID=... \\
    MERGEPLAN_GITHUB_PRIVATE_KEY_PATH=key.pem mergeplan serve --port 8000
    """
    options = {"host": host, "port": port}
    run_service(load_settings({name: value for name, value in options.items() if value is not None}))
    return 0


@click.command()
def action() -> int:
    """Run the bot once for the event in GITHUB_EVENT_PATH, as the Action does (docs/guides/action.md).

    \b
    mergeplan action
    """
    return run_action(os.environ)


@click.command("app_manifest")
@click.option("--webhook-url", required=True, help="The address for the App's webhooks: https://your-host/webhook.")
@click.option("--name", default="mergeplan", show_default=True, help="The App's name; GitHub lets you change it.")
@click.option("--organization", default="", help="The organization that owns it; without one it is your own.")
@click.option("--public", is_flag=True, help="Others may install it too.")
@click.option("--api-url", default="", help="The API of a GitHub of your own (MERGEPLAN_GITHUB_API_URL).")
@click.option("--key-file", type=click.Path(path_type=Path), default=Path("app.private-key.pem"), show_default=True)
@click.option("--env-file", type=click.Path(path_type=Path), default=Path("mergeplan.env"), show_default=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port of this machine's page; default: a free one."
)
@click.option("--timeout", type=click.IntRange(1), default=900, show_default=True, help="Seconds to wait for you.")
@click.option("--no-browser", is_flag=True, help="Print the page's address and open no browser.")
@click.option("--print", "show", is_flag=True, help="Print the manifest and do nothing.")
def app_manifest(webhook_url: str, show: bool, no_browser: bool, port: int, timeout: int, **options: Any) -> int:
    """Register the GitHub App in a browser; its key and webhook secret go into files that only you can read.

    \b
    mergeplan app_manifest --webhook-url https://bot.example/webhook
    mergeplan app_manifest --webhook-url https://bot.example/webhook --organization acme
    """
    options["variables_file"] = options.pop("env_file")
    registration = Registration(webhook_url=webhook_url, **options)
    manifest = registration.build_manifest("http://127.0.0.1/callback")
    if show:
        click.echo(json.dumps(manifest, indent=2))
        return 0
    settings = load_settings()
    api_url = (registration.api_url or settings.github_api_url).rstrip("/")
    registration = replace(registration, api_url=api_url, api_version=settings.github_api_version)

    def open_page(address: str) -> None:
        click.echo(f"Register the App at {address}")
        if not no_browser:
            webbrowser.open(address)

    app = register_app(registration, port, open_page, timeout)
    click.echo(f"{app.slug} is registered as App {app.app_id}; its key is in {registration.key_file}.")
    click.echo(f"Install it: {app.page}/installations/new")
    click.echo(f"Start the service with the variables in {registration.variables_file}.")
    return 0


@click.command()
@click.argument("event", type=click.Path(path_type=Path))
@click.option("--event", "name", default="", help="The event's name (X-GitHub-Event), if the file does not have it.")
@click.option("--guid", default="", help="The delivery's id; a new one if the file does not have it.")
@click.option("--send", is_flag=True, help="Send it to the service, signed. Without this option nothing is sent.")
@click.option("--url", default="", help="The service's /webhook; default: MERGEPLAN_HOST and MERGEPLAN_PORT.")
def replay(event: Path, name: str, guid: str, send: bool, url: str) -> int:
    """Say what the service would do with a stored webhook, or send it to the service.

    \b
    mergeplan replay delivery.json
    mergeplan replay payload.json --event pull_request --send
    """
    settings, stored = load_settings(), read_stored(event, name, guid)
    if send:
        answer, ok = post_delivery(settings, stored, url)
        click.echo(answer)
        return 0 if ok else 1
    lines, ok = rehearse_delivery(settings, stored)
    click.echo("\n".join([*lines, "Nothing was done; `--send` hands it to the service."]))
    return 0 if ok else 1


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8900, show_default=True)
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".sandbox"), show_default=True, help="Its repositories."
)
@click.option("--webhook-url", help="The address for webhooks, for example http://127.0.0.1:8000/webhook.")
@click.option("--secret", default="sandbox-secret", show_default=True, help="The secret that signs webhooks.")
def sandbox(host: str, port: int, folder: Path, webhook_url: str | None, secret: str) -> int:
    """Run a GitHub on this machine: git, pull requests, comments, checks, webhooks, and pages to click in.

    \b
    mergeplan sandbox --webhook-url http://127.0.0.1:8000/webhook
    """

    server = _import_extra("sandbox", "mergeplan_sandbox.server")

    def announce_sandbox(github: Any) -> None:
        click.echo(
            f"The sandbox is at {github.url}; its App is {github.app_id}, with the key in {folder / server.KEY_FILE}."
        )

    server.run_sandbox(host, port, folder, webhook_url, secret, on_start=announce_sandbox)
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
    module = _import_extra("demo", "mergeplan_sandbox.demo")
    return int(module.run_demo(folder, keep=keep, spark=f"table_format: {form}" if form else ""))


def _import_extra(verb: str, module: str) -> Any:
    """Return a module that needs `mergeplan[demo]`; raise RequestError if it is missing or of another version."""
    installed = next((item.version for item in distributions(name="mergeplan-sandbox")), None)
    if installed != mergeplan_version():  # `pip install --upgrade mergeplan` leaves an extra's packages as they are
        reason = f", and `mergeplan-sandbox` is {installed} beside mergeplan {mergeplan_version()}" if installed else ""
        raise RequestError(
            f"`mergeplan {verb}` needs the packages of `mergeplan[demo]`{reason}.",
            hint=f"Run `pip install 'mergeplan[demo]'`, or without installing it `uvx 'mergeplan[demo]' {verb}`.",
        )
    return import_module(module)
