"""What tables are known to hold, by hash: kept from when it was computed until the table is written again.

What is kept here is believed, so that a row must be gone before its table changes: `forget` comes before a write, which
may be cut off at any moment, and every record of an interval drops once more what it touches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime

import sqlalchemy as sa

from mergeplan.planner.intervals import Interval
from mergeplan.planner.snapshot.content_hash import Content, Contents, Found, columns_key
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.leases import Lease, check_lease
from mergeplan.planner.state.transaction import Database, Transaction, chunks


class KnownContents:
    """What the physical tables of one project hold, as far as it was computed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, tables: Collection[str]) -> Mapping[str, Contents]:
        """Table -> what is known of it, for the given tables; nothing for one that was not looked at."""
        contents_by_table: dict[str, dict[str, dict[str, Content]]] = {name: {} for name in tables}
        with self._database.reading() as tx:
            for chunk in chunks(sorted(contents_by_table)):
                for row in tx.execute(tx.select(t.contents).where(t.contents.c.table_name.in_(chunk))):
                    periods = contents_by_table[row.table_name].setdefault(row.columns, {})
                    periods[row.period] = Content(row.rows, row.hash)
        return {name: Contents(known) for name, known in contents_by_table.items()}

    def record(self, table: str, findings: Found, *, lease: Lease) -> None:
        """Keep what the table holds, as a Spark computed it while this lease, the table's own, kept writers away.

        LeaseHeld when the lease was lost meanwhile. Nothing is kept of a table that we do not know or that is garbage,
        nor of a physical view (ValueError): its rows change when the tables that it reads are written.
        """
        if not lease.name.endswith(f":{table}"):
            raise ValueError(f"the lease on {lease.name} does not keep writers away from {table}")
        rows = [
            {
                "table_name": table,
                "columns": columns_key(columns),
                "period": period,
                "start_at": _start(period),
                **asdict(content),
            }
            for columns, periods in findings.items()
            for period, content in periods.items()
        ]
        with self._database.writing() as tx:
            check_lease(tx, lease)
            mine = tx.select(t.physical_tables).where(t.physical_tables.c.name == table)
            known = tx.execute(mine.with_for_update()).one_or_none()
            if known is None or known.garbage:
                return
            if known.reads:
                raise ValueError(f"{table} is a view")
            tx.put(t.contents, rows)

    def forget(self, table: str, interval: Interval, *, lease: Lease) -> None:
        """Drop what is known of the interval, which is about to be written; LeaseHeld when the lease was lost."""
        with self._database.writing() as tx:
            check_lease(tx, lease)
            drop_contents(tx, table, interval)


def drop_contents(tx: Transaction, table: str, interval: Interval | None = None) -> None:
    """Drop what is known of the periods that begin in the interval and of the whole; without one, of all."""
    gone = tx.delete(t.contents).where(t.contents.c.table_name == table)
    if interval:
        start = t.contents.c.start_at
        gone = gone.where(sa.or_(start.is_(None), sa.and_(start >= interval.start, start < interval.end)))
    tx.execute(gone)


def _start(period: str) -> datetime | None:
    return datetime.fromisoformat(period).replace(tzinfo=UTC) if period else None
