"""What the batches of tables cost."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.plan.costs import BatchCost, Cost, TableHistory
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore, Transaction, split_chunks


class Costs(ProjectStore):
    def record(self, table: str, start: datetime, *, units: int, rows: int, seconds: float) -> None:
        """Keep what the batch from `start` on cost, in place of what that batch cost earlier."""
        row: dict[str, Any] = {"table_name": table, "start_at": start, "units": units}
        row |= {"rows": rows, "seconds": seconds, "bytes_read": None}
        with self._database.writing() as tx:
            tx.put(t.costs, [{**row, "at": tx.now()}])

    def find_written(self, since: datetime) -> Mapping[str, datetime]:
        """Return, by table, the start of the earliest batch that was computed since a moment (UTC)."""
        table, start = t.costs.c.table_name, sa.func.min(t.costs.c.start_at, type_=t.Utc)
        with self._database.reading() as tx:
            query = sa.select(table, start.label("start")).where(tx.own(t.costs), t.costs.c.at >= since).group_by(table)
            return {row.table_name: row.start for row in tx.execute(query)}

    def load(self, tables: Collection[str]) -> Mapping[str, Cost]:
        """Table -> what its batches cost together, for those of the given tables that have any."""
        return {name: history.total for name, history in self.load_history(tables).items()}

    def load_history(self, tables: Collection[str], most: int = 0) -> Mapping[str, TableHistory]:
        """Table -> its batches, at most `most` one by one, for those of the given tables that have any."""
        columns = t.costs.c
        sums = [sa.func.sum(columns[name]).label(f"all_{name}") for name in ("units", "rows", "seconds")]
        rest = sa.func.count().label("batches"), sa.func.max(columns.at, type_=t.Utc).label("last")
        query = sa.select(columns.table_name, *sums, *rest).group_by(columns.table_name)
        histories: dict[str, TableHistory] = {}
        with self._database.reading() as tx:
            for chunk in split_chunks(sorted(tables)):
                for row in tx.execute(query.where(tx.own(t.costs), columns.table_name.in_(chunk))):
                    total = Cost(int(row.all_units), int(row.all_rows), float(row.all_seconds))
                    batches = _newest_batches(tx, row.table_name, most) if most else ()
                    histories[row.table_name] = TableHistory(total, int(row.batches), row.last, batches)
        return histories


def _newest_batches(tx: Transaction, table: str, most: int) -> tuple[BatchCost, ...]:
    """Return the batches of the newest time: in the order of the key, so that no other is read."""
    query = tx.select(t.costs).where(t.costs.c.table_name == table).order_by(t.costs.c.start_at.desc()).limit(most)
    return tuple(BatchCost(row.start_at, row.units, row.rows, row.seconds, row.at) for row in tx.execute(query))
