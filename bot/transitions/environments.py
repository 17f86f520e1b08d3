"""Transitions at the end of a pull request and of its environment. Pure."""

from dataclasses import replace

from mergeplan.bot.records import NO_GROUP, MergeGroup, PullRecord, PullState
from mergeplan.bot.transitions.planning import cancel_planning, reset_attempts


def set_environment_exists(record: PullRecord, exists: bool) -> PullRecord:
    return replace(record, environment=replace(record.environment, exists=exists))


def end_work(record: PullRecord, reason: str = "") -> PullRecord:
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
    return replace(set_environment_exists(reset_attempts(record), False), state=state)


def record_destroy(record: PullRecord, *, is_over: bool) -> PullRecord:
    """Store that the environment was dropped on demand; an open pull request has no plan then."""
    who = record.environment.destroy_by
    dropped = set_environment_exists(reset_attempts(record), False)
    dropped = replace(dropped, environment=replace(dropped.environment, destroy_by=""))
    if is_over:
        return dropped
    cancelled = cancel_planning(dropped, f"{who} dropped its environment; `/plan` builds it again.")
    return replace(cancelled, run=replace(cancelled.run, fresh=False))


def drop_group(record: PullRecord, over: MergeGroup) -> PullRecord:
    """Store that the environment of a group was dropped; a newer group may have come meanwhile."""
    group, environment = record.group, replace(record.environment, group_exists=False)
    return replace(reset_attempts(record), group=NO_GROUP if group == over else group, environment=environment)
