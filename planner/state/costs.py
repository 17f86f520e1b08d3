"""What the batches of tables cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.plan.costs import BatchCost, Cost, TableHistory
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import Database, split_chunks


class Costs:
    """The costs of one project's batches."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, table: str, start: datetime, *, units: int, rows: int, seconds: float) -> None:
        """Keep what the batch from `start` on cost, in place of what that batch cost earlier."""
        row: dict[str, Any] = {"table_name": table, "start_at": start, "units": units}
        row |= {"rows": rows, "seconds": seconds, "bytes_read": None}
        with self._database.writing() as tx:
            tx.put(t.costs, [{**row, "at": tx.now()}])

    def load(self, tables: Collection[str]) -> Mapping[str, Cost]:
        """Table -> what its batches cost together, for those of the given tables that have any."""
        costs: dict[str, Cost] = {}
        sums = [sa.func.sum(t.costs.c[name]).label(f"all_{name}") for name in ("units", "rows", "seconds")]
        with self._database.reading() as tx:
            query = sa.select(t.costs.c.table_name, *sums).where(tx.own(t.costs)).group_by(t.costs.c.table_name)
            for chunk in split_chunks(sorted(tables)):
                for row in tx.execute(query.where(t.costs.c.table_name.in_(chunk))):
                    costs[row.table_name] = Cost(int(row.all_units), int(row.all_rows), float(row.all_seconds))
        return costs

    def load_history(self, tables: Collection[str], most: int) -> Mapping[str, TableHistory]:
        """Table -> its batches, at most the newest `most` one by one, for those of the tables that have any."""
        totals, histories = self.load(tables), dict[str, TableHistory]()
        with self._database.reading() as tx:
            columns, name = t.costs.c, t.costs.c.table_name
            newest_first = columns.at.desc(), columns.start_at.desc()
            number = sa.func.row_number().over(partition_by=name, order_by=newest_first).label("number")
            batches = sa.func.count().over(partition_by=name).label("batches")
            query = sa.select(t.costs, number, batches).where(tx.own(t.costs))
            for chunk in split_chunks(sorted(tables)):
                rows = query.where(name.in_(chunk)).subquery()
                newest = sa.select(rows).where(rows.c.number <= most).order_by(rows.c.table_name, rows.c.number)
                for table, group in groupby(tx.execute(newest), key=lambda row: str(row.table_name)):
                    listed = list(group)
                    costs = (BatchCost(row.start_at, row.units, row.rows, row.seconds, row.at) for row in listed)
                    histories[table] = TableHistory(totals[table], int(listed[0].batches), tuple(costs))
        return histories
