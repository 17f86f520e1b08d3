"""Environments and their history: each revision is a map from model to snapshot, and none is ever rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from planner.errors import RequestError
from planner.naming import Naming
from planner.serial import from_json
from planner.snapshot.environment import Environment
from planner.state import tables as t
from planner.state.snapshots import Snapshots
from planner.state.transaction import Database, Transaction


class HistoryAction(StrEnum):
    """What made a revision."""

    PROMOTED = "promoted"
    ROLLED_BACK = "rolled_back"  # a person went back to an earlier revision
    DROPPED = "dropped"
    UNDONE = "undone"  # its views could not all be swapped: it was never in force


@dataclass(frozen=True)
class Cause:
    """Why an environment changes: what is done, for which plan, by whom, with which note."""

    plan_id: str = ""
    who: str = ""
    note: str = ""
    action: HistoryAction = HistoryAction.PROMOTED


@dataclass(frozen=True)
class Revision:
    """One row of an environment's history; `snapshots` are ids, see `Environments.at_revision`."""

    environment: str
    revision: int
    action: HistoryAction
    snapshots: Mapping[str, str]
    views: frozenset[str]
    plan_id: str
    who: str
    at: datetime
    note: str


class Environments:
    """The environments of one project, as they are and as they were."""

    def __init__(self, database: Database, snapshots: Snapshots) -> None:
        self._database = database
        self._snapshots = snapshots

    def get(self, name: str) -> Environment:
        """The environment as it is; of revision 0 when there is none of that name."""
        with self._database.reading() as tx:
            return self._read(tx, name)

    def all(self) -> tuple[Environment, ...]:
        """Every environment that exists, by name."""
        with self._database.reading() as tx:
            names = tx.execute(tx.select(t.environments).order_by(t.environments.c.name)).all()
            return tuple(self._read(tx, row.name) for row in names)

    def history(self, name: str | None = None) -> tuple[Revision, ...]:
        """The revisions of one environment, or of all, newest first."""
        history = t.environment_history
        with self._database.reading() as tx:
            query = tx.select(history).order_by(history.c.environment, history.c.revision.desc())
            rows = tx.execute(query if name is None else query.where(history.c.environment == name)).all()
            return tuple(_revision(row) for row in rows)

    def at_revision(self, name: str, revision: int) -> Environment:
        """The environment as it was at a revision (0: before it was); RequestError when there is none."""
        with self._database.reading() as tx:
            return self.read_at(tx, name, revision)

    def expire(self, name: str, at: datetime | None) -> None:
        """Set when an environment may be dropped; None: never."""
        with self._database.writing() as tx:
            tx.execute(tx.update(t.environments).where(t.environments.c.name == name).values(expires_at=at))

    def generation(self) -> int:
        """A number that grows with every change of any environment."""
        with self._database.reading() as tx:
            return generation(tx)

    def read_at(self, tx: Transaction, name: str, revision: int) -> Environment:
        """The environment as it was at a revision, in the caller's transaction."""
        if revision == 0:
            return Environment(name)
        history = t.environment_history
        mine = tx.select(history).where(history.c.environment == name, history.c.revision == revision)
        row = tx.execute(mine).one_or_none()
        if row is None:
            hint = f"See `mergeplan environments {name}` for those it has."
            raise RequestError(f"`{name}` has no revision {revision}.", hint=hint)
        found = self._snapshots.read(tx, row.snapshots.values())
        snapshots = {model: found[id] for model, id in row.snapshots.items()}
        naming = from_json(Naming, row.naming or {})
        return Environment(name, snapshots, frozenset(row.views), revision, row.plan_id, row.at, naming)

    def _read(self, tx: Transaction, name: str) -> Environment:
        row = tx.execute(tx.select(t.environments).where(t.environments.c.name == name)).one_or_none()
        found = self.read_at(tx, name, row.revision if row else 0)
        return replace(found, expires_at=row.expires_at if row else None)


def generation(tx: Transaction) -> int:
    """A number that grows with every change of any environment."""
    history = t.environment_history
    rows = sa.select(sa.func.count()).select_from(history).where(tx.own(history))
    return int(tx.execute(rows).scalar_one())


def _revision(row: sa.Row[Any]) -> Revision:
    return Revision(
        row.environment,
        row.revision,
        HistoryAction(row.action),
        row.snapshots,
        frozenset(row.views),
        row.plan_id,
        row.who,
        row.at,
        row.note,
    )
