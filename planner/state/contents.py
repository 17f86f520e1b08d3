"""What tables are known to hold, by hash: kept from when it was computed until the table is written again.

What is kept here is believed, so that a row must be gone before its table changes: `forget_contents` comes before a
write, which may be cut off at any moment, and `record_interval` and its like drop once more what they touch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from planner.intervals import Interval
from planner.snapshot.content_hash import Content, Contents, Found, columns_key
from planner.state import tables as t
from planner.state.database import put
from planner.state.leases import Lease, Leases
from planner.state.records import chunks


class KnownContents(Leases):
    """What the physical tables of one project hold, as far as it was computed."""

    def contents(self, tables: Collection[str]) -> Mapping[str, Contents]:
        """Table -> what is known of it, for the given tables; nothing for one that was not looked at."""
        found: dict[str, dict[str, dict[str, Content]]] = {name: {} for name in tables}
        with self._reading() as connection:
            for chunk in chunks(sorted(found)):
                for row in connection.execute(self._select(t.contents).where(t.contents.c.table_name.in_(chunk))):
                    periods = found[row.table_name].setdefault(row.columns, {})
                    periods[row.period] = Content(row.rows, row.hash)
        return {name: Contents(known) for name, known in found.items()}

    def record_contents(self, table: str, found: Found, *, lease: Lease) -> None:
        """Say what the table holds, as a Spark computed it while this lease, the table's own, kept writers away.

        LeaseHeld when the lease was lost meanwhile. Nothing is kept of a table that we do not know or that is garbage,
        nor of a physical view (ValueError): its rows change when the tables that it reads are written.
        """
        if not lease.name.endswith(f":{table}"):
            raise ValueError(f"the lease on {lease.name} does not keep writers away from {table}")
        same: dict[str, Any] = {"project": self.project, "table_name": table}
        rows = [
            {**same, "columns": columns_key(columns), "period": period, "start_at": _start(period), **asdict(content)}
            for columns, periods in found.items()
            for period, content in periods.items()
        ]
        with self._writing() as connection:
            self._checked(connection, lease)
            mine = self._select(t.physical_tables).where(t.physical_tables.c.name == table)
            known = connection.execute(mine.with_for_update()).one_or_none()
            if known is None or known.garbage:
                return
            if known.reads:
                raise ValueError(f"{table} is a view")
            put(connection, t.contents, rows)

    def forget_contents(self, table: str, interval: Interval, *, lease: Lease) -> None:
        """Say that the interval is about to be written: what it held is not known any more. LeaseHeld when the lease
        was lost."""
        with self._writing() as connection:
            self._checked(connection, lease)
            self._drop_contents(connection, table, interval)

    def _drop_contents(self, connection: sa.Connection, table: str, interval: Interval | None = None) -> None:
        """Forget what is known of the periods that begin in the interval and of the whole; without one, of all."""
        gone = sa.delete(t.contents).where(self._own(t.contents), t.contents.c.table_name == table)
        if interval:
            start = t.contents.c.start_at
            gone = gone.where(sa.or_(start.is_(None), sa.and_(start >= interval.start, start < interval.end)))
        connection.execute(gone)


def _start(period: str) -> datetime | None:
    return datetime.fromisoformat(period).replace(tzinfo=UTC) if period else None
