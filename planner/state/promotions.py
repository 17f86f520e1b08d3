"""The promotion journal: a new map and its entry `pending` in one transaction, its views, `done` or `rolled_back`."""

import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.errors import PlanMoved, Refused
from mergeplan.planner.naming import PROD, Naming
from mergeplan.planner.serial import decode_json, encode_json
from mergeplan.planner.snapshot.environment import Environment, ViewChanges, view_changes
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.environments import Cause, Environments, HistoryAction, map_at
from mergeplan.planner.state.leases import Lease, check_lease
from mergeplan.planner.state.maps import EnvironmentMap, encode_map
from mergeplan.planner.state.physical_tables import check_present
from mergeplan.planner.state.snapshots import keep_snapshots
from mergeplan.planner.state.transaction import Database, Transaction


class Status(StrEnum):
    """How far a promotion has come."""

    PENDING = "pending"
    DONE = "done"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True)
class SwapOptions:
    """How the views of a promotion are swapped.

    With `wait_seconds` it is atomic: its views move at one moment, and readers get so long to find their tables;
    without, they move one by one. With `replaces`, views of others that stand in the place of those that come are
    replaced.
    """

    wait_seconds: float | None = None
    replaces: bool = False


BY_ONE = SwapOptions()


@dataclass(frozen=True)
class Promotion:
    """An environment on its way between two maps; the views of `done` are known to be swapped, others may be too."""

    id: str
    environment: str
    action: HistoryAction
    old: Environment
    new: Environment
    done: frozenset[str] = frozenset()
    swap: SwapOptions = BY_ONE

    @cached_property
    def changes(self) -> ViewChanges:
        """The views that come, are re-pointed and go."""
        return view_changes(self.old, self.new)


class Promotions:
    """The journal of one project."""

    def __init__(self, database: Database, environments: Environments) -> None:
        self._database = database
        self._environments = environments

    def check_names(self, old: Environment, new: Environment) -> None:
        """Raise Refused if a new view has the name of another environment's view; `begin` checks this again."""
        with self._database.reading() as tx:
            _check_view_names(tx, self._environments, old, new)

    def begin(
        self, lease: Lease, old: Environment, new: Environment, cause: Cause | None = None, swap: SwapOptions = BY_ONE
    ) -> Promotion:
        """Put the new map in force and open its journal entry, in one transaction.

        LeaseHeld when the lease was lost, PlanMoved when the environment is no longer `old`, Refused when a table that
        the new map shows is gone, or a new view has the name of another environment's.
        """
        assert lease.name == new.name == old.name, "the lease is the environment's"
        id, cause = secrets.token_hex(16), cause or Cause()
        with self._database.writing() as tx:
            check_lease(tx, lease)
            _check_base(tx, old)
            _check_view_names(tx, self._environments, old, new)
            check_present(tx, {s.table for s in new.snapshots.values() if s.kind.has_view})
            current_time = tx.now()
            revision = _add_revision(tx, old, new, cause, current_time)
            entry: dict[str, Any] = {"id": id, "environment": new.name, "status": Status.PENDING.value}
            entry |= {
                "old_revision": old.revision,
                "new_revision": revision,
                "token": lease.token,
                "began_at": current_time,
            }
            entry |= {"wait_seconds": swap.wait_seconds, "replaces": swap.replaces}
            tx.insert(t.promotions, entry)
        new = replace(new, revision=revision, plan_id=cause.plan_id, promoted_at=current_time)
        return Promotion(id, new.name, cause.action, old, new, swap=swap)

    def record_steps(self, lease: Lease, promotion: Promotion, views: Collection[str]) -> None:
        """Keep that these views are swapped, in one transaction; LeaseHeld when the lease was lost."""
        with self._database.writing() as tx:
            check_lease(tx, lease)
            row: dict[str, Any] = {"promotion_id": promotion.id, "at": tx.now()}
            tx.put(t.promotion_steps, [{**row, "view": view} for view in views])

    def finish(self, lease: Lease, promotion: Promotion) -> None:
        """Close the entry as done; an environment that was dropped is no more."""
        with self._database.writing() as tx:
            _close_entry(tx, lease, promotion, Status.DONE)
            if promotion.action is HistoryAction.DROPPED:
                _forget_environment(tx, promotion.environment)

    def roll_back(self, lease: Lease, promotion: Promotion) -> None:
        history = t.environment_history
        with self._database.writing() as tx:
            _close_entry(tx, lease, promotion, Status.ROLLED_BACK)
            failed = (history.c.environment == promotion.environment, history.c.revision == promotion.new.revision)
            tx.execute(tx.update(history).where(*failed).values(action=HistoryAction.UNDONE.value))
            if not promotion.old.exists:
                _forget_environment(tx, promotion.environment)
                return
            # its expiry stays the newer one: it was used
            tx.put(t.environments, [{"name": promotion.environment, "revision": promotion.old.revision}])

    def pending(self) -> tuple[Promotion, ...]:
        journal, steps, promotions = t.promotions, t.promotion_steps, []
        with self._database.reading() as tx:
            pending = tx.select(journal).where(journal.c.status == Status.PENDING.value).order_by(journal.c.began_at)
            for row in tx.execute(pending).all():
                done = tx.execute(tx.select(steps).where(steps.c.promotion_id == row.id))
                old = self._environments.read_at(tx, row.environment, row.old_revision)
                new = self._environments.read_at(tx, row.environment, row.new_revision)
                views = frozenset(step.view for step in done)
                history = t.environment_history
                statement = tx.select(history).where(history.c.environment == new.name)
                action = HistoryAction(tx.execute(statement.where(history.c.revision == new.revision)).one().action)
                swap = SwapOptions(row.wait_seconds, bool(row.replaces))
                promotions.append(Promotion(row.id, row.environment, action, old, new, views, swap))
        return tuple(promotions)


def _check_base(tx: Transaction, old: Environment) -> None:
    journal = t.promotions
    unfinished = tx.select(journal).where(journal.c.environment == old.name, journal.c.status == Status.PENDING.value)
    row = tx.execute(tx.select(t.environments).where(t.environments.c.name == old.name)).one_or_none()
    revision = row.revision if row else 0
    if revision != old.revision or tx.execute(unfinished).first():
        message = f"`{old.name}` is at revision {revision}, and this plan was made for revision {old.revision}."
        raise PlanMoved(message, hint="Plan again.")


def _check_view_names(tx: Transaction, environments: Environments, old: Environment, new: Environment) -> None:
    """Raise Refused if a view to be added has the name of another environment's view.

    `shop.t__dev` may be a model's view in prod, and that of `shop.t` in `dev`. Two environments never look at the same
    time: the later one finds what the earlier one added.
    """
    names = new.views_by_name.keys() - old.views_by_name.keys()
    if not names:
        return
    tx.wait_for_turn("names of views")
    for name, revision in _list_revisions(tx, new.name):
        if _may_have(tx, name, revision, names):
            _check_environment(new, names, environments.read_at(tx, name, revision))


def _list_revisions(tx: Transaction, besides: str) -> Iterator[tuple[str, int]]:
    """Yield the revision of each other environment, and the one to which a promotion under way may go back."""
    shown, journal = t.environments, t.promotions
    for row in tx.execute(tx.select(shown).where(shown.c.name != besides)).all():
        yield row.name, row.revision
    pending = tx.select(journal).where(journal.c.status == Status.PENDING.value, journal.c.environment != besides)
    for row in tx.execute(pending).all():
        yield row.environment, row.old_revision


def _may_have(tx: Transaction, environment: str, revision: int, names: set[str]) -> bool:
    """Return True if a view of the revision may have one of these names, without reading its snapshots."""
    if environment != PROD and not any(f"__{environment}" in name for name in names):
        return False  # each of its views has the environment's name in its own
    history = t.environment_history
    statement = tx.select(history).where(history.c.environment == environment, history.c.revision == revision)
    row, shown = tx.execute(statement).one_or_none(), map_at(tx, environment, revision)
    if row is None or shown is None:
        return False
    naming = decode_json(Naming, row.naming or {})
    return any(naming.view(model, environment) in names for model in shown.views)


def _check_environment(new: Environment, names: set[str], other: Environment) -> None:
    for name in sorted(names):
        if view := other.views_by_name.get(name):
            raise Refused(
                f"`{name}` is the view of `{view.model}` in `{other.name}`, and the view of "
                f"`{new.views_by_name[name].model}` is to stand there.",
                hint="Call the environment or the model something else.",
            )


def _add_revision(tx: Transaction, old: Environment, new: Environment, cause: Cause, now: datetime) -> int:
    history = t.environment_history
    statement = sa.select(sa.func.max(history.c.revision)).where(tx.own(history), history.c.environment == new.name)
    revision: int = (tx.execute(statement).scalar() or 0) + 1
    former_map = map_at(tx, new.name, revision - 1)
    ids = _ids_that_stay(former_map, old, new) if old.revision == revision - 1 else {}
    changed = {name: snapshot for name, snapshot in new.snapshots.items() if name not in ids}
    shown = EnvironmentMap({**ids, **keep_snapshots(tx, changed)}, new.views)
    snapshots, views = encode_map(shown, former_map, revision)
    row: dict[str, Any] = {"environment": new.name, "revision": revision, "action": cause.action.value}
    row |= {"snapshots": snapshots, "views": views, "plan_id": cause.plan_id}
    row |= {"who": cause.who, "at": now, "note": cause.note, "naming": encode_json(new.naming) or None}
    tx.insert(history, row)
    tx.put(t.environments, [{"name": new.name, "revision": revision, "expires_at": new.expires_at}])
    return revision


def _ids_that_stay(before: EnvironmentMap | None, old: Environment, new: Environment) -> dict[str, str]:
    """Model -> id of the snapshots that the new map takes over from the old one as they are, which `before` keeps."""
    if before is None:
        return {}
    return {
        name: id
        for name, id in before.snapshots.items()
        if (snapshot := new.snapshots.get(name)) is not None and snapshot is old.snapshots.get(name)
    }


def _close_entry(tx: Transaction, lease: Lease, promotion: Promotion, status: Status) -> None:
    check_lease(tx, lease)
    statement = tx.update(t.promotions).where(t.promotions.c.id == promotion.id)
    tx.execute(statement.values(status=status.value, ended_at=tx.now()))


def _forget_environment(tx: Transaction, name: str) -> None:
    tx.execute(tx.delete(t.environments).where(t.environments.c.name == name))
