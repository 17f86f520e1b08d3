"""Promotions that a crash left pending: finished, or undone if they cannot be finished."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from mergeplan.planner.apply.events import Emit, EnvironmentAwaited, PromotionFound, PromotionRecovered, Recovery
from mergeplan.planner.apply.promotion.swap_views import resume_promotion
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import LeaseHeld, QueryError, Refused
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore

RECOVERY = "recovery"  # its name as the holder of an environment's lease


def recover_promotions(
    store: StateStore,
    engine: Engine,
    emit: Emit,
    lease: Lease | None = None,
    *,
    await_: Collection[str] = (),
    wait: float = 0.0,
) -> tuple[PromotionRecovered, ...]:
    """Finish every promotion that a crash left pending, or else undo it; return what became of each.

    One whose environment another living process holds is left to that process. It is waited for `wait` seconds if it is
    among `await_`; raise LeaseHeld if that is too short. `lease` is the one that the caller holds.
    """
    recovered: list[PromotionRecovered] = []
    for name in dict.fromkeys(promotion.environment for promotion in store.promotions.pending()):
        if lease and lease.name == name:
            recovered += _recover_one(store, engine, lease, emit)
            continue
        try:
            with _hold_environment(store, name, emit, wait if name in await_ else 0.0) as taken:
                recovered += _recover_one(store, engine, taken, emit)
        except LeaseHeld:
            if name in await_:
                raise
    return tuple(recovered)


def check_not_stuck(recoveries: Iterable[PromotionRecovered], names: Collection[str]) -> None:
    """Raise Refused if the promotion of one of these environments could be neither finished nor undone."""
    for promotion in recoveries:
        if promotion.ended is Recovery.STUCK and promotion.environment in names:
            raise Refused(
                f"The promotion of `{promotion.environment}` to revision {promotion.revision} was interrupted, and "
                f"can be neither finished nor undone now: {promotion.message}",
                hint="Fix that and run this again: until then its views may be of two revisions.",
            )


@contextmanager
def _hold_environment(store: StateStore, name: str, emit: Emit, wait: float) -> Iterator[Lease]:
    with ExitStack() as lease_stack:
        try:
            lease = lease_stack.enter_context(store.leases.hold(name, RECOVERY))
        except LeaseHeld:
            if not wait:
                raise
            holder = store.leases.holder(name)
            emit(EnvironmentAwaited(name, holder.holder if holder else ""))
            lease = lease_stack.enter_context(store.leases.hold(name, RECOVERY, wait=wait))
        yield lease


def _recover_one(store: StateStore, engine: Engine, lease: Lease, emit: Emit) -> list[PromotionRecovered]:
    # Read again under the lease: another process may have finished it meanwhile.
    pending_promotions = [promotion for promotion in store.promotions.pending() if promotion.environment == lease.name]
    done = []
    for promotion in pending_promotions:
        emit(PromotionFound(promotion.environment, promotion.new.revision))
        ended, message = Recovery.FINISHED, ""
        try:
            resume_promotion(store, engine, lease, promotion, emit)
        except QueryError as error:
            pending_ids = {pending_promotion.id for pending_promotion in store.promotions.pending()}
            ended, message = Recovery.STUCK if promotion.id in pending_ids else Recovery.UNDONE, error.message
        new, views = promotion.new, promotion.changes.names
        recovery = PromotionRecovered(
            new.name, new.revision, new.plan_id, str(promotion.action), views, ended, message
        )  # fmt: skip
        emit(recovery)
        done.append(recovery)
    return done
