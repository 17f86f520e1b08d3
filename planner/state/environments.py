"""Environments and their history: each revision is a map from model to snapshot, and none is ever rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.errors import RequestError
from mergeplan.planner.naming import Naming
from mergeplan.planner.serial import decode_json
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state import maps
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.snapshots import Snapshots
from mergeplan.planner.state.transaction import Database, Transaction


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
        self._last_read: dict[str, Environment] = {}

    def get(self, name: str) -> Environment:
        """Return the environment; of revision 0 when there is none of that name."""
        with self._database.reading() as tx:
            return self._read_environment(tx, name)

    def all(self) -> tuple[Environment, ...]:
        with self._database.reading() as tx:
            names = tx.execute(tx.select(t.environments).order_by(t.environments.c.name)).all()
            return tuple(self._read_environment(tx, row.name) for row in names)

    def history(self, name: str | None = None) -> tuple[Revision, ...]:
        history = t.environment_history
        with self._database.reading() as tx:
            query = tx.select(history).order_by(history.c.environment, history.c.revision)
            rows = tx.execute(query if name is None else query.where(history.c.environment == name)).all()
            by_name = ([*group] for _, group in groupby(rows, lambda row: row.environment))
            return tuple(revision for group in by_name for revision in reversed([*_build_revisions(group)]))

    def get_revision(self, name: str, revision: int) -> Environment:
        """Return the environment at a revision (0: before it existed); RequestError when there is none."""
        with self._database.reading() as tx:
            return self.read_at(tx, name, revision)

    def expire(self, name: str, at: datetime | None) -> None:
        """Set when an environment may be dropped; None: never."""
        with self._database.writing() as tx:
            tx.execute(tx.update(t.environments).where(t.environments.c.name == name).values(expires_at=at))

    def generation(self) -> int:
        with self._database.reading() as tx:
            return read_generation(tx)

    def read_at(self, tx: Transaction, name: str, revision: int) -> Environment:
        if revision == 0:
            return Environment(name)
        history = t.environment_history.c
        where = tx.own(t.environment_history), history.environment == name, history.revision == revision
        last_read = self._last_read.get(name)
        moment = tx.execute(sa.select(history.at).where(*where)).scalar() if last_read else None
        if last_read is None or (last_read.revision, last_read.promoted_at) != (revision, moment):
            last_read = self._last_read[name] = self._read_revision(tx, name, revision)
        return last_read

    def _read_revision(self, tx: Transaction, name: str, revision: int) -> Environment:
        rows = _rows_for(tx, name, revision)
        if not rows or rows[-1].revision != revision:
            hint = f"See `mergeplan environments {name}` for those it has."
            raise RequestError(f"`{name}` has no revision {revision}.", hint=hint)
        row, (*_, shown) = rows[-1], maps.read_maps((record.snapshots, record.views) for record in rows)
        snapshots_by_id = self._snapshots.read(tx, shown.snapshots.values())
        snapshots = {model: snapshots_by_id[id] for model, id in shown.snapshots.items()}
        naming = decode_json(Naming, row.naming or {})
        return Environment(name, snapshots, shown.views, revision, row.plan_id, row.at, naming)

    def _read_environment(self, tx: Transaction, name: str) -> Environment:
        row = tx.execute(tx.select(t.environments).where(t.environments.c.name == name)).one_or_none()
        environment = self.read_at(tx, name, row.revision if row else 0)
        return replace(environment, expires_at=row.expires_at if row else None)


def read_generation(tx: Transaction) -> int:
    """Return a number that grows with every change of any environment."""
    history = t.environment_history
    last = sa.select(sa.func.max(history.c.revision).label("last")).where(tx.own(history))
    latest = last.group_by(history.c.environment).subquery()  # old rows are forgotten, the last of each name never
    return int(tx.execute(sa.select(sa.func.coalesce(sa.func.sum(latest.c.last), 0))).scalar_one())


def map_at(tx: Transaction, name: str, revision: int) -> maps.EnvironmentMap | None:
    rows = _rows_for(tx, name, revision)
    if not rows or rows[-1].revision != revision:
        return None
    *_, environment_map = maps.read_maps((row.snapshots, row.views) for row in rows)
    return environment_map


def _rows_for(tx: Transaction, name: str, revision: int) -> list[sa.Row[Any]]:
    """Return the rows from the last whole map up to a revision."""
    history = t.environment_history
    statement = tx.select(history).where(history.c.environment == name, history.c.revision <= revision)
    rows = tx.execute(statement.where(history.c.revision > revision - maps.WHOLE).order_by(history.c.revision)).all()
    whole = (index for index, row in reversed([*enumerate(rows)]) if maps.is_whole(row.snapshots))
    return list(rows[next(whole, 0) :])


def _build_revisions(rows: Sequence[sa.Row[Any]]) -> Iterator[Revision]:
    environment_maps = maps.read_maps((row.snapshots, row.views) for row in rows)
    for row, shown in zip(rows, environment_maps, strict=True):
        action, snapshots, views = HistoryAction(row.action), shown.snapshots, shown.views
        yield Revision(row.environment, row.revision, action, snapshots, views, row.plan_id, row.who, row.at, row.note)
