"""The transitions of a pull request's record: each takes the record as it is stored and returns the next one. Pure.

`Pulls.update` applies them to the newest record within one transaction. A transition sets the fields that it is about
and copies the rest, so two writers of different fields lose nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.pull_parts import (
    NOT_REVERSED,
    PendingOverride,
    PlanBase,
    ProjectPlace,
    PullDeploy,
    PullRollback,
    PullSource,
    Reversal,
)
from mergeplan.bot.records import NO_GROUP, Pull, PullRecord, PullState

Transition = Callable[[PullRecord], PullRecord]


@dataclass(frozen=True)
class PlanningStart:
    """A run that begins: of which head, and for which environment."""

    head: str
    run_id: str
    reason: str
    source: PullSource
    place: ProjectPlace
    environment: str
    shows_deployments: bool


@dataclass(frozen=True)
class RunResult:
    """How a run of the planner ended: its lines as `pack_outcome` packs them, and when (ISO 8601)."""

    state: PullState
    lines: str
    planned_at: str


# --- planning ---


def hold_fork(record: PullRecord, pull: Pull) -> PullRecord:
    """Wait until a maintainer allows this head of a fork."""
    return replace(
        set_head(record, pull),
        state=PullState.HELD,
        run=replace(record.run, lines=""),
        reason="",
        permits=replace(record.permits, allowed_head=""),
    )


def skip_planning(record: PullRecord, pull: Pull, label: str, *, forward_only: bool) -> PullRecord:
    """Have no plan of this head: nobody may take the plan of an older one for it."""
    rules = record.rules
    return replace(
        record,
        state=PullState.SKIPPED,
        head=pull.head,
        reason="",
        source=PullSource(pull.author, pull.base_ref, forward_only),
        run=replace(record.run, lines="", planned_at="", progress="", fresh=False, attempts=0),
        shown=replace(record.shown, head="", since=""),
        wishes=replace(record.wishes, overrides=()),
        # No freeze that begins or ends changes what has no plan.
        rules=replace(rules, skip_label=label, decision=replace(rules.decision, changes_at=0.0)),
    )


def wait_for_prod(record: PullRecord, pull: Pull, environment: str) -> PullRecord:
    """Wait until prod has been built for the first time."""
    waiting = replace(set_head(record, pull), state=PullState.WAITING)
    return replace(waiting, environment=replace(record.environment, name=environment))


def begin_planning(record: PullRecord, start: PlanningStart) -> PullRecord:
    """Begin a run; overrides and attempts of another head do not count."""
    overrides = tuple(override for override in record.wishes.overrides if override.head == start.head)
    attempts = record.run.attempts if record.head == start.head else 0
    return replace(
        record,
        state=PullState.PLANNING,
        head=start.head,
        reason=start.reason,
        source=start.source,
        place=start.place,
        run=replace(record.run, id=start.run_id, progress="", fresh=False, attempts=attempts),
        environment=replace(record.environment, name=record.environment.name or start.environment),
        wishes=replace(record.wishes, again=False, overrides=overrides),
        rules=replace(record.rules, shows_deployments=start.shows_deployments),
    )


def set_head(record: PullRecord, pull: Pull) -> PullRecord:
    """Set the head and the branch that it goes into."""
    return replace(record, head=pull.head, source=replace(record.source, base_ref=pull.base_ref))


def set_plan_base(record: PullRecord, base: PlanBase, *, edits_rules: bool, changes_rules: bool) -> PullRecord:
    """Set what the plan is made against, and whether the head edits the rules."""
    rules = replace(record.rules, edits_rules=edits_rules, changes_rules=changes_rules)
    return replace(record, base=base, rules=rules)


def carry_plan_over(record: PullRecord, base: PlanBase) -> PullRecord:
    """Keep the plan on prod's new commit: it shows and promises the same."""
    shown = record.shown
    revision = base.prod_revision if shown.head == record.head else shown.revision
    return replace(record, base=base, shown=replace(shown, revision=revision))


def store_plan(record: PullRecord, lines: str, planned_at: str) -> PullRecord:
    """Store a plan whose tables are being built."""
    run = replace(record.run, lines=lines, fresh=True, planned_at=planned_at, spark_ui="")
    return replace(record, run=run)


def report_progress(record: PullRecord, progress: str) -> PullRecord:
    return replace(record, run=replace(record.run, progress=progress))


def set_spark_ui(record: PullRecord, address: str) -> PullRecord:
    return replace(record, run=replace(record.run, spark_ui=address))


def retry_run(record: PullRecord, progress: str = "") -> PullRecord:
    """Count a run that failed and is tried again."""
    run = record.run
    return replace(record, run=replace(run, attempts=run.attempts + 1, progress=progress or run.progress))


def reset_attempts(record: PullRecord) -> PullRecord:
    return replace(record, run=replace(record.run, attempts=0))


def give_way(record: PullRecord, reason: str = "") -> PullRecord:
    """End a run without a result: another one follows."""
    run = replace(record.run, progress="", fresh=False)
    return replace(record, state=PullState.NEW, reason=reason, run=run)


def conclude_run(
    record: PullRecord, result: RunResult, used: frozenset[tuple[str, str]], *, again: bool = False
) -> PullRecord:
    """Store the end of a run; overrides that it used are no longer pending, later ones are."""
    pending = (override for override in record.wishes.overrides if (override.model, override.category) not in used)
    run = replace(record.run, lines=result.lines, planned_at=result.planned_at, progress="", fresh=False, attempts=0)
    wishes = replace(record.wishes, again=again, overrides=tuple(pending))
    return replace(record, state=result.state, reason="", run=run, wishes=wishes)


def fail_planning(record: PullRecord, pull: Pull, lines: str, planned_at: str) -> PullRecord:
    """End the planning of this head with an error."""
    used = frozenset((override.model, override.category) for override in record.wishes.overrides)
    return conclude_run(set_head(record, pull), RunResult(PullState.FAILED, lines, planned_at), used)


def wait_for_files(record: PullRecord, pull: Pull, progress: str) -> PullRecord:
    """Wait until git can read the files of this head."""
    source = replace(record.source, base_ref=pull.base_ref, author=pull.author)
    waiting = replace(record, state=PullState.PLANNING, head=pull.head, source=source)
    return report_progress(waiting, progress)


def request_plan(record: PullRecord) -> PullRecord:
    """Ask for another plan of the same head."""
    return replace(record, wishes=replace(record.wishes, again=True))


def cancel_planning(record: PullRecord, reason: str) -> PullRecord:
    wishes = replace(record.wishes, again=False)
    return replace(report_progress(record, ""), state=PullState.CANCELLED, reason=reason, wishes=wishes)


# --- requests of people ---


def select_models(record: PullRecord, select: tuple[str, ...], *, again: bool = False) -> PullRecord:
    """Plan the changes of these models only, from now on; `again` asks for another plan of the same head."""
    return replace(record, wishes=replace(record.wishes, select=select, again=again or record.wishes.again))


def set_overrides(record: PullRecord, overrides: tuple[PendingOverride, ...]) -> PullRecord:
    return replace(record, wishes=replace(record.wishes, overrides=overrides))


def add_override(record: PullRecord, override: PendingOverride) -> PullRecord:
    """Set the category of one model, in place of an earlier one that is not stored yet."""
    others = tuple(pending for pending in record.wishes.overrides if pending.model != override.model)
    return set_overrides(record, (*others, override))


def approve_cost(record: PullRecord, cost: tuple[int, float], head: str) -> PullRecord:
    """Allow the plan of a head to read so many bytes and take so many seconds."""
    return request_plan(replace(record, permits=replace(record.permits, cost=cost, cost_head=head)))


def allow_destructive(record: PullRecord, models: tuple[str, ...], head: str) -> PullRecord:
    """Allow the plan of a head to drop columns of these models."""
    return request_plan(replace(record, permits=replace(record.permits, destructive=models, destructive_head=head)))


def allow_head(record: PullRecord, head: str) -> PullRecord:
    """Allow this head of a fork to be planned."""
    allowed = replace(record, permits=replace(record.permits, allowed_head=head))
    if record.state is not PullState.HELD:
        return allowed
    # The comment showed a head without a plan: commands about a plan have to wait for it.
    return replace(allowed, shown=replace(record.shown, head="", since=""))


def keep_environment(record: PullRecord, until: float) -> PullRecord:
    return replace(record, environment=replace(record.environment, keep_until=until))


def request_destroy(record: PullRecord, who: str) -> PullRecord:
    return replace(record, environment=replace(record.environment, destroy_by=who, keep_until=0.0))


def request_deploy(record: PullRecord, who: str, head: str) -> PullRecord:
    return replace(record, deploy=replace(record.deploy, by=who, head=head))


def request_rollback(record: PullRecord, who: str, revision: int) -> PullRecord:
    """Ask for prod's revision before this pull request; 0 for the one before its own."""
    return replace(record, rollback=replace(record.rollback, by=who, to=revision))


def stop_promotion(record: PullRecord, who: str) -> PullRecord:
    return replace(record, promotion=replace(record.promotion, unlock_by=who))


# --- environments ---


def set_environment_exists(record: PullRecord, exists: bool) -> PullRecord:
    return replace(record, environment=replace(record.environment, exists=exists))


def end_work(record: PullRecord, reason: str = "") -> PullRecord:
    """End all that runs or was asked for."""
    return replace(
        record,
        reason=reason,
        run=replace(record.run, progress="", fresh=False),
        wishes=replace(record.wishes, overrides=(), again=False),
        rollback=replace(record.rollback, by=""),
    )


def close_pull(record: PullRecord) -> PullRecord:
    return replace(end_work(record), state=PullState.CLOSED)


def leave_branch(record: PullRecord, base_ref: str, reason: str) -> PullRecord:
    """End all work; the pull request may go into another branch now."""
    return replace(end_work(record, reason), source=replace(record.source, base_ref=base_ref))


def record_drop(record: PullRecord, state: PullState) -> PullRecord:
    """Store that the environment is gone."""
    return replace(set_environment_exists(reset_attempts(record), False), state=state)


def record_destroy(record: PullRecord, *, is_over: bool) -> PullRecord:
    """Store that the environment was dropped on demand; an open pull request has no plan then."""
    who = record.environment.destroy_by
    dropped = set_environment_exists(reset_attempts(record), False)
    dropped = replace(dropped, environment=replace(dropped.environment, destroy_by=""))
    if is_over:
        return dropped
    cancelled = cancel_planning(dropped, f"{who} dropped its environment; `/plan` builds it again.")
    run, wishes = replace(cancelled.run, fresh=False), replace(cancelled.wishes, overrides=())
    return replace(cancelled, run=run, wishes=wishes)


def drop_group(record: PullRecord) -> PullRecord:
    """Forget the merge queue's group, whose environment is gone."""
    return replace(record, group=NO_GROUP, environment=replace(record.environment, group_exists=False))


# --- GitHub's comment ---


def clear_comment_digest(record: PullRecord) -> PullRecord:
    """Have the plan comment written again."""
    return replace(record, comment=replace(record.comment, digest=""))


# --- prod ---


def await_promotion(record: PullRecord, merge_sha: str) -> PullRecord:
    """Hand a merged pull request to prod's job."""
    return replace(
        record,
        state=PullState.MERGED,
        reason="",
        run=replace(record.run, progress="Waiting for prod's turn."),
        wishes=replace(record.wishes, overrides=(), again=False),
        promotion=replace(record.promotion, merge_sha=merge_sha),
    )


def begin_promotion(record: PullRecord, merge_sha: str, run_id: str) -> PullRecord:
    return replace(
        record,
        state=PullState.MERGED,
        reason="",
        run=replace(record.run, id=run_id, progress="Promoting to prod."),
        wishes=replace(record.wishes, overrides=(), again=False),
        rules=replace(record.rules, held=False),
        promotion=replace(record.promotion, merge_sha=merge_sha, unlock_by=""),
    )


def conclude_promotion(record: PullRecord, lines: str, revision: int, reason: str) -> PullRecord:
    """Store that prod shows the merge since a revision; 0 where nothing had to be promoted."""
    return replace(
        record,
        state=PullState.PROMOTED,
        reason=reason,
        run=replace(record.run, attempts=0, progress=""),
        promotion=replace(record.promotion, lines=lines, revision=revision),
        rollback=replace(record.rollback, reversal=NOT_REVERSED),
        deploy=_end_deploy(record.deploy),
    )


def fail_promotion(record: PullRecord, lines: str) -> PullRecord:
    return replace(
        record,
        state=PullState.UNPROMOTED,
        reason="",
        run=replace(record.run, progress=""),
        promotion=replace(record.promotion, lines=lines),
        deploy=_end_deploy(record.deploy),
    )


def settle_merge(record: PullRecord, reason: str, merge_sha: str = "") -> PullRecord:
    """Store that prod shows a merge that needed no promotion of its own."""
    promotion = replace(record.promotion, merge_sha=merge_sha or record.promotion.merge_sha)
    return replace(report_progress(record, ""), state=PullState.PROMOTED, reason=reason, promotion=promotion)


def hold_merge(record: PullRecord, judged: PullRecord, merge_sha: str, decision: Decision) -> PullRecord:
    """Keep a merge from prod until the rules let it in; reviews are of the plan as it was judged."""
    return replace(
        record,
        state=PullState.MERGED,
        head=judged.head,
        reason="",
        source=replace(record.source, author=judged.source.author, base_ref=judged.source.base_ref),
        place=replace(record.place, site=judged.place.site, folder=judged.place.folder),
        base=judged.base,
        run=replace(record.run, lines=judged.run.lines, progress=""),
        wishes=replace(record.wishes, again=False),
        rules=replace(record.rules, held=True, decision=decision, changes_rules=judged.rules.changes_rules),
        promotion=replace(record.promotion, merge_sha=merge_sha),
    )


def release_merge(record: PullRecord, reason: str) -> PullRecord:
    """Store that a held merge reached prod together with a later step."""
    return replace(settle_merge(record, reason), rules=replace(record.rules, held=False))


def set_decision(record: PullRecord, decision: Decision) -> PullRecord:
    return replace(record, rules=replace(record.rules, decision=decision))


# --- deploys and rollbacks ---


def begin_deploy(record: PullRecord, prod_revision: int) -> PullRecord:
    return replace(record, deploy=replace(record.deploy, stage="promoting", start=prod_revision))


def promote_deploy(record: PullRecord, lines: str, revision: int) -> PullRecord:
    """Store that prod shows a pull request that is still to be merged."""
    promotion = replace(record.promotion, lines=lines, revision=revision)
    return replace(record, promotion=promotion, deploy=replace(record.deploy, stage="promoted"))


def conclude_deploy(record: PullRecord, merge_sha: str) -> PullRecord:
    merged = settle_merge(record, "", merge_sha)
    return replace(merged, deploy=replace(_end_deploy(record.deploy), result=""))


def refuse_deploy(record: PullRecord, reason: str) -> PullRecord:
    promotion = replace(record.promotion, lines="", revision=0)
    return replace(record, promotion=promotion, deploy=replace(_end_deploy(record.deploy), result=reason))


def _end_deploy(deploy: PullDeploy) -> PullDeploy:
    return PullDeploy(result=deploy.result)


def begin_rollback(record: PullRecord, prod_revision: int, reversal: Reversal) -> PullRecord:
    return replace(record, rollback=replace(record.rollback, start=prod_revision, reversal=reversal))


def refuse_rollback(record: PullRecord, reason: str) -> PullRecord:
    return replace(record, reason=reason, rollback=PullRollback())


def conclude_rollback(record: PullRecord, reason: str, reversal: Reversal) -> PullRecord:
    """Store that prod shows the pull request no longer."""
    return replace(record, state=PullState.ROLLED_BACK, reason=reason, rollback=PullRollback(reversal=reversal))


def set_reversal(record: PullRecord, reversal: Reversal) -> PullRecord:
    return replace(record, rollback=replace(record.rollback, reversal=reversal))
