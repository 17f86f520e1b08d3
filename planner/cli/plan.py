"""plan, apply, run: what changed, what it costs, and making it so."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from planner.checks.unit_tests import run_unit_tests
from planner.cli.failure import report
from planner.cli.json_lines import JsonLines
from planner.cli.linting import check_rules
from planner.cli.openlineage import openlineage
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
from planner.cli.terminal import Terminal
from planner.cli.workspace import Workspace, moment, opened, workspace
from planner.costs import Estimate
from planner.environment import PROD, checked_name
from planner.errors import MergeplanError, Refused
from planner.executor import Outcome
from planner.executor import apply as apply_plan
from planner.forecast import forecast
from planner.plan import Plan, build_run
from planner.promotion import recover
from planner.schedule import Window
from planner.state import Lease

LEASE_WAIT = 3600.0  # seconds to stand in line for an environment that somebody else is changing
Output = Terminal | JsonLines


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
@click.option("--start", metavar="DATE", help="Compute from this day on only.")
@click.option("--end", metavar="DATE", help="Compute up to and including this day only.")
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
    asked = Asked(
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
    )
    out: Output = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway, "backfill", flags["execution_time"]) as work:
        asked = checked_request(work, asked)
        if isinstance(out, Terminal):  # a program says itself what it wants
            settings = work.project.config.plan
            out.diffs = not (settings.no_diff or flags["no_diff"])
            flags["auto_apply"] |= settings.auto_apply and not flags["no_prompts"]
        if not flags["skip_linter"]:
            check_rules(work.project, out)
        planned = _planned(work, asked, out, skip_tests=flags["skip_tests"])
        if flags["explain"]:
            return _explained(work, out, planned)
        out.plan(planned, _estimates(work, planned))
        if planned.is_empty and flags["auto_apply"] and not planned.blockers:
            _renew(work, planned)
        if planned.is_empty or planned.blockers:
            return _unapplied(out, planned)
        save(work, planned, asked)
        if not flags["auto_apply"] and not _agreed(out, planned, flags["no_prompts"]):
            return 0
        return _applied(work, out, planned, asked, flags["note"], expected=flags["expect_promise"])


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
    with opened(root, gateway, "backfill") as work:
        asked = saved_request(work, plan_id)
        now = unmoved(work, plan_id, asked)
        out.plan(now, _estimates(work, now))
        if now.is_empty or now.blockers:
            return _unapplied(out, now)
        return _applied(work, out, now, asked, note)


@click.command()
@click.argument("environment", default=PROD)
@click.option("--end", metavar="DATE", help="Compute up to and including this day only.")
@click.option("--note", default="", help="Why, for the record.")
@execution_time_option
@output_option
@workspace
def run(environment: str, root: Path, gateway: str | None, output: str, **flags: Any) -> int:
    """Compute what has come due in ENVIRONMENT (prod by default) since its tables were last filled.

    The models are those that the environment shows, whatever the project's files say by now; views stay as they are.

    \b
    mergeplan run
    mergeplan run dev
    mergeplan run --execution-time 2026-01-31
    """
    out: Output = JsonLines() if output == "json" else Terminal()
    name = checked_name(environment)
    with opened(root, gateway, "backfill", flags["execution_time"]) as work:
        window = Window(work.now, end=moment(flags["end"], work.now, end=True))
        work.environment(name)
        with work.store.lease(name, f"run of {name}", wait=LEASE_WAIT) as lease:
            recover(work.store, work.engine, out.event, lease)
            due = build_run(work.environment(name), work.loaded()[0], window, work.store.environment(PROD))
            out.due(due, _estimates(work, due))
            if due.is_empty:
                return _unapplied(out, due)
            outcome = _carried_out(work, out, due, lease, note=flags["note"])
    return _told(out, outcome)


def _planned(work: Workspace, asked: Asked, out: Output, *, skip_tests: bool) -> Plan:
    """The plan, and the unit tests before it is shown; a wrong project or request is told before Spark is started."""
    if asked.restate:
        return planned_for(work, asked, {})  # of what the environment shows: no file is looked at
    planned = planned_for(work, asked, work.project.models)
    if not skip_tests:
        _run_tests(work, out)
    return planned_for(work, asked, work.models) if work.strangers else planned


def _estimates(work: Workspace, planned: Plan) -> Mapping[str, Estimate]:
    """What the plan's backfills would cost; Spark is asked only when it runs already."""
    return forecast(planned, work.store, work.engine if work.has_engine else None, work.now)


def _explained(work: Workspace, out: Output, planned: Plan) -> int:
    out.plan(planned, _estimates(work, planned))
    if isinstance(out, Terminal):
        out.explain(planned)
    else:
        out.result(not planned.blockers)
    return Refused.exit_code if planned.blockers else 0


def _unapplied(out: Output, planned: Plan) -> int:
    """An empty plan is done; a blocked one is refused, each blocker told."""
    if isinstance(out, JsonLines):
        for blocker in planned.blockers:
            out.error(Refused(blocker.message, place=blocker.place))
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


def _applied(work: Workspace, out: Output, planned: Plan, asked: Asked, note: str, expected: str | None = None) -> int:
    for word in planned.words:
        work.store.record_word(planned.environment, replace(word, at=word.at or work.now))
    started = time.monotonic()
    with work.store.lease(planned.environment, f"plan {planned.id}", wait=LEASE_WAIT) as lease:
        planned = current(work, planned, asked, lease)
        outcome = _carried_out(
            work, out, planned, lease, asked.who, note, not asked.skip_backfill,
            replan=None if asked.restate else lambda: planned_for(work, asked, work.models),
        )  # fmt: skip
        if not outcome.failures:
            _renew(work, planned)
    final = outcome.plan or planned
    if final != planned:
        out.revised(final, _estimates(work, planned))
    work.store.close_plan(planned.id, "failed" if outcome.failures else "applied")
    seconds = round(time.monotonic() - started, 3)
    return _told(out, outcome, {"seconds": seconds, "expected": expected in (None, final.promise)})


def _renew(work: Workspace, planned: Plan) -> None:
    """The environment's time runs anew from a plan that was applied, also from one that had nothing to do."""
    work.store.expire(planned.environment, planned.new.expires_at)


def _carried_out(
    work: Workspace,
    out: Output,
    planned: Plan,
    lease: Lease,
    who: str = "",
    note: str = "",
    complete: bool = True,
    replan: Callable[[], Plan] | None = None,
) -> Outcome:
    with openlineage(work, planned, out) as told:
        told.outcome = apply_plan(
            planned, work.project, work.engine, work.store, lease,
            now=work.now, emit=told.event, who=who, note=note, complete=complete, replan=replan,
        )  # fmt: skip
    return told.outcome


def _told(out: Output, outcome: Outcome, more: Mapping[str, object] | None = None) -> int:
    """Tell how it ended; the exit code is that of the first failure."""
    if isinstance(out, Terminal):
        out.finished()
    elif not outcome.failures:
        out.result(True, outcome, more)
    return _failed(out, outcome) if outcome.failures else 0


def _failed(out: Output, outcome: Outcome) -> int:
    errors = [failure.error for failure in outcome.failures]
    if isinstance(out, JsonLines):
        for error in errors:
            out.error(error)
        out.result(False, outcome)
    else:
        for error in errors:
            report(error, as_json=False)
    return errors[0].exit_code


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
