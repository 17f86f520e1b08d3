"""What a restatement begins with: which tables there were for whom, and forgetting what they are to be computed of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from planner.intervals import Timeline, subtract
from planner.plan.restatement import Past
from planner.snapshot.environment import Environment
from planner.snapshot.snapshot import Snapshot
from planner.state import tables as t
from planner.state.database import clock, put
from planner.state.environments import Action
from planner.state.leases import Lease
from planner.state.plans import Plans

AUTOMATIC = "automatic"  # the status of a restatement that a model's own cron began


class Restatements(Plans):
    """The restatements of one project."""

    def past(self) -> Past:
        """What every environment shows and has shown, and the tables that none did."""
        now = {each.name: each for each in self.environments()}
        rows = [row for row in self.history() if row.action is not Action.UNDONE]
        known = self.snapshots({id for row in rows for id in row.snapshots.values()})
        maps: dict[tuple[str, tuple[tuple[str, str], ...]], bool] = {}
        for row in rows:
            key = (row.environment, tuple(sorted(row.snapshots.items())))
            maps[key] = maps.get(key, False) or _is_now(now.get(row.environment), row.revision)
        shown = tuple((name, here, {m: known[id] for m, id in ids}) for (name, ids), here in maps.items())
        mapped = {each.table for _, _, snapshots in shown for each in snapshots.values()}
        built: dict[str, Snapshot | None] = dict.fromkeys(self.physical_tables().keys() - mapped)
        return Past(shown, built | {each.table: each for each in self._kept() if each.table in built})

    def keep_snapshots(self, snapshots: Collection[Snapshot]) -> None:
        """Remember what tables are made of before any environment shows them; one that a word kept is none of these."""
        with self._writing() as connection:
            self._keep_snapshots(connection, {each.name: each for each in snapshots if not each.forced})

    def begin_restatement(
        self,
        id: str,
        environment: str,
        forgets: Mapping[str, Timeline],
        *,
        leases: Collection[Lease],
        by_itself: tuple[str, datetime] | None = None,
    ) -> None:
        """Record a restatement's plan, and that the tables do not hold this time any more: all of it or nothing.

        `by_itself` is the table of a model that restates itself, where nobody asked for it, and the moment of the run.

        What was known of their contents and what whole-table audits had found goes too. LeaseHeld when one of the
        leases, those of the tables and of the environment, was lost.
        """
        row: dict[str, Any] = {"project": self.project, "id": id, "environment": environment, "status": "open"}
        row |= {"options": {}, "components": {}, "result": {}, "tables": sorted(forgets)}
        if by_itself:
            row |= {"status": AUTOMATIC, "components": {"table": by_itself[0], "at": by_itself[1].isoformat()}}
        with self._writing() as connection:
            for lease in leases:
                self._checked(connection, lease)
            put(connection, t.plans, [{**row, "created_at": clock(connection)}], update=False)
            for table, timeline in sorted(forgets.items()):
                self._set_timeline(connection, table, partial(_without, timeline))
                self._drop_contents(connection, table)
                of_table = t.passed_audits.c.table_name == table
                connection.execute(sa.delete(t.passed_audits).where(self._own(t.passed_audits), of_table))

    def restated_since(self, environment: str, tables: Collection[str]) -> Mapping[str, datetime]:
        """Table -> when it last restated itself in the environment, or else when the environment first showed it."""
        found: dict[str, datetime] = {}
        rows = [row for row in reversed(self.history(environment)) if row.action is not Action.UNDONE]
        known = self.snapshots({id for row in rows for id in row.snapshots.values()})
        for row in rows:
            for table in {known[id].table for id in row.snapshots.values()} & set(tables):
                found.setdefault(table, row.at)
        plans = self._select(t.plans).where(t.plans.c.environment == environment, t.plans.c.status == AUTOMATIC)
        with self._reading() as connection:
            for plan in connection.execute(plans.order_by(t.plans.c.created_at)):
                if plan.components["table"] in found:
                    found[plan.components["table"]] = datetime.fromisoformat(plan.components["at"])
        return found

    def _kept(self) -> tuple[Snapshot, ...]:
        with self._reading() as connection:
            ids = [row.id for row in connection.execute(sa.select(t.snapshots.c.id).where(self._own(t.snapshots)))]
            return tuple(self._snapshots(connection, ids).values())


def _without(gone: Timeline, held: Timeline) -> Timeline:
    return subtract(held, gone)


def _is_now(environment: Environment | None, revision: int) -> bool:
    return environment is not None and environment.revision == revision
