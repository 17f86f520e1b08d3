"""Promotion: an environment's new map in one transaction, then its views, so that a crash loses neither."""

from concurrent.futures import Executor
from dataclasses import dataclass

from mergeplan.planner.apply.events import Emit, Promoted
from mergeplan.planner.apply.promotion.swap_views import carry_out
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import RequestError
from mergeplan.planner.snapshot.environment import PROD, Environment
from mergeplan.planner.state.environments import Cause, HistoryAction
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.promotions import BY_ONE, SwapOptions
from mergeplan.planner.state.store import StateStore


@dataclass(frozen=True)
class Wanted:
    old: Environment
    new: Environment
    plan_id: str = ""
    who: str = ""
    note: str = ""
    action: HistoryAction = HistoryAction.PROMOTED
    swap: SwapOptions = BY_ONE


def promote_views(
    store: StateStore, engine: Engine, lease: Lease, request: Wanted, *, emit: Emit, pool: Executor | None = None
) -> Promoted:
    """Make the environment show `new` in place of `old`: all of it or nothing; `pool` is as in `carry_out`.

    Raise PlanMoved if it is no longer `old`, Refused if a table is gone, and LeaseHeld if the lease was lost. Raise
    QueryError or Cancelled if a view cannot be swapped; then every view is back where it was.
    """
    cause = Cause(request.plan_id, request.who, request.note, request.action)
    promotion = store.promotions.begin(lease, request.old, request.new, cause, request.swap)
    return carry_out(store, engine, lease, promotion, emit, pool=pool)


def drop_environment(store: StateStore, engine: Engine, lease: Lease, *, emit: Emit, who: str = "") -> Promoted:
    """Drop an environment's views and forget it; its tables are left to the janitor. Raise RequestError for prod."""
    old = store.environments.get(lease.name)
    if lease.name == PROD:
        raise RequestError("prod cannot be dropped.", hint="Only other environments can.")
    if not old.exists:
        raise RequestError(f"There is no environment `{lease.name}`.", hint="See `mergeplan environments`.")
    return promote_views(
        store, engine, lease, Wanted(old, Environment(lease.name), who=who, action=HistoryAction.DROPPED), emit=emit
    )
