"""plan, apply, run: what changed, what it costs, and making it so."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from planner.checks.unit_tests import run_unit_tests
from planner.cli.json_lines import JsonLines
from planner.cli.plan_json import plan_json
from planner.cli.terminal import Terminal
from planner.cli.workspace import Workspace, instant_option, opened, workspace
from planner.environment import PROD, checked_name
from planner.errors import MergeplanError, PlanMoved, Refused, RequestError
from planner.executor import Outcome
from planner.executor import apply as apply_plan
from planner.plan import Category, Plan, Request, build_plan, build_run
from planner.promotion import recover
from planner.schedule import Window
from planner.state import Lease

LEASE_WAIT = 3600.0  # seconds to stand in line for an environment that somebody else is changing
Output = Terminal | JsonLines


@dataclass(frozen=True)
class Asked:
    """What a person asked of a plan, kept with it so that it can be made again and compared."""

    environment: str
    start: str | None = None
    end: str | None = None
    categories: Mapping[str, str] | None = None
    skip_backfill: bool = False
    words_from: str | None = None
    who: str = ""


def output_option(command: Any) -> Any:
    """`--output text|json`."""
    return click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)(
        command
    )


@click.command()
@click.argument("environment", default=PROD)
@click.option("--auto-apply", is_flag=True, help="Apply without asking.")
@click.option("--explain", is_flag=True, help="Show what applying would do, and do nothing.")
@click.option("--start", metavar="DATE", help="Compute from this day on only.")
@click.option("--end", metavar="DATE", help="Compute up to and including this day only.")
@click.option(
    "--categorize", multiple=True, metavar="MODEL=CATEGORY", help="breaking or non-breaking, for a changed model."
)
@click.option("--skip-backfill", is_flag=True, help="Create tables and views, and leave new tables empty.")
@click.option("--skip-tests", is_flag=True, help="Do not run the unit tests first.")
@click.option("--no-prompts", is_flag=True, help="Show the plan without asking; apply it later with `mergeplan apply`.")
@click.option("--who", default="", help="Whose categories these are, for the record.")
@click.option("--words-from", metavar="ENV", help="Also heed the categories that were given in that environment.")
@click.option(
    "--expect-promise", metavar="HASH", help="The promise of the plan that was reviewed; told apart in the result."
)
@click.option("--note", default="", help="Why, for the environment's history.")
@output_option
@workspace
def plan(
    environment: str, root: Path, gateway: str | None, output: str, categorize: tuple[str, ...], **flags: Any
) -> int:
    """Show what ENVIRONMENT (prod by default) would become, and apply it if you say so.

    \b
    mergeplan plan                     plan prod
    mergeplan plan dev                 plan an environment of your own, from prod
    mergeplan plan dev --auto-apply    without asking
    mergeplan plan --explain           show each step, do nothing
    mergeplan plan dev --categorize shop.orders=non-breaking
    """
    asked = Asked(
        checked_name(environment),
        flags["start"],
        flags["end"],
        _categories(categorize),
        flags["skip_backfill"],
        checked_name(flags["words_from"]) if flags["words_from"] else None,
        flags["who"],
    )
    out: Output = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway, "backfill") as work:
        if not flags["skip_tests"]:
            _run_tests(work, out)
        if flags["explain"]:
            return _explained(work, out, asked)
        planned = _shown(work, out, asked)
        if planned.is_empty or planned.blockers:
            return _unapplied(out, planned)
        _save(work, planned, asked)
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
        saved = work.store.plan(plan_id)
        asked = Asked(**saved.options)
        now = _planned(work, asked)
        if now.id != plan_id:
            raise PlanMoved(
                f"Plan {plan_id} no longer holds: {_moved(saved.components, _components(work, now))}.",
                hint=f"Plan again: `mergeplan plan {asked.environment}` makes {now.id} now.",
            )
        if now.is_empty or now.blockers:
            out.plan(now, {})
            return _unapplied(out, now)
        return _applied(work, out, now, asked, note)


@click.command()
@click.argument("environment", default=PROD)
@click.option("--end", metavar="DATE", help="Compute up to and including this day only.")
@click.option("--note", default="", help="Why, for the record.")
@output_option
@workspace
def run(environment: str, root: Path, gateway: str | None, output: str, end: str | None, note: str) -> int:
    """Compute what has come due in ENVIRONMENT (prod by default) since its tables were last filled.

    The models are those that the environment shows, whatever the project's files say by now; views stay as they are.

    \b
    mergeplan run
    mergeplan run dev
    """
    out: Output = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway, "backfill") as work:
        name = checked_name(environment)
        with work.store.lease(name, f"run of {name}", wait=LEASE_WAIT) as lease:
            recover(work.store, work.engine, out.event, lease)
            window = Window(work.now, end=instant_option(end, work.now, end=True))
            due = build_run(work.environment(name), work.loaded()[0], window)
            out.plan(due, {})
            if due.is_empty:
                return _unapplied(out, due)
            outcome = _carried_out(work, out, due, lease, note=note)
    return _told(out, outcome)


def _explained(work: Workspace, out: Output, asked: Asked) -> int:
    planned = _shown(work, out, asked)
    if isinstance(out, Terminal):
        out.explain(planned)
    else:
        out.result(not planned.blockers)
    return Refused.exit_code if planned.blockers else 0


def _shown(work: Workspace, out: Output, asked: Asked) -> Plan:
    planned = _planned(work, asked)
    out.plan(planned, {})
    return planned


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
        planned = _current(work, planned, asked, lease)
        outcome = _carried_out(work, out, planned, lease, asked.who, note, complete=not asked.skip_backfill)
    work.store.close_plan(planned.id, "failed" if outcome.failures else "applied")
    seconds = round(time.monotonic() - started, 3)
    return _told(out, outcome, {"seconds": seconds, "expected": expected in (None, planned.promise)})


def _carried_out(
    work: Workspace, out: Output, planned: Plan, lease: Lease, who: str = "", note: str = "", complete: bool = True
) -> Outcome:
    return apply_plan(
        planned, work.project, work.engine, work.store, lease,
        now=work.now, emit=out.event, who=who, note=note, complete=complete,
    )  # fmt: skip


def _current(work: Workspace, planned: Plan, asked: Asked, lease: Lease) -> Plan:
    """The plan as of now that the lease is ours: whoever held it may have promoted, and a crash may have left a
    promotion half done. The same id means the same decisions."""
    if work.store.pending_promotions():
        recover(work.store, work.engine, lambda _event: None, lease)
    again = _planned(work, asked)
    if again.id != planned.id:
        raise PlanMoved("Something moved while this plan waited.", hint=f"Plan `{asked.environment}` again.")
    return again


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
            click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
            click.echo(str(error), err=True)
    return errors[0].exit_code


def _planned(work: Workspace, asked: Asked) -> Plan:
    """The plan for what was asked, as things are now."""
    store = work.store
    start, end = instant_option(asked.start, work.now), instant_option(asked.end, work.now, end=True)
    if start and end and start >= end:
        raise RequestError(f"The end {asked.end} lies before the start {asked.start}.")
    categories = {name: Category(category) for name, category in (asked.categories or {}).items()}
    words = store.words(asked.environment)
    if asked.words_from:
        words = (*words, *store.words(asked.words_from))
    loaded, owners = work.loaded()
    base = store.environment(PROD)
    target = base if asked.environment == PROD else store.environment(asked.environment)
    request = Request(Window(work.now, start, end), categories, asked.skip_backfill, asked.who)
    return build_plan(work.models(), target, base, loaded, request, words, owners)


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


def _save(work: Workspace, planned: Plan, asked: Asked) -> None:
    tables = [change.new.table for change in planned.changes if change.new]
    work.store.save_plan(
        planned.id,
        planned.environment,
        tables=tables,
        options={**asdict(asked), "categories": dict(asked.categories or {})},
        components=_components(work, planned),
        result=plan_json(planned, {}),
    )


def _components(work: Workspace, planned: Plan) -> dict[str, str]:
    """What a plan stands on, piece by piece, so that it can be said which of them moved."""
    return {
        "the project's files": work.project.files,
        "the models of prod that it replaces": repr(sorted((c.name, c.old.version) for c in planned.changes if c.old)),
        "the day": repr([str(i) for c in planned.changes for i in c.needed]),
        "somebody's category": repr(sorted((word.model, str(word.category)) for word in planned.words)),
    }


def _moved(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    moved = [name for name, value in now.items() if before.get(name) != value]
    return (" and ".join(moved) or "its decisions") + " changed"


def _categories(given: tuple[str, ...]) -> dict[str, str]:
    categories = {}
    for text in given:
        model, equals, category = text.partition("=")
        known = {
            "breaking": Category.BREAKING,
            "non-breaking": Category.NON_BREAKING,
            "non_breaking": Category.NON_BREAKING,
        }
        if not equals or category.strip().lower() not in known:
            raise RequestError(f"`{text}` gives no category.", hint="Write MODEL=breaking or MODEL=non-breaking.")
        categories[model.strip().lower()] = str(known[category.strip().lower()])
    return categories
