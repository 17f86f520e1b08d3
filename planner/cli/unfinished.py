"""What a crash left half promoted: finished before a verb decides anything, or told by one that only looks."""

from __future__ import annotations

from collections.abc import Callable, Collection

import click

from planner.apply.events import Emit, Event, PromotionPending, PromotionRecovered, Recovery
from planner.apply.promotion import check_not_stuck, recover
from planner.engine.protocol import Engine
from planner.state.leases import Lease
from planner.state.store import StateStore

LEASE_WAIT = 3600.0  # seconds to stand in line for an environment that somebody else is changing


def finish(
    store: StateStore,
    engine: Callable[[], Engine],
    hear: Emit,
    about: Collection[str],
    lease: Lease | None = None,
) -> tuple[PromotionRecovered, ...]:
    """Finish or undo every promotion that no living process is at; what became of each. Spark is opened only for that.

    Of the environments that the verb is `about`, one that another process is promoting is waited for (LeaseHeld), and
    one that can be neither finished nor undone is Refused.
    """
    if not store.promotions.pending():
        return ()
    found = recover(store, engine(), hear, lease, await_=about, wait=LEASE_WAIT)
    check_not_stuck(found, about)
    return found


def tell(store: StateStore, hear: Emit) -> None:
    """Say of every unfinished promotion that it is, and who is at it."""
    for promotion in store.promotions.pending():
        holder = store.leases.holder(promotion.environment)
        told = (promotion.environment, promotion.new.revision, promotion.changes.names)
        hear(PromotionPending(*told, holder.holder if holder else ""))


def pending_text(event: PromotionPending) -> str:
    """The sentence for an unfinished promotion that is only looked at."""
    what = f"The promotion of `{event.environment}` to revision {event.revision}"
    if event.holder:
        return f"{what} is under way, by {event.holder}: its views may be of two revisions until it ends."
    then = f"`mergeplan plan {event.environment}` or `mergeplan run {event.environment}` finishes it."
    return f"{what} was interrupted: its views may be of two revisions. {then}"


def recovered_text(event: PromotionRecovered) -> str:
    """The sentence for a promotion that was taken up again; '' when another event tells it."""
    if event.ended is Recovery.FINISHED:
        moved = f"{len(event.views)} view{'' if len(event.views) == 1 else 's'}"
        return f"The interrupted promotion of `{event.environment}` to revision {event.revision} is finished: {moved}."
    return ""


def on_stderr(event: Event) -> None:
    """For verbs whose standard output is an answer and nothing else."""
    if isinstance(event, PromotionPending):
        click.echo(f"Warning: {pending_text(event)}", err=True)
    elif isinstance(event, PromotionRecovered) and (text := recovered_text(event)):
        click.echo(text, err=True)
