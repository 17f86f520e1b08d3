"""Promotion: an environment's new map in one transaction, then its views, so that a crash loses neither."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.apply.events import Emit, Promoted
from planner.apply.swap_views import carry_out
from planner.engine.protocol import Engine
from planner.errors import Refused, RequestError
from planner.snapshot.environment import PROD, Environment
from planner.state.environments import Cause, HistoryAction, Revision
from planner.state.leases import Lease
from planner.state.promotions import BY_ONE, SwapOptions
from planner.state.store import StateStore


@dataclass(frozen=True)
class Wanted:
    """What an environment is to show in place of what it shows, and what its history says of that."""

    old: Environment
    new: Environment
    plan_id: str = ""
    who: str = ""
    note: str = ""
    action: HistoryAction = HistoryAction.PROMOTED
    swap: SwapOptions = BY_ONE


def promote(store: StateStore, engine: Engine, lease: Lease, wanted: Wanted, *, emit: Emit) -> Promoted:
    """Make the environment show `new` in place of `old`: all of it or nothing.

    PlanMoved when it is no longer `old`, Refused when a table is gone, LeaseHeld when the lease was lost; QueryError or
    Cancelled when a view cannot be swapped, and then every view is back where it was.
    """
    cause = Cause(plan_id=wanted.plan_id, who=wanted.who, note=wanted.note, action=wanted.action)
    promotion = store.promotions.begin(lease, wanted.old, wanted.new, cause, wanted.swap)
    return carry_out(store, engine, lease, promotion, emit)


@dataclass(frozen=True)
class Rollback:
    """To which revision an environment goes back (None: the last that was different), and who says so."""

    to_revision: int | None = None
    who: str = ""
    note: str = ""
    swap: SwapOptions = BY_ONE


def rollback(store: StateStore, engine: Engine, lease: Lease, to: Rollback, *, emit: Emit) -> Promoted:
    """Make the environment show again what it showed at a revision.

    RequestError when there is none, Refused when a table that it needs is gone.
    """
    old = store.environments.get(lease.name)
    target = _earlier(store.environments.history(lease.name), old, to.to_revision)
    earlier = store.environments.at_revision(lease.name, target.revision)
    new = replace(earlier, revision=0, naming=old.naming, expires_at=old.expires_at)
    note = to.note or f"back to revision {target.revision}"
    wanted = Wanted(old, new, target.plan_id, to.who, note, HistoryAction.ROLLED_BACK, to.swap)
    return promote(store, engine, lease, wanted, emit=emit)


def drop_environment(store: StateStore, engine: Engine, lease: Lease, *, emit: Emit, who: str = "") -> Promoted:
    """Drop an environment's views and forget it; its tables are left to the janitor. RequestError for prod."""
    old = store.environments.get(lease.name)
    if lease.name == PROD:
        raise RequestError("prod cannot be dropped.", hint="Only environments beside it can.")
    if not old.exists:
        raise RequestError(f"There is no environment `{lease.name}`.", hint="See `mergeplan environments`.")
    return promote(
        store, engine, lease, Wanted(old, Environment(lease.name), who=who, action=HistoryAction.DROPPED), emit=emit
    )


def _earlier(history: tuple[Revision, ...], now: Environment, to_revision: int | None) -> Revision:
    """The revision to go back to; `history` is newest first."""
    if not now.exists:
        raise RequestError(f"There is no environment `{now.name}`.", hint="See `mergeplan environments`.")
    in_force = {row.revision: row for row in history if row.action not in (HistoryAction.UNDONE, HistoryAction.DROPPED)}
    current = in_force[now.revision]
    if to_revision is None:
        candidates = [
            row for row in in_force.values() if row.revision < now.revision and row.snapshots != current.snapshots
        ]
        if not candidates:
            raise RequestError(f"`{now.name}` has no earlier revision.", hint="There is nothing to go back to.")
        return candidates[0]
    if to_revision not in in_force:
        hint = f"See `mergeplan environments {now.name}` for those it has."
        raise RequestError(f"`{now.name}` has no revision {to_revision} to go back to.", hint=hint)
    if to_revision == now.revision:
        raise Refused(f"`{now.name}` is at revision {to_revision} already.")
    return in_force[to_revision]
