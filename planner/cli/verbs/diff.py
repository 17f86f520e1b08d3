"""diff: what an environment shows, against the project's files or another environment."""

from pathlib import Path

import click

from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import make_emitter, output_of, output_option
from mergeplan.planner.cli.texts.plan_text import difference_text
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_plan import diff_row, plan_view
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.session.use_cases.diff import plan_difference
from mergeplan.planner.snapshot.environment import parse_environment_name


@click.command()
@click.argument("environment")
@click.argument("other", required=False)
@output_option
@workspace
def diff(environment: str, other: str | None, root: Path, gateway: str | None, output: str) -> int:
    """Show how the project's files, or the environment OTHER, differ from ENVIRONMENT; exit code 1 when they do.

    \b
    mergeplan diff prod
    mergeplan diff prod dev
    """
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        plan = plan_difference(work, environment, other)
    if isinstance(out, JsonLines):
        changes = tuple(diff_row(model) for model in plan_view(plan, {}).models)
        out.result(
            ResultLine(ok=True, environment=plan.environment, other=other, different=bool(changes), changes=changes)
        )
    else:
        subject = f"the `{parse_environment_name(other)}` environment" if other else "the project"
        out.show(difference_text(plan, subject))
    return 1 if plan.changes else 0
