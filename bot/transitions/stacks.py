"""Transitions of the place of a pull request in a stack. Pure."""

from dataclasses import replace

from mergeplan.bot.pull_parts import NO_LAYERS
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.transitions.environments import end_work


def add_above(record: PullRecord, number: int) -> PullRecord:
    above = (*record.stack.above, number)
    return replace(record, stack=replace(record.stack, above=tuple(dict.fromkeys(above))))


def remove_above(record: PullRecord, number: int) -> PullRecord:
    above = tuple(other for other in record.stack.above if other != number)
    return replace(record, stack=replace(record.stack, above=above))


def leave_stack(record: PullRecord, base_ref: str, reason: str, keep_until: float) -> PullRecord:
    """End all work of a layer that leads to prod no more; its environment stays for a while."""
    ended = end_work(record, reason)
    return replace(
        ended,
        state=PullState.CLOSED,
        source=replace(ended.source, base_ref=base_ref),
        environment=replace(ended.environment, keep_until=max(ended.environment.keep_until, keep_until)),
        stack=replace(ended.stack, planned_on=NO_LAYERS, changes=None, rows="", waits_since=0.0),
    )
