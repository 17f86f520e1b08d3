"""The effect of an applied plan on physical plans: a line for each change, or rows for a program."""

from pathlib import Path

import click

from mergeplan.planner.cli.output import Output, make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.physical import PhysicalPlanRow
from mergeplan.planner.contract.physical_words import is_worse, physical_sentence
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import Cancelled, MergeplanError
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.session.use_cases.physical_plan import physical_diffs_of_environment, physical_diffs_of_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD


@click.command()
@click.argument("environment")
@output_option
@workspace
def physical_plan(environment: str, root: Path, gateway: str | None, output: str) -> int:
    """Compare the physical plans of ENVIRONMENT's edited queries with prod's, over the same tables; no rows are read.

    \b
    mergeplan physical_plan dev
    """
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        work.look()
        rows = tuple(map(PhysicalPlanRow.model_validate, physical_diffs_of_environment(work, environment)))
    if isinstance(out, Terminal):
        _show_changes(out, rows)
        if not rows:
            out.say(f"`{environment}` runs prod's queries.")
    else:
        out.result(ResultLine(ok=True, physical_plan=rows))
    return 0


def physical_of_plan(
    work: Workspace, out: Output, plan: Plan, is_wanted: bool | None
) -> tuple[PhysicalPlanRow, ...] | None:
    """Return what an applied plan does to the physical plans of edited queries; None if that is not wanted or unknown.

    If the comparison fails, print a warning: the plan is carried out, and stays so. If `is_wanted` is None, compare for
    every environment but prod, if Spark runs anyway.
    """
    if not (is_wanted if is_wanted is not None else plan.environment != PROD and work.has_engine):
        return None
    try:
        rows = tuple(map(PhysicalPlanRow.model_validate, physical_diffs_of_plan(work, plan)))
    except Cancelled:
        raise
    except MergeplanError as error:
        out.warn(f"The physical plans could not be compared: {error.message}")
        return None
    if isinstance(out, Terminal):
        _show_changes(out, rows)
    return rows


def _show_changes(out: Terminal, rows: tuple[PhysicalPlanRow, ...]) -> None:
    lines = [
        f"  {'!' if is_worse(change) else '+'} {row.model}: {physical_sentence(change, str)}"
        for row in rows
        for change in row.changes
    ]
    lines += [f"  {row.model}: {row.note}" for row in rows if row.note]
    for line in ("Physical plan, before and after:", *lines) if lines else ():
        out.say(line)
