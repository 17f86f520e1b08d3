"""What the batches of tables cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.plan.costs import Cost
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
