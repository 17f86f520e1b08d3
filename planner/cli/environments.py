"""environments, rollback, invalidate, janitor, migrate: what stands, what stood, and what may go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from planner.apply.events import Promoted, PromotionRecovered, Recovery, silent
from planner.apply.janitor import drop_expired, expired, sweep, unneeded
from planner.apply.promotion import drop_environment
from planner.apply.promotion import rollback as roll_back
from planner.cli.json_lines import JsonLines
from planner.cli.plan import output_option
from planner.cli.running import LEASE_WAIT, Output
from planner.cli.terminal import Terminal, counted
from planner.cli.workspace import Workspace, opened, workspace
from planner.errors import RequestError
from planner.snapshot.environment import PROD, Environment, checked_name
from planner.state.environments import Action, Revision
from planner.state.store import StateStore


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
    out = _output(output)
    with opened(root, gateway, hear=out.event, only_looks=True) as work:
        if environment is None:
            rows = [_environment(each) for each in work.store.environments.all()]
        else:
            name = work.environment(checked_name(environment)).name
            rows = [_revision(each) for each in work.store.environments.history(name)]
    if isinstance(out, JsonLines):
        out.result(True, None, {"revisions" if environment else "environments": rows})
    elif rows:
        click.echo(_aligned(rows))
    else:
        click.echo("There is no environment yet. `mergeplan plan` makes prod.")
    return 0


@click.command()
@click.argument("environment")
@click.option("--to", "revision", type=click.IntRange(min=1), help="The revision to go back to; else the one before.")
@click.option("--who", default="", help="Who wants it, for the history.")
@click.option("--note", default="", help="Why, for the history.")
@output_option
@workspace
def rollback(
    environment: str, revision: int | None, who: str, note: str, root: Path, gateway: str | None, output: str
) -> int:
    """Point ENVIRONMENT back to what it showed before; nothing is computed.

    \b
    mergeplan rollback prod
    mergeplan rollback prod --to 3
    """
    name, out = checked_name(environment), _output(output)
    with opened(root, gateway, hear=out.event, about={name}) as work:
        work.environment(name)
        with work.store.leases.hold(name, f"rollback of {name}", wait=LEASE_WAIT) as lease:
            work.settle(lease)
            if (found := _finished(work, name, Action.ROLLED_BACK)) and _went_there(work.store, found, revision):
                return _again(out, found, f"The interrupted rollback of `{name}` is finished")
            jobs = work.engine.jobs()
            done = roll_back(work.store, work.engine, lease, revision, emit=out.event, who=who, note=note)
            jobs = work.engine.jobs() - jobs
    _told(out, done, jobs, f"`{name}` shows again what it showed before; this is its revision {done.revision}")
    return 0


@click.command()
@click.argument("environment")
@click.option("-s", "--sync", is_flag=True, help="Return when it is gone; it always is by then.")
@click.option("--who", default="", help="Who wants it, for the history.")
@output_option
@workspace
def invalidate(environment: str, sync: bool, who: str, root: Path, gateway: str | None, output: str) -> int:
    """Drop ENVIRONMENT at once: its views, and the tables that only it used. Prod cannot be dropped.

    \b
    mergeplan invalidate dev
    """
    name, out = checked_name(environment), _output(output)
    if name == PROD:
        raise RequestError("`prod` cannot be dropped.", hint="Only environments beside it can.")
    with opened(root, gateway, hear=out.event, about={name}) as work:
        with work.store.leases.hold(name, f"invalidation of {name}", wait=LEASE_WAIT) as lease:
            work.settle(lease)
            found = _finished(work, name, Action.DROPPED)
            if found is None or work.store.environments.get(name).exists:
                work.environment(name)
                done = drop_environment(work.store, work.engine, lease, emit=out.event, who=who)
            else:
                done = Promoted(name, found.revision, 0, 0, len(found.views), 0)
        work.store.overrides.forget(name)
        tables = sweep(work.store, work.engine, work.now, orphans=True, emit=out.event)
    _told(out, done, 0, f"`{name}` is gone, and with it {counted(len(tables), 'table')}", tables=list(tables))
    return 0


@click.command()
@click.option(
    "--days", type=click.IntRange(min=0), help="How long to keep what history refers to (else `snapshot_ttl`, or 14)."
)
@click.option("--ignore-ttl", is_flag=True, help="Keep no table for the sake of history: the same as --days 0.")
@click.option("--dry-run", is_flag=True, help="Say what would be dropped, and drop nothing.")
@output_option
@workspace
def janitor(days: int | None, ignore_ttl: bool, dry_run: bool, root: Path, gateway: str | None, output: str) -> int:
    """Drop the environments that have expired, and the tables that no environment, no recent history and no open plan
    refers to.

    \b
    mergeplan janitor
    mergeplan janitor --days 3 --dry-run
    """
    out = _output(output)
    with opened(root, gateway, hear=out.event, only_looks=dry_run) as work:
        retention = work.retention if days is None else timedelta(days=days)
        retention = timedelta(0) if ignore_ttl else retention
        pinned = {name.lower() for name in work.project.config.pinned_environments}
        if dry_run:
            over = expired(work.store, work.now, pinned)
            tables = tuple(unneeded(work.store, work.now, retention))
        else:
            over = drop_expired(work.store, work.engine, work.now, pinned, emit=silent)
            tables = sweep(work.store, work.engine, datetime.now(UTC), retention, emit=out.event)
    if isinstance(out, JsonLines):
        out.result(True, None, {"environments": list(over), "tables": list(tables), "dropped": not dry_run})
        return 0
    out.finished()
    for name in over:
        out.say(f"`{name}` has expired and {'would be dropped' if dry_run else 'is dropped'}.")
    for table in tables if dry_run else ():
        out.say(table)
    out.say(f"{counted(len(tables), 'table')} {'would be dropped' if dry_run else 'dropped'}.")
    return 0


@click.command()
@output_option
@workspace
def migrate(root: Path, gateway: str | None, output: str) -> int:
    """Bring the state database up to date; the other verbs do it too when they first open it.

    \b
    mergeplan migrate
    """
    out = _output(output)
    with opened(root, gateway, hear=out.event, only_looks=True) as work:
        work.store.environments.all()
    if isinstance(out, JsonLines):
        out.result(True)
    else:
        click.echo("The state database is up to date.")
    return 0


def _finished(work: Workspace, name: str, action: Action) -> PromotionRecovered | None:
    """The promotion of that sort which a crash had left, and which this verb has just finished."""
    mine = (each for each in work.recovered if each.environment == name and each.ended is Recovery.FINISHED)
    return next((each for each in mine if each.action == action), None)


def _went_there(store: StateStore, found: PromotionRecovered, revision: int | None) -> bool:
    """True when the rollback that was finished is the one that is asked for again: a second would go further back."""
    if revision is None:
        return True
    rows = {row.revision: row.snapshots for row in store.environments.history(found.environment)}
    return rows.get(revision) == rows[found.revision]


def _again(out: Output, found: PromotionRecovered, sentence: str) -> int:
    done = Promoted(found.environment, found.revision, 0, len(found.views), 0, 0)
    _told(out, done, 0, f"{sentence}; this is its revision {found.revision}")
    return 0


def _environment(shown: Environment) -> dict[str, object]:
    return {
        "name": shown.name,
        "revision": shown.revision,
        "plan_id": shown.plan_id,
        "promoted_at": shown.promoted_at.isoformat() if shown.promoted_at else None,
        "models": len(shown.snapshots),
        "views": len(shown.views),
        "expires_at": shown.expires_at.isoformat() if shown.expires_at else None,
    }


def _revision(row: Revision) -> dict[str, object]:
    return {
        "revision": row.revision,
        "action": str(row.action),
        "plan_id": row.plan_id,
        "at": row.at.isoformat(),
        "models": len(row.snapshots),
        "who": row.who,
        "note": row.note,
    }


def _aligned(rows: list[dict[str, object]]) -> str:
    """Rows under their titles; a moment to the second."""
    cells = [[title.replace("_", " ") for title in rows[0]]]
    for row in rows:
        cells.append([_cell(key, value) for key, value in row.items()])
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    return "\n".join("  ".join(f"{text:<{w}}" for text, w in zip(line, widths, strict=True)).rstrip() for line in cells)


def _cell(title: str, value: object) -> str:
    if value is None:
        return "never"
    return str(value)[:19].replace("T", " ") if title.endswith("at") else str(value)


def _output(output: str) -> Output:
    return JsonLines() if output == "json" else Terminal()


def _told(out: Output, done: Promoted, jobs: int, sentence: str, **more: object) -> None:
    counts = {"added": done.added, "swapped": done.swapped, "dropped": done.dropped, "unchanged": done.unchanged}
    promotion = {"views": counts, "spark_jobs": jobs, "revision": done.revision}
    if isinstance(out, JsonLines):
        out.result(True, None, {"applied": True, "promotion": promotion, **more})
    else:
        out.finished()
        out.say(f"\n{sentence}.")
