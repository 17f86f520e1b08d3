"""data_diff: the effect of an environment's changes on the rows of its models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.checks.diff.data_diff import ModelDiff
from mergeplan.planner.checks.diff.table_diff import TableDiff
from mergeplan.planner.cli.checks.data_diff_options import data_diff_options, options_of
from mergeplan.planner.cli.output import Output, make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.texts.table_diff_text import show_diff
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_tables import data_difference
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.tables import DataDifference
from mergeplan.planner.errors import Cancelled, MergeplanError
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.options import DataDiffOptions
from mergeplan.planner.session.use_cases.data_diff import data_diffs, pairs_of_environment, pairs_of_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD


@click.command()
@click.argument("environment")
@click.argument("models", nargs=-1)
@click.option("--against", default=PROD, metavar="ENV", help="Compare with the tables of this environment.")
@click.option("--where", default="", metavar="SQL", help="Only rows for which this holds; of one MODEL.")
@data_diff_options()
@output_option
@workspace
def data_diff(
    environment: str, root: Path, gateway: str | None, output: str, against: str, **option_values: Any
) -> int:
    """Compare the tables of ENVIRONMENT with prod's, over the time that both hold: all that differ, or MODELS.

    \b
    mergeplan data_diff dev
    mergeplan data_diff dev shop.orders --where "amount > 100"
    mergeplan data_diff dev --detail sample --detail tag:pii=off --unmasked id
    mergeplan data_diff pr_8 --against pr_7
    """
    diff_options = options_of(option_values)
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        work.look()
        pairs = pairs_of_environment(work, environment, against)
        names = (against, environment)
        differences = []
        for diff in data_diffs(work, pairs, names, diff_options):
            differences.append(diff)
            show_model_diff(out, diff, names)
    if isinstance(out, Terminal):
        if not differences:
            whose = "prod's tables" if against == PROD else f"the tables of `{against}`"
            out.say(f"`{environment}` shows {whose}.")
    else:
        out.result(ResultLine(ok=True, data_diff=tuple(map(data_difference, differences))))
    return 0


def diff_plan_data(
    work: Workspace, out: Output, plan: Plan, options: DataDiffOptions | None
) -> Sequence[DataDifference] | None:
    """Return an applied plan's effect on rows, or None; a comparison that fails only warns: the plan stays applied."""
    if options is None:
        return None
    differences, names = [], (plan.base, plan.environment)
    try:
        for diff in data_diffs(work, pairs_of_plan(plan), names, options):
            differences.append(data_difference(diff))
            show_model_diff(out, diff, names)
    except Cancelled:
        raise
    except MergeplanError as error:
        out.warn(f"The rows could not be compared: {error.message}")
        return None
    return differences


def show_model_diff(out: Output, diff: ModelDiff, names: tuple[str, str]) -> None:
    """Print one model's difference for a person; a program gets all of them with the result."""
    if not isinstance(out, Terminal):
        return
    if diff.rows is None:
        counts_text = " and ".join(f"{count:,}" for count in diff.counts or ())
        out.say(f"{diff.model}: {diff.note}" + (f" ({counts_text} rows)" if counts_text else ""))
        return
    shown = TableDiff(names, diff.key, diff.schema, diff.rows, diff.samples, diff.model, diff.same_files)
    show_diff(out.console, shown)
    if diff.days or diff.note:
        out.say("; ".join([*(f"over {days}" for days in map(str, diff.days[:3])), *filter(None, [diff.note])]))
