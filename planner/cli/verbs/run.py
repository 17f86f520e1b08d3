"""run: computes what has become due."""

from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.outcome import report_outcome, report_unapplied
from mergeplan.planner.cli.output import execution_time_option, make_emitter, output_of, output_option
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import LeaseHeld
from mergeplan.planner.session.options import RunOptions
from mergeplan.planner.session.use_cases.run import compute_due_models as run_due
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name


@click.command()
@click.argument("environment", default=PROD)
@click.option("-s", "--start", metavar="DATE", help="Compute from this day on only.")
@click.option("-e", "--end", metavar="DATE", help="Compute up to and including this day only.")
@click.option(
    "--select-model", "select", multiple=True, metavar="SELECTOR", help="Only these models and their upstream models."
)
@click.option(
    "--no-auto-upstream", "upstream", is_flag=True, flag_value=False, default=True,
    help="With --select-model: leave their upstream models as they are.",
)  # fmt: skip
@click.option("--ignore-cron", is_flag=True, help="Compute up to now, whenever the models are due.")
@click.option("--refresh", is_flag=True, help="Restore views and tables that are gone, also if nothing is due.")
@click.option(
    "--exit-on-env-update",
    "moved_code",
    type=click.IntRange(1, 255),
    metavar="CODE",
    help="End with this exit code when the environment was changed while the run waited for its turn.",
)
@click.option(
    "--run-id", default="", metavar="ID", help="Record each model's result under this id, or continue that run."
)
@click.option(
    "--restate-model",
    "restate",
    multiple=True,
    metavar="MODEL",
    help="With --run-id: compute the intervals of that run again.",
)
@click.option("--note", default="", help="The reason, for the record.")
@execution_time_option
@output_option
@workspace
def run(
    root: Path,
    gateway: str | None,
    output: str,
    execution_time: str | None,
    moved_code: int | None,
    **option_values: Any,
) -> int:
    """Compute the intervals of ENVIRONMENT (prod by default) that are due since its tables were last filled.

    The models are those that the environment shows, regardless of the project's files; views do not change.

    \b
    mergeplan run
    mergeplan run dev
    mergeplan run --select-model "tag:hourly" --ignore-cron
    mergeplan run --execution-time 2026-01-31
    mergeplan run --run-id nightly-2026-01-31
    mergeplan run --run-id nightly-2026-01-31 --restate-model shop.orders
    """
    out, name = output_of(output), parse_environment_name(option_values["environment"])
    options = options_from(RunOptions, {**option_values, "environment": name, "unless_updated": moved_code is not None})
    with open_workspace(root, gateway, "backfill", execution_time, on_event=make_emitter(out)) as work:
        done = run_due(work, options)
    if done.updated:
        error = LeaseHeld(f"`{name}` was changed while this run waited for its turn.", hint="Run again.")
        error.exit_code = moved_code or error.exit_code
        raise error
    if done.plan is None:
        if isinstance(out, JsonLines):
            out.result(ResultLine(ok=True, skipped=done.skipped))
        else:
            out.say(done.skipped)
        return 0
    return report_unapplied(out, done.plan) if done.outcome is None else report_outcome(out, done.outcome)
