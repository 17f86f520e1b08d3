"""Environments and their history: each revision is a map from model to snapshot, and none is ever rewritten."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from planner.errors import RequestError
from planner.fingerprint import Fingerprint, digest
from planner.model.model import Model
from planner.naming import DEFAULT, Naming
from planner.serial import canonical, from_json, to_json
from planner.snapshot.environment import Environment
from planner.snapshot.snapshot import Meaning, Snapshot
from planner.state import tables as t
from planner.state.database import put
from planner.state.records import chunks
from planner.state.timelines import Timelines


class Action(StrEnum):
    """What made a revision."""

    PROMOTED = "promoted"
    ROLLED_BACK = "rolled_back"  # a person went back to an earlier revision
    DROPPED = "dropped"
    UNDONE = "undone"  # its views could not all be swapped: it was never in force


@dataclass(frozen=True)
class Revision:
    """One row of an environment's history; `snapshots` are ids, see `StateStore.at_revision`."""

    environment: str
    revision: int
    action: Action
    snapshots: Mapping[str, str]
    views: frozenset[str]
    plan_id: str
    who: str
    at: datetime
    note: str


class Environments(Timelines):
    """The environments of one project, as they are and as they were."""

    def __init__(self, url: str, project: str = "") -> None:
        super().__init__(url, project)
        self._read_before: dict[str, Snapshot] = {}  # id -> snapshot: what an id stands for never changes

    def environment(self, name: str) -> Environment:
        """The environment as it is; of revision 0 when there is none of that name."""
        with self._reading() as connection:
            return self._environment(connection, name)

    def environments(self) -> tuple[Environment, ...]:
        """Every environment that exists, by name."""
        with self._reading() as connection:
            names = connection.execute(self._select(t.environments).order_by(t.environments.c.name)).all()
            return tuple(self._environment(connection, row.name) for row in names)

    def history(self, name: str | None = None) -> tuple[Revision, ...]:
        """The revisions of one environment, or of all, newest first."""
        history = t.environment_history
        query = self._select(history).order_by(history.c.environment, history.c.revision.desc())
        with self._reading() as connection:
            rows = connection.execute(query if name is None else query.where(history.c.environment == name)).all()
            return tuple(_revision(row) for row in rows)

    def at_revision(self, name: str, revision: int) -> Environment:
        """The environment as it was at a revision (0: before it was); RequestError when there is none."""
        with self._reading() as connection:
            return self._at_revision(connection, name, revision)

    def snapshots(self, ids: Collection[str]) -> Mapping[str, Snapshot]:
        """Id -> snapshot, for ids that a history names."""
        with self._reading() as connection:
            return self._snapshots(connection, ids)

    def expire(self, name: str, at: datetime | None) -> None:
        """Say when an environment may be dropped; None: never."""
        mine = sa.update(t.environments).where(self._own(t.environments), t.environments.c.name == name)
        with self._writing() as connection:
            connection.execute(mine.values(expires_at=at))

    def drifted_tables(self) -> frozenset[str]:
        """The tables that a person's word let some environment keep while what they read changed."""
        forced = self._select(t.snapshots).where(t.snapshots.c.forced)
        with self._reading() as connection:
            return frozenset(row.stored or DEFAULT.table(row.name, row.version) for row in connection.execute(forced))

    def _environment(self, connection: sa.Connection, name: str) -> Environment:
        row = connection.execute(self._select(t.environments).where(t.environments.c.name == name)).one_or_none()
        found = self._at_revision(connection, name, row.revision if row else 0)
        return replace(found, expires_at=row.expires_at if row else None)

    def _at_revision(self, connection: sa.Connection, name: str, revision: int) -> Environment:
        if revision == 0:
            return Environment(name)
        history = t.environment_history
        mine = self._select(history).where(history.c.environment == name, history.c.revision == revision)
        row = connection.execute(mine).one_or_none()
        if row is None:
            hint = f"See `mergeplan environments {name}` for those it has."
            raise RequestError(f"`{name}` has no revision {revision}.", hint=hint)
        found = self._snapshots(connection, row.snapshots.values())
        snapshots = {model: found[id] for model, id in row.snapshots.items()}
        naming = from_json(Naming, row.naming or {})
        return Environment(name, snapshots, frozenset(row.views), revision, row.plan_id, row.at, naming)

    def _snapshots(self, connection: sa.Connection, ids: Collection[str]) -> dict[str, Snapshot]:
        for chunk in chunks(sorted(set(ids) - self._read_before.keys())):
            for row in connection.execute(self._select(t.snapshots).where(t.snapshots.c.id.in_(chunk))):
                self._read_before[row.id] = _snapshot(row)
        return {id: self._read_before[id] for id in ids}

    def _keep_snapshots(self, connection: sa.Connection, snapshots: Mapping[str, Snapshot]) -> dict[str, str]:
        """Write the snapshots that are not there yet; model -> id."""
        rows = {name: _row(snapshot) for name, snapshot in snapshots.items()}
        put(connection, t.snapshots, [{"project": self.project, **row} for row in rows.values()], update=False)
        return {name: str(row["id"]) for name, row in rows.items()}


def _row(snapshot: Snapshot) -> dict[str, object]:
    row: dict[str, object] = {
        "name": snapshot.name,
        "fingerprint": snapshot.fingerprint.text,
        "version": snapshot.version,
        "forced": snapshot.forced,
        "columns": None if snapshot.columns is None else list(snapshot.columns),
        "model": to_json(snapshot.model),
        "parts": to_json(snapshot.fingerprint),
        "meaning": to_json(snapshot.meaning),
    }
    stored = {"stored": snapshot.stored} if snapshot.stored else {}  # without it an id stays what it always was
    return {"id": digest(canonical({**row, **stored}))[:32], "stored": snapshot.stored or None, **row}


def _snapshot(row: sa.Row[Any]) -> Snapshot:
    columns = None if row.columns is None else tuple(row.columns)
    fingerprint = from_json(Fingerprint, row.parts)
    meaning = None if row.meaning is None else from_json(Meaning, row.meaning)
    return Snapshot(
        from_json(Model, row.model), fingerprint, row.version, columns, row.forced, meaning, row.stored or ""
    )


def _revision(row: sa.Row[Any]) -> Revision:
    return Revision(
        row.environment,
        row.revision,
        Action(row.action),
        row.snapshots,
        frozenset(row.views),
        row.plan_id,
        row.who,
        row.at,
        row.note,
    )
