"""What a crash left half promoted: finished before anything is decided, or reported by who only looks."""

from __future__ import annotations

from collections.abc import Callable, Collection

from planner.apply.events import Emit, PromotionPending, PromotionRecovered
from planner.apply.recovery import check_not_stuck, recover
from planner.engine.protocol import Engine
from planner.state.leases import Lease
from planner.state.store import StateStore

LEASE_WAIT = 3600.0  # seconds to wait for an environment that somebody else is changing


def finish(
    store: StateStore,
    engine: Callable[[], Engine],
    on_event: Emit,
    about: Collection[str],
    lease: Lease | None = None,
) -> tuple[PromotionRecovered, ...]:
    """Finish or undo every promotion that no living process is at; what became of each. Spark is opened only for that.

    Of the environments in `about`, one that another process is promoting is waited for (LeaseHeld), and
    one that can be neither finished nor undone is Refused.
    """
    if not store.promotions.pending():
        return ()
    found = recover(store, engine(), on_event, lease, await_=about, wait=LEASE_WAIT)
    check_not_stuck(found, about)
    return found


def report(store: StateStore, on_event: Emit) -> None:
    """Report every unfinished promotion, and who is at it."""
    for promotion in store.promotions.pending():
        holder = store.leases.holder(promotion.environment)
        about = (promotion.environment, promotion.new.revision, promotion.changes.names)
        on_event(PromotionPending(*about, holder.holder if holder else ""))
