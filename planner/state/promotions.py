"""The promotion journal: a new map and its entry `pending` in one transaction, each view, `done` or `rolled_back`."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from planner.errors import PlanMoved, Refused
from planner.serial import to_json
from planner.snapshot.environment import Environment, ViewChanges, view_changes
from planner.state import tables as t
from planner.state.database import clock, put
from planner.state.environments import Action, Environments
from planner.state.leases import Lease
from planner.state.records import chunks


class Status(StrEnum):
    """How far a promotion has come."""

    PENDING = "pending"
    DONE = "done"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True)
class Promotion:
    """An environment on its way from one map to another; `done` are the views already swapped."""

    id: str
    environment: str
    action: Action
    old: Environment
    new: Environment
    done: frozenset[str] = frozenset()

    @property
    def changes(self) -> ViewChanges:
        """The views that come, are re-pointed and go."""
        return view_changes(self.old, self.new)


class Promotions(Environments):
    """The journal of one project."""

    def begin_promotion(
        self,
        lease: Lease,
        old: Environment,
        new: Environment,
        *,
        plan_id: str = "",
        who: str = "",
        note: str = "",
        action: Action = Action.PROMOTED,
    ) -> Promotion:
        """Put the new map in force and open its journal entry, in one transaction.

        LeaseHeld when the lease was lost, PlanMoved when the environment is no longer `old`, Refused when a table that
        the new map shows is gone.
        """
        assert lease.name == new.name == old.name, "the lease is the environment's"
        id = secrets.token_hex(16)
        with self._writing() as connection:
            self._checked(connection, lease)
            self._check_base(connection, old)
            self._check_tables(connection, {s.table for s in new.snapshots.values() if s.kind.has_view})
            now = clock(connection)
            revision = self._next_revision(connection, new.name)
            row = {"project": self.project, "environment": new.name, "revision": revision, "action": action.value}
            row |= {"snapshots": self._keep_snapshots(connection, new.snapshots), "views": sorted(new.views)}
            row |= {"plan_id": plan_id, "who": who, "at": now, "note": note, "naming": to_json(new.naming) or None}
            connection.execute(sa.insert(t.environment_history).values(row))
            kept: dict[str, Any] = {"name": new.name, "revision": revision, "expires_at": new.expires_at}
            put(connection, t.environments, [{"project": self.project, **kept}])
            entry: dict[str, Any] = {
                "project": self.project,
                "id": id,
                "environment": new.name,
                "status": Status.PENDING.value,
            }
            entry |= {"old_revision": old.revision, "new_revision": revision, "token": lease.token, "began_at": now}
            connection.execute(sa.insert(t.promotions).values(entry))
        new = replace(new, revision=revision, plan_id=plan_id, promoted_at=now)
        return Promotion(id, new.name, action, old, new)

    def record_step(self, lease: Lease, promotion: Promotion, view: str) -> None:
        """Say that a view is swapped; LeaseHeld when the lease was lost."""
        with self._writing() as connection:
            self._checked(connection, lease)
            row = {"project": self.project, "promotion_id": promotion.id, "view": view, "at": clock(connection)}
            put(connection, t.promotion_steps, [row])

    def finish_promotion(self, lease: Lease, promotion: Promotion) -> None:
        """Close the entry as done; an environment that was dropped is no more."""
        with self._writing() as connection:
            self._close_promotion(connection, lease, promotion, Status.DONE)
            if promotion.action is Action.DROPPED:
                self._forget_environment(connection, promotion.environment)

    def roll_back_promotion(self, lease: Lease, promotion: Promotion) -> None:
        """Put the old map back in force and close the entry as rolled back."""
        history = t.environment_history
        with self._writing() as connection:
            self._close_promotion(connection, lease, promotion, Status.ROLLED_BACK)
            mine = sa.update(history).where(self._own(history), history.c.environment == promotion.environment)
            failed = mine.where(history.c.revision == promotion.new.revision)
            connection.execute(failed.values(action=Action.UNDONE.value))
            if not promotion.old.exists:
                self._forget_environment(connection, promotion.environment)
                return
            old = {"name": promotion.environment, "revision": promotion.old.revision}
            # its expiry stays the newer one: it was used
            put(connection, t.environments, [{"project": self.project, **old}])

    def pending_promotions(self) -> tuple[Promotion, ...]:
        """The promotions that are neither done nor rolled back, oldest first: under way, or left by a crash."""
        journal, steps, found = t.promotions, t.promotion_steps, []
        pending = self._select(journal).where(journal.c.status == Status.PENDING.value).order_by(journal.c.began_at)
        with self._reading() as connection:
            for row in connection.execute(pending).all():
                done = connection.execute(self._select(steps).where(steps.c.promotion_id == row.id))
                old = self._at_revision(connection, row.environment, row.old_revision)
                new = self._at_revision(connection, row.environment, row.new_revision)
                action = self._action(connection, new)
                views = frozenset(step.view for step in done)
                found.append(Promotion(row.id, row.environment, action, old, new, views))
        return tuple(found)

    def _check_base(self, connection: sa.Connection, old: Environment) -> None:
        journal = t.promotions
        unfinished = self._select(journal).where(
            journal.c.environment == old.name, journal.c.status == Status.PENDING.value
        )
        row = connection.execute(self._select(t.environments).where(t.environments.c.name == old.name)).one_or_none()
        revision = row.revision if row else 0
        if revision != old.revision or connection.execute(unfinished).first():
            raise PlanMoved(
                f"`{old.name}` is at revision {revision}, and this plan was made for revision {old.revision}.",
                hint="Plan again.",
            )

    def _check_tables(self, connection: sa.Connection, tables: Collection[str]) -> None:
        # The rows stay locked until the map is in force: the janitor cannot mark one of them in between.
        known, physical = set(), t.physical_tables
        for chunk in chunks(sorted(tables)):
            mine = self._select(physical).where(physical.c.name.in_(chunk), physical.c.garbage.is_(False))
            rows = connection.execute(mine.order_by(physical.c.name).with_for_update())
            known |= {row.name for row in rows}
        if gone := sorted(set(tables) - known):
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise Refused(f"The table `{gone[0]}`{more} is gone.", hint="Plan again: it will be built again.")

    def _next_revision(self, connection: sa.Connection, name: str) -> int:
        history = t.environment_history
        mine = sa.select(sa.func.max(history.c.revision)).where(self._own(history), history.c.environment == name)
        return (connection.execute(mine).scalar() or 0) + 1

    def _action(self, connection: sa.Connection, environment: Environment) -> Action:
        history = t.environment_history
        mine = self._select(history).where(history.c.environment == environment.name)
        return Action(connection.execute(mine.where(history.c.revision == environment.revision)).one().action)

    def _close_promotion(self, connection: sa.Connection, lease: Lease, promotion: Promotion, status: Status) -> None:
        self._checked(connection, lease)
        mine = sa.update(t.promotions).where(self._own(t.promotions), t.promotions.c.id == promotion.id)
        connection.execute(mine.values(status=status.value, ended_at=clock(connection)))

    def _forget_environment(self, connection: sa.Connection, name: str) -> None:
        mine = sa.delete(t.environments).where(self._own(t.environments), t.environments.c.name == name)
        connection.execute(mine)
