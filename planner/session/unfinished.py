"""What a crash left half promoted: finished before anything is decided, or reported by who only looks."""

from collections.abc import Callable, Collection

from mergeplan.planner.apply.adoption import pending_adoptions, undo_interrupted
from mergeplan.planner.apply.events import Emit, PromotionPending, PromotionRecovered
from mergeplan.planner.apply.promotion.recovery import RECOVERY, check_not_stuck, recover_promotions
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.session.events import Warned
from mergeplan.planner.session.settings import LEASE_WAIT
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore

UNDONE = "An adoption that was interrupted is settled: what had not come to prod is back at its name. Adopt it again."


def finish_promotions(
    store: StateStore,
    engine: Callable[[], Engine],
    on_event: Emit,
    environments: Collection[str],
    lease: Lease | None = None,
) -> tuple[PromotionRecovered, ...]:
    """Finish or undo every promotion that no living process is doing; return the outcomes. Open Spark only for that.

    Of these `environments`, one that another process is promoting is waited for (raise LeaseHeld). Raise Refused for
    one that can be neither finished nor undone.
    """
    begun = pending_adoptions(store)
    if not store.promotions.pending() and not begun:
        return ()
    recovery = recover_promotions(store, engine(), on_event, lease, await_=environments, wait=LEASE_WAIT)
    check_not_stuck(recovery, environments)
    if begun and (lease or store.leases.holder(PROD) is None):
        undo_interrupted(store, engine(), RECOVERY, lease)
        if pending_adoptions(store) != begun:
            on_event(Warned(UNDONE))
    return recovery


def report_unfinished(store: StateStore, on_event: Emit) -> None:
    """Report every unfinished promotion, and who is at it; and an adoption that was cut off."""
    if pending_adoptions(store) and store.leases.holder(PROD) is None:
        on_event(Warned("An adoption was interrupted. The next command that changes an environment undoes it."))
    for promotion in store.promotions.pending():
        holder = store.leases.holder(promotion.environment)
        about = (promotion.environment, promotion.new.revision, promotion.changes.names)
        on_event(PromotionPending(*about, holder.holder if holder else ""))
