"""Delete expired history, journal entries, plans and snapshots from the state."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.naming import DEFAULT
from mergeplan.planner.state import maps
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.environments import HistoryAction
from mergeplan.planner.state.promotions import Status
from mergeplan.planner.state.restatements import AUTOMATIC
from mergeplan.planner.state.transaction import ProjectStore, Transaction, split_chunks


@dataclass(frozen=True)
class Forgotten:
    """How many rows of each sort were forgotten."""

    revisions: int = 0
    promotions: int = 0
    plans: int = 0
    snapshots: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.revisions + self.promotions + self.plans + self.snapshots


class Retention(ProjectStore):
    """The past of one project, and its end."""

    def forget(self, before: datetime) -> Forgotten:
        """Delete what was over before a time: old revisions, promotions, plans, and unnamed snapshots.

        The last revision of every environment stays, also of dropped ones: revisions are counted on.
        """
        with self._database.writing() as tx:
            if tx.connection.dialect.name == "postgresql":
                # Who promotes writes its snapshots first. One that is there stays as it is, and must not go under it.
                tx.execute(sa.text("LOCK TABLE snapshots IN SHARE ROW EXCLUSIVE MODE"))
            revisions, promotions = _forget_revisions(tx, before), _forget_journal(tx, before)
            history = sa.select(t.environment_history.c.snapshots).where(tx.own(t.environment_history))
            named = {id for row in tx.execute(history) for id in maps.ids_in(row.snapshots)}
            tables = {row.name for row in tx.execute(tx.select(t.physical_tables))}
            columns = (t.snapshots.c.id, t.snapshots.c.name, t.snapshots.c.version, t.snapshots.c.stored)
            rows = tx.execute(sa.select(*columns).where(tx.own(t.snapshots)))
            unnamed = (row for row in rows if row.id not in named)
            old = [row.id for row in unnamed if (row.stored or DEFAULT.table(row.name, row.version)) not in tables]
            _delete_rows(tx, t.snapshots, old)
            return Forgotten(revisions, promotions, _forget_plans(tx, before), len(old))


def _forget_revisions(tx: Transaction, before: datetime) -> int:
    history = t.environment_history
    in_force = {row.name: row.revision for row in tx.execute(tx.select(t.environments))}
    pending = {row.environment: row.old_revision for row in tx.execute(_select_journal(tx, has_ended=False))}
    rows = tx.execute(tx.select(history).order_by(history.c.environment, history.c.revision)).all()
    gone = 0
    for name, group in groupby(rows, lambda row: row.environment):
        history_rows = list(group)
        shown = [row for row in history_rows if row.action != HistoryAction.UNDONE.value]
        still_needed = [row.revision for row, later in pairwise(shown) if later.at > before] + [
            history_rows[-1].revision
        ]
        first = min(*still_needed, in_force.get(name, still_needed[0]), pending.get(name, still_needed[0]))
        if first == history_rows[0].revision:
            continue
        _make_whole(tx, history_rows, first)
        old = (history.c.environment == name, history.c.revision < first)
        gone += tx.execute(tx.delete(history).where(*old)).rowcount
    return gone


def _make_whole(tx: Transaction, rows: Sequence[sa.Row[Any]], revision: int) -> None:
    """Keep the map of a revision as it is, and no longer as what differs from those that go."""
    history = t.environment_history
    environment_maps = maps.read_maps((row.snapshots, row.views) for row in rows)
    shown = next(
        environment_map for row, environment_map in zip(rows, environment_maps, strict=True) if row.revision == revision
    )
    snapshots, views = maps.encode_map(shown, None, revision)
    name = rows[0].environment
    row = tx.update(history).where(history.c.environment == name, history.c.revision == revision)
    tx.execute(row.values(snapshots=snapshots, views=views))


def _select_journal(tx: Transaction, *, has_ended: bool) -> sa.Select[Any]:
    status = t.promotions.c.status
    return tx.select(t.promotions).where(
        (status != Status.PENDING.value) if has_ended else status == Status.PENDING.value
    )


def _forget_journal(tx: Transaction, before: datetime) -> int:
    old = [row.id for row in tx.execute(_select_journal(tx, has_ended=True).where(t.promotions.c.ended_at < before))]
    for ids in split_chunks(old):
        tx.execute(tx.delete(t.promotion_steps).where(t.promotion_steps.c.promotion_id.in_(ids)))
        tx.execute(tx.delete(t.promotions).where(t.promotions.c.id.in_(ids)))
    return len(old)


def _forget_plans(tx: Transaction, before: datetime) -> int:
    plans, latest = t.plans, dict[tuple[str, str], str]()
    automatic = tx.execute(tx.select(plans).where(plans.c.status == AUTOMATIC).order_by(plans.c.created_at))
    for row in automatic:  # by the last one a model knows when it has to restate itself again
        latest[row.environment, row.components["table"]] = row.id
    latest_ids = frozenset(latest.values())
    old = [
        row.id for row in tx.execute(tx.select(plans).where(plans.c.created_at < before)) if row.id not in latest_ids
    ]
    _delete_rows(tx, plans, old)
    return len(old)


def _delete_rows(tx: Transaction, table: sa.Table, ids: Collection[str]) -> None:
    for part in split_chunks(sorted(ids)):
        tx.execute(tx.delete(table).where(table.c.id.in_(part)))
