"""run: what has come due since, computed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from planner.cli.json_lines import JsonLines
from planner.cli.plan import execution_time_option, output_option
from planner.cli.running import LEASE_WAIT, Output, Wanted, catch_up, run_of, told, unapplied
from planner.cli.terminal import Terminal
from planner.cli.workspace import Workspace, moment, opened, workspace
from planner.errors import LeaseHeld, RequestError
from planner.plan.schedule import Window
from planner.snapshot.environment import PROD, checked_name
from planner.state.leases import Lease


@click.command()
@click.argument("environment", default=PROD)
@click.option("-s", "--start", metavar="DATE", help="Compute from this day on only.")
@click.option("-e", "--end", metavar="DATE", help="Compute up to and including this day only.")
@click.option("--select-model", multiple=True, metavar="SELECTOR", help="Only these models, and what they read.")
@click.option("--no-auto-upstream", is_flag=True, help="With --select-model: leave what they read as it is.")
@click.option("--ignore-cron", is_flag=True, help="Compute up to now, whenever the models are due.")
@click.option(
    "--exit-on-env-update",
    type=click.IntRange(1, 255),
    metavar="CODE",
    help="End with this exit code when the environment was changed while the run waited for its turn.",
)
@click.option("--note", default="", help="Why, for the record.")
@execution_time_option
@output_option
@workspace
def run(environment: str, root: Path, gateway: str | None, output: str, **flags: Any) -> int:
    """Compute what has come due in ENVIRONMENT (prod by default) since its tables were last filled.

    The models are those that the environment shows, whatever the project's files say by now; views stay as they are.

    \b
    mergeplan run
    mergeplan run dev
    mergeplan run --select-model "tag:hourly" --ignore-cron
    mergeplan run --execution-time 2026-01-31
    """
    out: Output = JsonLines() if output == "json" else Terminal()
    name = checked_name(environment)
    with opened(root, gateway, "backfill", flags["execution_time"], hear=out.event, about={name}) as work:
        wanted = Wanted(_window(work, flags), flags["select_model"], not flags["no_auto_upstream"], flags["note"])
        before = work.environment(name).revision
        with ExitStack() as turn:
            lease = _turn(work, name, turn)
            if isinstance(lease, str):
                return _skipped(out, lease)
            if flags["exit_on_env_update"] and work.environment(name).revision != before:
                raise _updated(name, flags["exit_on_env_update"])
            due, outcome = catch_up(work, name, out, wanted, lease)
    return unapplied(out, due) if outcome is None else told(out, outcome)


def _window(work: Workspace, flags: dict[str, Any]) -> Window:
    start, end = moment(flags["start"], work.now), moment(flags["end"], work.now, end=True)
    if start and end and start >= end:
        raise RequestError(f"The end `{flags['end']}` does not come after the start `{flags['start']}`.")
    if flags["no_auto_upstream"] and not flags["select_model"]:
        raise RequestError("`--no-auto-upstream` does nothing without `--select-model`.", hint="Select some models.")
    return Window(work.now, start, end, ignore_cron=flags["ignore_cron"])


def _turn(work: Workspace, name: str, turn: ExitStack) -> Lease | str:
    """The lease on the environment, waited for; or, where another run has it, that: it does what this one would."""
    try:
        return turn.enter_context(work.store.leases.hold(name, run_of(name)))
    except LeaseHeld:
        holder = work.store.leases.holder(name)
    if holder is not None and holder.holder == run_of(name):
        return f"`{name}` is being run already, since {holder.since:%Y-%m-%d %H:%M:%S} UTC: nothing was done here."
    return turn.enter_context(work.store.leases.hold(name, run_of(name), wait=LEASE_WAIT))


def _skipped(out: Output, why: str) -> int:
    if isinstance(out, JsonLines):
        out.result(True, None, {"skipped": why})
    else:
        out.say(why)
    return 0


def _updated(name: str, code: int) -> LeaseHeld:
    error = LeaseHeld(f"`{name}` was changed while this run waited for its turn.", hint="Run again.")
    error.exit_code = code
    return error
