"""audit: the audits of an environment, run on what its tables hold now."""

from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import Output, make_emitter, output_of, output_option
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_history import audit_history_row
from mergeplan.planner.contract.result import AuditCounts, ResultLine
from mergeplan.planner.errors import AuditFailed, RequestError
from mergeplan.planner.session.notebook.listed_results import RecordedAudits
from mergeplan.planner.session.options import AuditOptions
from mergeplan.planner.session.use_cases.audits import audit_history, stream_audits
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name
from mergeplan.planner.state.passed.audit_results import LISTED
from mergeplan.planner.wording import count_noun


@click.command()
@click.argument("environment", default=PROD)
@click.option("--model", "select", multiple=True, help="Only these models' audits (a selector).")
@click.option("--start", metavar="DATE", help="Look at rows from this day on only.")
@click.option("--end", metavar="DATE", help="Look at rows up to and including this day only.")
@click.option("--samples", type=click.Choice(["full", "masked", "none"]), help="How to show failing rows this time.")
@click.option("--skip-unchanged", is_flag=True, help="Skip audits that passed and whose tables were not written since.")
@click.option("--history", is_flag=True, help="Run nothing: list what the audits found in the last three months.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=LISTED, show_default=True, help="With --history: results."
)
@output_option
@workspace
def audit(
    environment: str, root: Path, gateway: str | None, output: str, history: bool, limit: int, **option_values: Any
) -> int:
    """Run the audits of ENVIRONMENT's models, and the standalone ones, on what its tables hold now.

    \b
    mergeplan audit
    mergeplan audit dev --model shop.orders --start 2026-01-01
    mergeplan audit --history --model shop.orders
    """
    out = output_of(output)
    if history:
        return _list_history(environment, root, gateway, out, options_from(AuditOptions, option_values), limit)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        shown = work.environment(parse_environment_name(environment))
        if isinstance(out, JsonLines):
            out.knows(shown.snapshots)
        results = list(stream_audits(work, shown, options_from(AuditOptions, option_values)))
    failed = [result for result in results if not result.ok]
    unchanged_count = sum(result.unchanged for result in results)
    blocked = any(result.blocking for result in failed)
    if isinstance(out, JsonLines):
        counts = AuditCounts(passed=len(results) - len(failed), failed=len(failed), unchanged=unchanged_count)
        out.result(ResultLine(ok=not blocked, audit_counts=counts))
    else:
        unchanged_text = f", {unchanged_count} unchanged since they passed" if unchanged_count else ""
        out.say(f"{count_noun(len(results) - unchanged_count, 'audit')} ran, {len(failed)} failed{unchanged_text}.")
    return AuditFailed.exit_code if blocked else 0


def _list_history(
    environment: str, root: Path, gateway: str | None, out: Output, options: AuditOptions, limit: int
) -> int:
    if options.start or options.end or options.samples or options.skip_unchanged:
        raise RequestError("`--history` runs no audit: of the other options it takes `--model` and `--limit` alone.")
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        results = audit_history(work, work.environment(parse_environment_name(environment)), options.select, limit)
    if isinstance(out, JsonLines):
        out.result(ResultLine(ok=True, audit_history=tuple(map(audit_history_row, results))))
    else:
        click.echo(RecordedAudits(results).listing().text(most=limit))
    return 0
