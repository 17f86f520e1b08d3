"""environments, rollback, invalidate, janitor, migrate: what there is, what there was, and what may go."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.apply.promotion.rollback import RollbackPlan
from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.failure import report_error
from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import Output, make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.texts.rollback_text import behind_text, rollback_text
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_events import promotion_row
from mergeplan.planner.contract.from_history import environment_row, revision_row, rollback_view
from mergeplan.planner.contract.result import KeptRow, ResultLine
from mergeplan.planner.session.use_cases.applying import Record
from mergeplan.planner.session.use_cases.environments import RolledBack, Swept, check_droppable, plan_rollback
from mergeplan.planner.session.use_cases.environments import invalidate_environment as drop
from mergeplan.planner.session.use_cases.environments import roll_back_environment as roll_back
from mergeplan.planner.session.use_cases.environments import run_janitor as sweep
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name
from mergeplan.planner.wording import count_noun


@click.command()
@click.argument("environment", required=False)
@output_option
@workspace
def environments(environment: str | None, root: Path, gateway: str | None, output: str) -> int:
    """List the environments, or what ENVIRONMENT has shown so far.

    \b
    mergeplan environments
    mergeplan environments prod
    mergeplan environments --output json
    """
    return _print_listing(environment, root, gateway, output_of(output))


@click.command()
@click.argument("environment", default=PROD)
@output_option
@workspace
def history(environment: str, root: Path, gateway: str | None, output: str) -> int:
    """Show what ENVIRONMENT (prod by default) has shown so far, the newest first: `rollback --to` takes a revision.

    \b
    mergeplan history
    mergeplan history dev
    """
    return _print_listing(environment, root, gateway, output_of(output))


def _print_listing(environment: str | None, root: Path, gateway: str | None, out: Output) -> int:
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        if environment is None:
            shown = tuple(environment_row(listed_environment) for listed_environment in work.store.environments.all())
            listed, rows = ResultLine(ok=True, environments=shown), [row.model_dump() for row in shown]
        else:
            name = work.environment(parse_environment_name(environment)).name
            past = tuple(revision_row(revision) for revision in work.store.environments.history(name))
            listed, rows = ResultLine(ok=True, revisions=past), [row.model_dump() for row in past]
    if isinstance(out, JsonLines):
        out.result(listed)
    elif rows:
        click.echo(_render_table(rows))
    else:
        click.echo("There is no environment yet. `mergeplan plan` makes prod.")
    return 0


@click.command()
@click.argument("environment")
@click.option("--to", "revision", type=click.IntRange(min=1), help="The revision to go back to; else the one before.")
@click.option("--dry-run", is_flag=True, help="Show what would move and what would be missing, and change nothing.")
@click.option("--auto-apply", is_flag=True, help="Roll back without asking for confirmation.")
@click.option("--who", default="", help="The person who wants it, for the history.")
@click.option("--note", default="", help="The reason, for the history.")
@output_option
@workspace
def rollback(
    environment: str,
    root: Path,
    gateway: str | None,
    output: str,
    dry_run: bool,
    auto_apply: bool,
    **option_values: Any,
) -> int:
    """Point ENVIRONMENT back to what it showed before; nothing is computed.

    \b
    mergeplan rollback prod --dry-run
    mergeplan rollback prod
    mergeplan rollback prod --to 3
    """
    name, out, revision = parse_environment_name(environment), output_of(output), option_values["revision"]
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=dry_run) as work:
        if dry_run:
            return _print_rollback_plan(out, plan_rollback(work, name, revision))
        if isinstance(out, Terminal) and is_interactive() and not auto_apply:
            planned = plan_rollback(work, name, revision)
            if not (planned.refusal or work.recovered) and not _confirm_rollback(out, planned):
                return 0
        done = roll_back(work, name, revision, options_from(Record, option_values))
    _print_rollback(out, name, done)
    return 0


@click.command()
@click.argument("environment")
@click.option(
    "-s",
    "--sync",
    is_flag=True,
    help="Accepted for SQLMesh's sake: this command always returns when the environment is gone.",
)
@click.option("--who", default="", help="The person who wants it, for the history.")
@output_option
@workspace
def invalidate(environment: str, sync: bool, who: str, root: Path, gateway: str | None, output: str) -> int:
    """Drop ENVIRONMENT at once: its views, and the tables that only it used. Prod cannot be dropped.

    \b
    mergeplan invalidate dev
    """
    name, out = parse_environment_name(environment), output_of(output)
    check_droppable(name)
    with open_workspace(root, gateway, on_event=make_emitter(out)) as work:
        done = drop(work, name, who)
    sentence = f"`{name}` is gone, and with it {count_noun(len(done.tables), 'table')}"
    if isinstance(out, JsonLines):
        out.result(ResultLine(ok=True, applied=True, promotion=promotion_row(done.promoted, 0), tables=done.tables))
    else:
        out.finish()
        out.say(f"\n{sentence}.")
    return 0


@click.command()
@click.option(
    "--days", type=click.IntRange(min=0), help="How long to keep what history refers to (else `snapshot_ttl`, or 14)."
)
@click.option(
    "--ignore-ttl", "days", flag_value=0, type=int, help="Keep no table for the sake of history: the same as --days 0."
)
@click.option("--keep", multiple=True, metavar="ENVIRONMENT", help="An environment that does not expire. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Say what would be dropped, and drop nothing.")
@output_option
@workspace
def janitor(
    days: int | None, keep: tuple[str, ...], dry_run: bool, root: Path, gateway: str | None, output: str
) -> int:
    """Drop the environments that have expired, and the tables that nothing refers to.

    A table stays while an environment, recent history or an open plan refers to it. Then versions of the rows of
    tables that were replaced long ago are dropped, if `table_history_ttl` is set.

    \b
    mergeplan janitor
    mergeplan janitor --days 3 --dry-run
    """
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=dry_run) as work:
        sweep_result = sweep(work, None if days is None else timedelta(days=days), keep)
    if isinstance(out, JsonLines):
        out.result(_sweep_result_line(sweep_result))
        return 0
    out.finish()
    for name in sweep_result.environments:
        out.say(f"`{name}` has expired and {'would be dropped' if dry_run else 'is dropped'}.")
    for table in sweep_result.tables if dry_run else ():
        out.say(table)
    out.say(f"{count_noun(len(sweep_result.tables), 'table')} {'would be dropped' if dry_run else 'dropped'}.")
    _say_old_versions(out, sweep_result)
    if gone := sweep_result.forgotten.total:
        out.say(f"{count_noun(gone, 'old record')} removed from the state.")
    return 0


@click.command()
@output_option
@workspace
def migrate(root: Path, gateway: str | None, output: str) -> int:
    """Bring the state database up to date. Earlier versions of mergeplan refuse it from then on.

    \b
    mergeplan migrate
    """
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        work.migrates = True
        work.store.environments.all()
    if isinstance(out, JsonLines):
        out.result(ResultLine(ok=True))
    else:
        click.echo("The state database is up to date.")
    return 0


def _sweep_result_line(sweep_result: Swept) -> ResultLine:
    old = sweep_result.old_versions
    return ResultLine(
        ok=True,
        expired=sweep_result.environments,
        tables=sweep_result.tables,
        dropped=sweep_result.dropped,
        cleaned=old.removed or None,
        kept=tuple(KeptRow(table=version.table, reason=version.reason) for version in old.kept) or None,
    )


def _say_old_versions(out: Terminal, sweep_result: Swept) -> None:
    removed = "removed" if sweep_result.dropped else "would be removed, unless its last merge needs them"
    for table in sweep_result.old_versions.removed:
        out.say(f"Old versions of {table} {removed}.")
    for version in sweep_result.old_versions.kept:
        out.say(f"Old versions of {version.table} kept: {version.reason}.")


def _render_table(rows: list[dict[str, object]]) -> str:
    cells = [[title.replace("_", " ") for title in rows[0]]]
    for row in rows:
        cells.append([_format_cell(key, value) for key, value in row.items()])
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    return "\n".join("  ".join(f"{text:<{w}}" for text, w in zip(line, widths, strict=True)).rstrip() for line in cells)


def _format_cell(title: str, value: object) -> str:
    if value is None:
        return "never"
    return str(value)[:19].replace("T", " ") if title.endswith("at") else str(value)


def is_interactive() -> bool:
    """Return True if a person can answer, and no script calls."""
    return sys.stdin.isatty()


def _confirm_rollback(out: Terminal, plan: RollbackPlan) -> bool:
    out.say_wrapped(rollback_text(plan))
    return out.ask(f"Roll back - {count_noun(len(plan.views), 'view')} of `{plan.old.name}`", "Nothing was changed.")


def _print_rollback_plan(out: Output, plan: RollbackPlan) -> int:
    """Print what a rollback would do; return 0 if it can be done, else the refusal's exit code."""
    refusal = plan.refusal
    if isinstance(out, JsonLines):
        if refusal:
            out.error(refusal)
        out.result(ResultLine(ok=not refusal, rollback=rollback_view(plan)))
    else:
        out.finish()
        out.say_wrapped(rollback_text(plan))
        if refusal:
            report_error(refusal, as_json=False)
        else:
            out.say("\nNothing was changed.")
    return refusal.exit_code if refusal else 0


def _print_rollback(out: Output, name: str, rollback_result: RolledBack) -> None:
    result_text = (
        f"The interrupted rollback of `{name}` is finished"
        if rollback_result.finished
        else f"`{name}` shows again what it showed before"
    )
    sentence = f"{result_text}; this is its revision {rollback_result.promoted.revision}"
    behind = rollback_result.plan.behind if rollback_result.plan else ()
    if isinstance(out, JsonLines):
        moved = promotion_row(rollback_result.promoted, rollback_result.spark_jobs)
        view = rollback_view(rollback_result.plan) if rollback_result.plan else None
        out.result(ResultLine(ok=True, applied=True, promotion=moved, rollback=view))
        return
    out.finish()
    out.say(f"\n{sentence}.")
    for gap in behind:
        out.say(f"{gap.shown.name} {behind_text(name, gap)}")
