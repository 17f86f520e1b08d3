"""Transitions that people ask for, by commands. Pure."""

from dataclasses import replace

from mergeplan.bot.pull_parts import PendingOverride
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.transitions.planning import request_plan


def select_models(record: PullRecord, select: tuple[str, ...], *, again: bool = False) -> PullRecord:
    """Plan the changes of these models only, from now on; `again` asks for another plan of the same head."""
    return replace(record, wishes=replace(record.wishes, select=select, again=again or record.wishes.again))


def set_overrides(record: PullRecord, overrides: tuple[PendingOverride, ...]) -> PullRecord:
    return replace(record, wishes=replace(record.wishes, overrides=overrides))


def add_override(record: PullRecord, override: PendingOverride) -> PullRecord:
    """Set the category of one model, in place of an earlier one that is not stored yet."""
    other_overrides = tuple(pending for pending in record.wishes.overrides if pending.model != override.model)
    return set_overrides(record, (*other_overrides, override))


def approve_cost(record: PullRecord, cost: tuple[int, float], head: str) -> PullRecord:
    """Allow the plan of a head to read so many bytes and take so many seconds."""
    return request_plan(replace(record, permits=replace(record.permits, cost=cost, cost_head=head)))


def allow_destructive(record: PullRecord, models: tuple[str, ...], head: str) -> PullRecord:
    return request_plan(replace(record, permits=replace(record.permits, destructive=models, destructive_head=head)))


def allow_head(record: PullRecord, head: str) -> PullRecord:
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
    """Stop the promotion of a merge, also one that waits for its next try."""
    is_over = record.state is not PullState.MERGED
    return record if is_over else replace(record, promotion=replace(record.promotion, unlock_by=who))
