"""Transitions of planning: from a new head to the end of its run. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from mergeplan.bot.pull_parts import MovedTable, PlanBase, ProjectPlace, PullSource, StackBase
from mergeplan.bot.records import Pull, PullRecord, PullState

MOVED_MAX = 5  # tables of other projects that are named
Transition = Callable[[PullRecord], PullRecord]


@dataclass(frozen=True)
class PlanningStart:
    head: str
    run_id: str
    reason: str
    source: PullSource
    place: ProjectPlace
    environment: str
    stack: StackBase
    shows_deployments: bool


@dataclass(frozen=True)
class RunResult:
    """How a run of the planner ended: its lines as `pack_outcome` packs them, and when (ISO 8601)."""

    state: PullState
    lines: str
    planned_at: str


def hold_fork(record: PullRecord, pull: Pull) -> PullRecord:
    return replace(
        set_head(record, pull),
        state=PullState.HELD,
        run=replace(record.run, lines=""),
        reason="",
        wishes=replace(record.wishes, overrides=()),
        permits=replace(record.permits, allowed_head=""),
    )


def skip_planning(record: PullRecord, pull: Pull, label: str, *, forward_only: bool) -> PullRecord:
    """Have no plan of this head, and drop that of an older one, so that it is not mistaken for this head's."""
    rules = record.rules
    return replace(
        record,
        state=PullState.SKIPPED,
        head=pull.head,
        reason="",
        source=PullSource(pull.author, pull.base_ref, forward_only),
        run=replace(record.run, lines="", planned_at="", progress="", fresh=False, attempts=0, spark_losses=0),
        shown=replace(record.shown, head="", since=""),
        wishes=replace(record.wishes, overrides=()),
        # No freeze that begins or ends changes what has no plan.
        rules=replace(rules, skip_label=label, decision=replace(rules.decision, changes_at=0.0)),
    )


def wait_for_prod(record: PullRecord, pull: Pull, environment: str) -> PullRecord:
    waiting = replace(set_head(record, pull), state=PullState.WAITING)
    return replace(waiting, environment=replace(record.environment, name=environment))


def wait_for_layer(record: PullRecord, pull: Pull, environment: str, now: float) -> PullRecord:
    waiting = wait_for_prod(record, pull, environment)
    return replace(waiting, stack=replace(record.stack, planned_on=pull.stack, waits_since=now))


def begin_planning(record: PullRecord, start: PlanningStart) -> PullRecord:
    """Begin a run; overrides and attempts of another head do not count."""
    overrides = tuple(override for override in record.wishes.overrides if override.head == start.head)
    earlier = record.run if record.head == start.head else replace(record.run, attempts=0, spark_losses=0)
    return replace(
        record,
        state=PullState.PLANNING,
        head=start.head,
        reason=start.reason,
        source=start.source,
        place=start.place,
        run=replace(earlier, id=start.run_id, progress="", fresh=False),
        environment=replace(record.environment, name=record.environment.name or start.environment),
        stack=replace(record.stack, planned_on=start.stack, is_level=True, changes=None, rows="", waits_since=0.0),
        wishes=replace(record.wishes, again=False, sources_moved=False, overrides=overrides),
        rules=replace(record.rules, shows_deployments=start.shows_deployments),
    )


def set_head(record: PullRecord, pull: Pull) -> PullRecord:
    return replace(record, head=pull.head, source=replace(record.source, base_ref=pull.base_ref))


def set_plan_base(
    record: PullRecord, base: PlanBase, *, edits_rules: bool, changes_rules: bool, is_level: bool
) -> PullRecord:
    rules = replace(record.rules, edits_rules=edits_rules, changes_rules=changes_rules)
    return replace(record, base=base, rules=rules, stack=replace(record.stack, is_level=is_level))


def carry_plan_over(record: PullRecord, base: PlanBase) -> PullRecord:
    """Keep the plan on prod's new commit: it shows and promises the same."""
    shown = record.shown
    revision = base.prod_revision if shown.head == record.head else shown.revision
    return replace(record, base=base, shown=replace(shown, revision=revision))


def store_plan(record: PullRecord, lines: str, planned_at: str) -> PullRecord:
    run = replace(record.run, lines=lines, fresh=True, planned_at=planned_at, progress="", spark_ui="")
    return replace(record, run=run)


def report_progress(record: PullRecord, progress: str) -> PullRecord:
    return replace(record, run=replace(record.run, progress=progress))


def set_spark_ui(record: PullRecord, address: str) -> PullRecord:
    return replace(record, run=replace(record.run, spark_ui=address))


def retry_run(record: PullRecord, progress: str = "", *, lost_spark: bool = False) -> PullRecord:
    run = record.run
    losses = run.spark_losses + lost_spark
    return replace(
        record, run=replace(run, attempts=run.attempts + 1, spark_losses=losses, progress=progress or run.progress)
    )


def reset_attempts(record: PullRecord) -> PullRecord:
    return replace(record, run=replace(record.run, attempts=0, spark_losses=0))


def give_way(record: PullRecord, reason: str = "") -> PullRecord:
    """End a run without a result: another one follows."""
    run = replace(record.run, progress="", fresh=False)
    return replace(record, state=PullState.NEW, reason=reason, run=run)


def conclude_run(
    record: PullRecord, result: RunResult, used: frozenset[tuple[str, str]], *, again: bool = False
) -> PullRecord:
    """Store the end of a run; overrides that it used are no longer pending, later ones are."""
    pending = (override for override in record.wishes.overrides if (override.model, override.category) not in used)
    run = replace(record.run, lines=result.lines, planned_at=result.planned_at, progress="", fresh=False)
    run = replace(run, attempts=0, spark_losses=0)
    wishes = replace(record.wishes, again=again, overrides=tuple(pending))
    return replace(record, state=result.state, reason="", run=run, wishes=wishes)


def fail_planning(record: PullRecord, pull: Pull, lines: str, planned_at: str) -> PullRecord:
    used = frozenset((override.model, override.category) for override in record.wishes.overrides)
    return conclude_run(set_head(record, pull), RunResult(PullState.FAILED, lines, planned_at), used)


def wait_for_files(record: PullRecord, pull: Pull, progress: str) -> PullRecord:
    source = replace(record.source, base_ref=pull.base_ref, author=pull.author)
    waiting = replace(record, state=PullState.PLANNING, head=pull.head, source=source)
    return report_progress(waiting, progress)


def request_plan(record: PullRecord) -> PullRecord:
    return replace(record, wishes=replace(record.wishes, again=True))


def note_moved_sources(record: PullRecord, tables: Iterable[str] = (), at: str = "") -> PullRecord:
    """Ask for another plan of a head that has one, or will have: another project changed tables that it reads."""
    if record.state not in (PullState.PLANNING, PullState.PLANNED, PullState.FAILED):
        return record
    moved = {table.name: table for table in record.nearby.moved} | {name: MovedTable(name, at) for name in tables}
    nearby = replace(record.nearby, moved=tuple(moved.values())[-MOVED_MAX:])
    return replace(record, wishes=replace(record.wishes, sources_moved=True), nearby=nearby)


def cancel_planning(record: PullRecord, reason: str) -> PullRecord:
    wishes, base = replace(record.wishes, again=False, overrides=()), replace(record.base, tree="")
    return replace(report_progress(record, ""), state=PullState.CANCELLED, reason=reason, wishes=wishes, base=base)
