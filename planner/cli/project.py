"""audit: a project by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from planner.apply.events import AuditRan
from planner.checks.audits import AuditOptions, AuditResult, run_audits
from planner.checks.masking import checked_samples
from planner.checks.standalone import run_standalone
from planner.cli.gitchanges import changed_since
from planner.cli.json_lines import JsonLines
from planner.cli.plan import output_option
from planner.cli.running import Output
from planner.cli.terminal import Terminal, counted
from planner.cli.workspace import Workspace, moment, opened, workspace
from planner.errors import AuditFailed, RequestError
from planner.intervals import Interval
from planner.model.graph import graph_of
from planner.model.model import Kind
from planner.model.selection import select
from planner.plan.schedule import ONCE
from planner.snapshot.environment import PROD, Environment, checked_name


@click.command()
@click.argument("environment", default=PROD)
@click.option("--model", "models", multiple=True, help="Only these models' audits (a selector).")
@click.option("--start", metavar="DATE", help="Look at rows from this day on only.")
@click.option("--end", metavar="DATE", help="Look at rows up to and including this day only.")
@click.option("--samples", type=click.Choice(["full", "masked", "none"]), help="How bad rows are shown this time.")
@output_option
@workspace
def audit(
    environment: str, models: tuple[str, ...], root: Path, gateway: str | None, output: str, **flags: str | None
) -> int:
    """Run the audits of ENVIRONMENT's models, and the standalone ones, on what its tables hold now.

    \b
    mergeplan audit
    mergeplan audit dev --model shop.orders --start 2026-01-01
    """
    out: Output = JsonLines() if output == "json" else Terminal()
    results = []
    with opened(root, gateway, hear=out.event, only_looks=True) as work:
        shown = work.environment(checked_name(environment))
        if isinstance(out, JsonLines):
            out.knows(shown.snapshots)
        for result in _audited(work, shown, models, flags):
            results.append(result)
            out.event(AuditRan(result.model, result))
    failed = [result for result in results if not result.ok]
    blocked = any(result.blocking for result in failed)
    if isinstance(out, JsonLines):
        out.result(not blocked, None, {"audits": {"passed": len(results) - len(failed), "failed": len(failed)}})
    else:
        out.say(f"{counted(len(results), 'audit')} ran, {len(failed)} failed.")
    return AuditFailed.exit_code if blocked else 0


def _audited(
    work: Workspace, shown: Environment, models: tuple[str, ...], flags: Mapping[str, str | None]
) -> Iterator[AuditResult]:
    project = work.project
    graph, since_main = graph_of(project.models), changed_since(project)
    chosen = select(graph, models, since_main) if models else frozenset(shown.snapshots)
    since = moment(flags["start"], work.now) or ONCE[0].start
    until = moment(flags["end"], work.now, end=True) or work.now
    if since >= until:
        raise RequestError("The end does not come after the start.")
    tables = {n: s.table for n, s in shown.snapshots.items() if s.kind is not Kind.EMBEDDED}
    embedded = {n: s.model for n, s in shown.snapshots.items() if s.kind is Kind.EMBEDDED}
    show = checked_samples(flags["samples"]) or project.config.audits.show_samples
    options = AuditOptions(project.audits, tables, embedded, work.now, show)
    for name, snapshot in sorted(shown.snapshots.items()):
        if name in chosen and (snapshot.kind.has_view or snapshot.kind is Kind.EXTERNAL):
            yield from run_audits(work.engine, snapshot, Interval(since, until), options)
    for each in project.standalone:
        here = all(name in shown.snapshots or name not in project.models for name in each.depends_on)
        if here and not each.skip and (not models or chosen & set(each.depends_on)):
            yield run_standalone(work.engine, each, Interval(since, until), work.now, options)
