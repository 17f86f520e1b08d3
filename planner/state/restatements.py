"""What a restatement begins with: which tables there were for whom, and forgetting what they are to be computed of."""

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from mergeplan.planner.intervals import Timeline, subtract_intervals
from mergeplan.planner.plan.restatement import Past
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.contents import drop_contents
from mergeplan.planner.state.environments import Environments, HistoryAction, Revision
from mergeplan.planner.state.intervals import change_timeline
from mergeplan.planner.state.leases import Lease, check_lease
from mergeplan.planner.state.passed.passed_audits import drop_passed_audits
from mergeplan.planner.state.physical_tables import PhysicalTables
from mergeplan.planner.state.plans import OPEN
from mergeplan.planner.state.snapshots import Snapshots
from mergeplan.planner.state.transaction import Database

AUTOMATIC = "automatic"  # the status of a restatement that a model's own cron began


class Restatements:
    def __init__(
        self, database: Database, environments: Environments, snapshots: Snapshots, tables: PhysicalTables
    ) -> None:
        self._database = database
        self._environments = environments
        self._snapshots = snapshots
        self._tables = tables

    def past(self) -> Past:
        """Return what every environment shows and has shown, and the tables that none did."""
        current_environments = {environment.name: environment for environment in self._environments.all()}
        rows = [row for row in self._environments.history() if row.action is not HistoryAction.UNDONE]
        snapshots_by_id = self._load_snapshots(rows)
        maps: dict[tuple[str, tuple[tuple[str, str], ...]], bool] = {}
        for row in rows:
            key = (row.environment, tuple(sorted(row.snapshots.items())))
            current = current_environments.get(row.environment)
            maps[key] = maps.get(key, False) or (current is not None and current.revision == row.revision)
        shown = tuple(
            (name, is_current, {m: snapshots_by_id[id] for m, id in ids}) for (name, ids), is_current in maps.items()
        )
        mapped = {snapshot.table for _, _, snapshots in shown for snapshot in snapshots.values()}
        built: dict[str, Snapshot | None] = dict.fromkeys(self._tables.all().keys() - mapped)
        return Past(shown, built | {table.table: table for table in self._snapshots.all() if table.table in built})

    def begin(
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
        row: dict[str, Any] = {"id": id, "environment": environment, "status": OPEN, "tables": sorted(forgets)}
        row |= {"options": {}, "components": {}, "result": {}}
        if by_itself:
            row |= {"status": AUTOMATIC, "components": {"table": by_itself[0], "at": by_itself[1].isoformat()}}
        with self._database.writing() as tx:
            for lease in leases:
                check_lease(tx, lease)
            tx.put(t.plans, [{**row, "created_at": tx.now()}], update=False)
            for table, timeline in sorted(forgets.items()):
                change_timeline(tx, table, partial(subtract_intervals, taken=timeline))
                drop_contents(tx, table)
                drop_passed_audits(tx, table)

    def last_restated(self, environment: str) -> Mapping[str, datetime]:
        """Model -> when it last restated itself in the environment, in any table, or else was shown there first."""
        times, names_by_table = dict[str, datetime](), dict[str, str]()
        rows = [
            row for row in reversed(self._environments.history(environment)) if row.action is not HistoryAction.UNDONE
        ]
        snapshots_by_id = self._load_snapshots(rows)
        for row in rows:
            for name, id in row.snapshots.items():
                times.setdefault(name, row.at)
                names_by_table[snapshots_by_id[id].table] = name
        with self._database.reading() as tx:
            plans = tx.select(t.plans).where(t.plans.c.environment == environment, t.plans.c.status == AUTOMATIC)
            for plan in tx.execute(plans.order_by(t.plans.c.created_at)):
                if model := names_by_table.get(plan.components["table"]):
                    times[model] = datetime.fromisoformat(plan.components["at"])
        return times

    def _load_snapshots(self, rows: Collection[Revision]) -> Mapping[str, Snapshot]:
        return self._snapshots.get_by_id({id for row in rows for id in row.snapshots.values()})
