"""freshness: how old the tables of an environment are, and which are late."""

from pathlib import Path

import click

from mergeplan.planner.checks.freshness import FreshnessStatus
from mergeplan.planner.cli.output import make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.errors import Refused, RequestError
from mergeplan.planner.session.notebook.freshness_results import FreshnessResults
from mergeplan.planner.session.scheduling.freshness import stream_freshness
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name


@click.command()
@click.argument("environment", default=PROD)
@click.option("--model", "select", multiple=True, help="Only these models (a selector).")
@output_option
@workspace
def freshness(environment: str, select: tuple[str, ...], output: str, root: Path, gateway: str | None) -> int:
    """Show how old the tables of ENVIRONMENT are whose models declare `freshness`, and which of them are late.

    The exit code is 4 if one is older than its `error_after`, and 1 if an age cannot be measured.

    \b
    mergeplan freshness
    mergeplan freshness --model tag:raw --output json
    """
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        shown = work.environment(parse_environment_name(environment))
        results = FreshnessResults(stream_freshness(work, shown, select))
    if isinstance(out, Terminal):
        click.echo(results.listing().text(most=len(results)))
    else:
        from mergeplan.planner.contract.from_history import freshness_row  # which no person reads
        from mergeplan.planner.contract.result import ResultLine

        out.result(ResultLine(ok=results.ok, freshness=tuple(map(freshness_row, results))))
    if any(result.status is FreshnessStatus.ERROR for result in results):
        return Refused.exit_code
    return 0 if results.ok else RequestError.exit_code
