"""plan, apply, run: what changed, what it costs, and making it so."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from planner.apply.create_tables import Layout
from planner.apply.executor import Outcome
from planner.apply.syntax_check import check_syntax
from planner.checks.unit_tests import run_unit_tests
from planner.cli.json_lines import Json, JsonLines
from planner.cli.linting import check_rules
from planner.cli.planning import (
    DEFAULT_TARGET,
    Asked,
    categories,
    checked_request,
    current,
    planned_for,
    save,
    saved_request,
    unmoved,
)
from planner.cli.running import LEASE_WAIT, Output, carried_out, estimates, then_run, told, unapplied
from planner.cli.terminal import Terminal
from planner.cli.workspace import Workspace, opened, workspace
from planner.errors import MergeplanError, Refused
from planner.plan.build import Plan
from planner.snapshot.environment import PROD, view_changes, views_of
from planner.state.environments import Action
from planner.state.store import StateStore

MORE = ("min_intervals", "no_gaps", "empty_backfill", "include_unmodified", "diff_rendered", "ignore_cron")


def output_option(command: Any) -> Any:
    """`--output text|json`."""
    told = "For a person, or JSON lines for a program."
    return click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help=told)(command)


def execution_time_option(command: Any) -> Any:
    """`--execution-time DATE`."""
    told = "Plan and compute as if it were this moment, not now."
    return click.option("--execution-time", metavar="DATE", help=told)(command)


@click.command()
@click.argument("environment", default=None, required=False)
@click.option("--auto-apply", is_flag=True, help="Apply without asking.")
@click.option("--explain", is_flag=True, help="Show what applying would do, and do nothing.")
@click.option("-s", "--start", metavar="DATE", help="Compute from this day on only.")
@click.option("-e", "--end", metavar="DATE", help="Compute up to and including this day only.")
@click.option(
    "--categorize",
    multiple=True,
    metavar="MODEL=CATEGORY",
    help="breaking, non-breaking or forward-only, for a changed model.",
)
@click.option("--forward-only", is_flag=True, help="Keep the rows there are of every changed model.")
@click.option("--effective-from", metavar="DATE", help="Of a forward-only plan: recompute from this day on.")
@click.option("--enable-preview/--no-enable-preview", default=None, help="Fill previews of forward-only changes.")
@click.option(
    "--allow-destructive-model", multiple=True, metavar="SELECTOR", help="Let its forward-only change drop columns."
)
@click.option(
    "--allow-additive-model", multiple=True, metavar="SELECTOR", help="Let its forward-only change add columns."
)
@click.option(
    "-r",
    "--restate-model",
    multiple=True,
    metavar="SELECTOR",
    help="Compute these models anew, and all that reads them.",
)
@click.option("--select-model", multiple=True, metavar="SELECTOR", help="Only the changes of these models count.")
@click.option("--backfill-model", multiple=True, metavar="SELECTOR", help="Compute only these and what they read.")
@click.option("--min-intervals", type=click.IntRange(min=0), default=0, help="Units of each model to compute at least.")
@click.option("--no-gaps", is_flag=True, help="Refuse a table that would lack days that are shown now.")
@click.option("--empty-backfill", is_flag=True, help="Leave new tables empty, and count their days as computed.")
@click.option("--include-unmodified", is_flag=True, help="Show every model in the environment, changed or not.")
@click.option("--diff-rendered", is_flag=True, help="Show the difference of the queries as they run.")
@click.option("--ignore-cron", is_flag=True, help="Compute up to now, whenever the models are due.")
@click.option("--run", "then_run", is_flag=True, help="Afterwards compute what has come due, as `mergeplan run` does.")
@click.option("--skip-backfill", is_flag=True, help="Create tables and views, and leave new tables empty.")
@click.option("--skip-tests", is_flag=True, help="Do not run the unit tests first.")
@click.option("--skip-linter", is_flag=True, help="Do not hold the models to the linter's rules first.")
@click.option("--no-diff", is_flag=True, help="Leave out how the texts of edited models differ.")
@click.option("--no-prompts", is_flag=True, help="Show the plan without asking; apply it later with `mergeplan apply`.")
@click.option("--who", default="", help="Whose categories these are, for the record.")
@click.option("--words-from", metavar="ENV", help="Also heed the categories that were given in that environment.")
@click.option(
    "--expect-promise", metavar="HASH", help="The promise of the plan that was reviewed; told apart in the result."
)
@click.option("--note", default="", help="Why, for the environment's history.")
@execution_time_option
@output_option
@workspace
def plan(
    environment: str | None, root: Path, gateway: str | None, output: str, categorize: tuple[str, ...], **flags: Any
) -> int:
    """Show what ENVIRONMENT (prod by default) would become, and apply it if you say so.

    \b
    mergeplan plan                     plan prod
    mergeplan plan dev                 plan an environment of your own, from prod
    mergeplan plan dev --auto-apply    without asking
    mergeplan plan --explain           show each step, do nothing
    mergeplan plan dev --categorize shop.orders=non-breaking
    mergeplan plan --restate-model shop.orders --start 2026-01-01 --end 2026-01-07
    mergeplan plan dev --forward-only  keep the rows there are
    """
    asked = _request(environment, categorize, flags)
    out: Output = JsonLines() if output == "json" else Terminal()
    looks = flags["explain"]
    with opened(root, gateway, "backfill", flags["execution_time"], hear=out.event, only_looks=looks) as work:
        asked = checked_request(work, asked)
        work.about = frozenset({asked.environment, PROD})
        if isinstance(out, Terminal):  # a program says itself what it wants
            settings = work.project.config.plan
            out.diffs = not (settings.no_diff or flags["no_diff"])
            flags["auto_apply"] |= settings.auto_apply and not flags["no_prompts"]
        if not flags["skip_linter"]:
            check_rules(work.project, out)
        planned = _planned(work, asked, out, skip_tests=flags["skip_tests"])
        if flags["explain"]:
            return _explained(work, out, planned)
        checked = not planned.blockers and (flags["auto_apply"] or work.has_engine)
        if checked:
            _check_syntax(work, planned)
        out.plan(planned, estimates(work, planned))
        after = partial(then_run, work, asked.environment, out) if flags["then_run"] else None
        if planned.is_empty and flags["auto_apply"] and not planned.blockers:
            _renew(work, planned)
        if planned.is_empty and after and not planned.blockers:
            return told(out, after())
        if planned.is_empty or planned.blockers:
            return unapplied(out, planned, promoted_before(work.store, asked.environment, flags["note"]))
        save(work, planned, asked)
        if not flags["auto_apply"] and not _agreed(out, planned, flags["no_prompts"]):
            return 0
        if not checked:
            _check_syntax(work, planned)
        return _applied(work, out, planned, asked, flags["note"], flags["expect_promise"], after)


@click.command()
@click.argument("plan_id")
@click.option("--note", default="", help="Why, for the environment's history.")
@output_option
@workspace
def apply(plan_id: str, root: Path, gateway: str | None, output: str, note: str) -> int:
    """Apply the plan PLAN_ID, as it was shown.

    It is made again from the project and the state as they are now; when it comes out otherwise, nothing is done and
    what moved is named.

    \b
    mergeplan plan dev --no-prompts
    mergeplan apply 3f9c0a1b2d4e
    """
    out: Output = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway, "backfill", hear=out.event, about={PROD}) as work:
        asked = saved_request(work, plan_id)
        now = unmoved(work, plan_id, asked)
        out.plan(now, estimates(work, now))
        if now.is_empty or now.blockers:
            return unapplied(out, now)
        _check_syntax(work, now)
        return _applied(work, out, now, asked, note)


def _request(environment: str | None, categorize: tuple[str, ...], flags: dict[str, Any]) -> Asked:
    """What the options of `plan` ask for."""
    return Asked(
        DEFAULT_TARGET if environment is None else environment,
        flags["start"],
        flags["end"],
        categories(categorize),
        flags["skip_backfill"],
        flags["words_from"],
        flags["who"],
        flags["execution_time"],
        restate=flags["restate_model"],
        forward_only=flags["forward_only"],
        effective_from=flags["effective_from"],
        enable_preview=flags["enable_preview"],
        allow_destructive=flags["allow_destructive_model"],
        allow_additive=flags["allow_additive_model"],
        select=flags["select_model"],
        backfill=flags["backfill_model"],
        **{name: flags[name] for name in MORE},
    )


def _planned(work: Workspace, asked: Asked, out: Output, *, skip_tests: bool) -> Plan:
    """The plan, and the unit tests before it is shown; a wrong project or request is told before Spark is started."""
    if asked.restate:
        return planned_for(work, asked, {})  # of what the environment shows: no file is looked at
    planned = planned_for(work, asked, work.project.models)
    if not skip_tests:
        _run_tests(work, out)
    return planned_for(work, asked, work.models) if work.strangers else planned


def _check_syntax(work: Workspace, planned: Plan) -> None:
    """What Spark cannot parse ends the verb: before the plan is shown where Spark is needed anyway, and at the latest
    before anything is done."""
    if planned.changes:
        check_syntax(planned, Layout(planned.new.snapshots, planned.parents, work.now), work.engine)


def _explained(work: Workspace, out: Output, planned: Plan) -> int:
    out.plan(planned, estimates(work, planned))
    if isinstance(out, Terminal):
        out.explain(planned)
    else:
        out.result(not planned.blockers)
    return Refused.exit_code if planned.blockers else 0


def _agreed(out: Output, planned: Plan, silent: bool) -> bool:
    if isinstance(out, Terminal) and not silent:
        return out.confirmed(planned)
    if isinstance(out, Terminal):
        out.say(f"Apply it with: mergeplan apply {planned.id}")
    else:
        out.result(True)
    return False


def _applied(
    work: Workspace,
    out: Output,
    planned: Plan,
    asked: Asked,
    note: str,
    expected: str | None = None,
    after: Callable[[], Outcome] | None = None,
) -> int:
    for word in planned.words:
        work.store.overrides.record(planned.environment, replace(word, at=word.at or work.now))
    started = time.monotonic()
    with work.store.leases.hold(planned.environment, f"plan {planned.id}", wait=LEASE_WAIT) as lease:
        planned = current(work, planned, asked, lease)
        outcome = carried_out(
            work, out, planned, lease, asked.who, note, not asked.skip_backfill,
            replan=None if asked.restate else lambda: planned_for(work, asked, work.models),
        )  # fmt: skip
        if not outcome.failures:
            _renew(work, planned)
    final = outcome.plan or planned
    if final != planned:
        out.revised(final, estimates(work, planned))
    work.store.plans.close(planned.id, "failed" if outcome.failures else "applied")
    if after and not outcome.failures:
        outcome = replace(outcome, filled=outcome.filled.plus(after().filled))
    seconds = round(time.monotonic() - started, 3)
    return told(out, outcome, {"seconds": seconds, "expected": expected in (None, final.promise)})


def promoted_before(store: StateStore, name: str, note: str) -> Json:
    """What an earlier run promoted under the same note, for whoever was cut off before hearing it; {} when nothing."""
    history = [row for row in store.environments.history(name) if row.action is not Action.UNDONE]
    if not note or not history or (history[0].note, history[0].action) != (note, Action.PROMOTED):
        return {}
    latest, before = history[0].revision, history[1].revision if len(history) > 1 else 0
    new = store.environments.at_revision(name, latest)
    moved = view_changes(store.environments.at_revision(name, before), new)
    added, swapped, dropped = len(moved.added), len(moved.swapped), len(moved.dropped)
    unchanged = len(views_of(new)) - added - swapped
    views = {"added": added, "swapped": swapped, "dropped": dropped, "unchanged": unchanged}
    return {"promoted_before": {"views": views, "revision": latest}}


def _renew(work: Workspace, planned: Plan) -> None:
    """The environment's time runs anew from a plan that was applied, also from one that had nothing to do."""
    work.store.environments.expire(planned.environment, planned.new.expires_at)


def _run_tests(work: Workspace, out: Output) -> None:
    """The unit tests; a failed one ends the verb before anything is planned."""
    tests = work.project.tests
    if not tests:
        return
    started = time.monotonic()
    results = run_unit_tests(work.engine, work.project, tests)
    out.tests(results, time.monotonic() - started)
    failed = [result for result in results if not result.ok]
    if failed:
        names = ", ".join(f"`{result.test.name}`" for result in failed)
        raise MergeplanError(f"Unit tests failed: {names}.", place=failed[0].test.place, hint="Nothing was planned.")
