"""init, test, audit, info: a project by itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

import click

from planner.checks.audits import AuditResult, run_audits
from planner.checks.masking import checked_samples
from planner.checks.standalone import run_standalone
from planner.checks.unit_tests import run_unit_tests
from planner.cli.gitchanges import changed_since
from planner.cli.json_lines import JsonLines
from planner.cli.plan import output_option
from planner.cli.running import Output
from planner.cli.terminal import Terminal, counted
from planner.cli.workspace import Workspace, moment, opened, workspace
from planner.environment import PROD, Environment, checked_name
from planner.errors import AuditFailed, MergeplanError, RequestError
from planner.events import AuditRan
from planner.graph import graph_of
from planner.intervals import Interval
from planner.model import Kind
from planner.reading.sqltext import did_you_mean
from planner.scaffold import Template, write_example
from planner.schedule import ONCE
from planner.selection import select

ENGINES = ("duckdb", "snowflake", "databricks", "bigquery", "motherduck", "clickhouse", "redshift", "trino",
           "azuresql", "mssql", "postgres", "gcp_postgres", "mysql", "athena", "risingwave")  # fmt: skip


@click.command()
@click.argument("target", required=False, metavar="[DIR]")
@click.option("-t", "--template", type=click.Choice(["default", "empty"]), help="An example project, or empty folders.")
def init(target: str | None, template: str | None) -> int:
    """Start a project in DIR, or in this folder.

    \b
    mergeplan init                  asks what you want
    mergeplan init spark            the example project, here
    mergeplan init shop -t empty    empty folders in `shop`
    """
    if target in ENGINES and not Path(target).is_dir():
        raise RequestError(f"mergeplan runs on Spark, not on `{target}`.", hint="Write `mergeplan init spark`.")
    folder = Path() if target in (None, "spark") else Path(str(target))
    chosen: Template = "empty" if template == "empty" else "default"
    if template is None and target is None and sys.stdin.isatty():
        chosen = _ask_template()
    written = write_example(folder, chosen)
    for path in written:
        click.echo(f"  {path}")
    click.echo("\nYour mergeplan project is ready!\n")
    click.echo("Next steps:")
    click.echo(f"- See the project configuration: {folder / 'config.yaml'}")
    click.echo("- Run command in CLI: mergeplan plan")
    click.echo("- (Optional) Explain a plan: mergeplan plan --explain")
    return 0


@click.command()
@click.argument("names", nargs=-1)
@click.option("-k", "pattern", help="Only tests whose name contains this text.")
@output_option
@workspace
def test(names: tuple[str, ...], pattern: str | None, root: Path, gateway: str | None, output: str) -> int:
    """Run the project's unit tests, all or those of the given NAMES (of tests or models).

    \b
    mergeplan test
    mergeplan test shop.orders
    mergeplan test -k orders
    """
    out: Output = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway) as work:
        tests = [
            each
            for each in work.project.tests
            if (not names or {each.name, each.model} & set(names)) and (pattern or "") in each.name
        ]
        if not tests and (names or pattern):
            wanted = names[0] if names else str(pattern)
            raise RequestError(
                f"`{wanted}` is no test.", hint=did_you_mean(wanted, [t.name for t in work.project.tests])
            )
        started = time.monotonic()
        results = run_unit_tests(work.engine, work.project, tuple(tests)) if tests else ()
        out.tests(results, time.monotonic() - started)
    failed = any(not result.ok for result in results)
    if isinstance(out, JsonLines):
        passed = sum(result.ok for result in results)
        out.result(not failed, None, {"tests": {"passed": passed, "failed": len(results) - passed}})
    return 1 if failed else 0


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
    with opened(root, gateway) as work:
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
    for name, snapshot in sorted(shown.snapshots.items()):
        if name in chosen and snapshot.kind.has_view:
            yield from run_audits(
                work.engine, snapshot, project.audits, Interval(since, until),
                tables=tables, embedded=embedded, execution=work.now, samples=show,
            )  # fmt: skip
    for each in project.standalone:
        here = all(name in shown.snapshots or name not in project.models for name in each.depends_on)
        if here and not each.skip and (not models or chosen & set(each.depends_on)):
            time = Interval(since, until)
            yield run_standalone(work.engine, each, tables, embedded, time, execution=work.now, samples=show)


@click.command()
@output_option
@workspace
def info(root: Path, gateway: str | None, output: str) -> int:
    """Show the project, and whether its Spark and its state answer.

    \b
    mergeplan info
    """
    with opened(root, gateway) as work:
        project = work.project
        facts: dict[str, object] = {
            "version": version("mergeplan"),
            "project": str(project.root),
            "gateway": project.gateway,
            "models": len(project.models),
            "audits": len(project.audits),
            "tests": len(project.tests),
            "environments": len(work.store.environments()),
        }
        try:
            facts["spark"] = str(work.engine.fetch("SELECT version()").rows[0][0]).split()[0]
        except MergeplanError as error:
            facts["spark"] = f"not reachable: {error}"
    if output == "json":
        JsonLines().result(True, None, facts)
    else:
        for name, value in facts.items():
            click.echo(f"{name + ':':<14} {value}")
    return 0


def _ask_template() -> Template:
    click.echo("─" * 32 + "\nWelcome to mergeplan!\n" + "─" * 32 + "\n")
    click.echo("What type of project do you want to set up?\n")
    click.echo("    [1] DEFAULT - Create example project models and files")
    click.echo("    [2] EMPTY   - Create a configuration file and project directories only\n")
    number: int = click.prompt("Enter a number", type=click.IntRange(1, 2))
    return "default" if number == 1 else "empty"
