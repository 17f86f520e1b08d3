"""What tables are known to hold, by hash, and what they were made from: kept until the table is written again.

What is kept here is believed, so that a row must be gone before its table changes: `forget` comes before a write, which
may be cut off at any moment, and every record of an interval drops once more what it touches.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from uuid import uuid4

import sqlalchemy as sa

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval
from mergeplan.planner.snapshot.content_hash import WHOLE, Content, Contents, Found, columns_key
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.leases import Lease, check_lease
from mergeplan.planner.state.transaction import ProjectStore, Transaction, split_chunks

# In place of the key of a column set:
_MARK = "mark"  # a random word for what the table holds now: a write takes it away, and the next one is another
_INPUTS = "inputs"  # a digest of the query and of the marks of all that it read when it filled the table
_PASSED = "pass:"  # and a digest of what an audit asks: a digest of what its pass rests on


class KnownContents(ProjectStore):
    """What the physical tables of one project hold, as far as it was computed."""

    def load(self, tables: Collection[str]) -> Mapping[str, Contents]:
        """Table -> what is known of it, for the given tables; nothing for one that was not looked at."""
        contents_by_table: dict[str, dict[str, dict[str, Content]]] = {name: {} for name in tables}
        is_set = t.contents.c.columns.notin_((_MARK, _INPUTS)), t.contents.c.columns.not_like(f"{_PASSED}%")
        with self._database.reading() as tx:
            for chunk in split_chunks(sorted(contents_by_table)):
                statement = tx.select(t.contents).where(t.contents.c.table_name.in_(chunk))
                for row in tx.execute(statement.where(*is_set)):
                    periods = contents_by_table[row.table_name].setdefault(row.columns, {})
                    periods[row.period] = Content(row.rows, row.hash)
        return {name: Contents(column_contents) for name, column_contents in contents_by_table.items()}

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
                "start_at": datetime.fromisoformat(period).replace(tzinfo=UTC) if period else None,
                **asdict(content),
            }
            for columns, periods in findings.items()
            for period, content in periods.items()
        ]
        with self._database.writing() as tx:
            check_lease(tx, lease)
            statement = tx.select(t.physical_tables).where(t.physical_tables.c.name == table)
            table_row = tx.execute(statement.with_for_update()).one_or_none()
            if table_row is None or table_row.garbage:
                return
            if table_row.reads:
                raise ValueError(f"{table} is a view")
            tx.put(t.contents, rows)

    def mark_tables(self, tables: Collection[str]) -> Mapping[str, str] | None:
        """Table -> a word that is another one after each write of it; None unless all of them are ours alone.

        A write takes the word away before it begins and when it is recorded. So a word that was given out while a
        table was being written is none that it has afterwards.
        """
        with self._database.writing() as tx:
            physical = t.physical_tables
            statement = tx.select(physical).where(physical.c.name.in_(sorted(tables)))
            # In one order: two that mark the same tables do not block each other.
            table_rows = tx.execute(statement.order_by(physical.c.name)).all()
            if len(table_rows) < len(tables) or any(row.garbage or row.reads for row in table_rows):
                return None
            fresh = [_whole_row(row.name, _MARK, uuid4().hex) for row in table_rows]
            tx.put(t.contents, fresh, update=False)
            marked = t.contents.c.table_name.in_(sorted(tables)), t.contents.c.columns == _MARK
            marks = {row.table_name: row.hash for row in tx.execute(tx.select(t.contents).where(*marked))}
            if len(marks) < len(table_rows):  # one was taken away just now: somebody is writing
                return None
            return {row.name: digest(marks[row.name], repr(row.columns))[:32] for row in table_rows}

    def load_inputs(self, table: str) -> str:
        return self._load_whole(table, _INPUTS)

    def record_inputs(self, table: str, inputs: str, *, lease: Lease) -> None:
        """Keep what the table was made from, which nobody has written since; LeaseHeld when the lease was lost."""
        with self._database.writing() as tx:
            check_lease(tx, lease)
            tx.put(t.contents, [_whole_row(table, _INPUTS, inputs)])

    def load_pass(self, table: str, asked: str) -> str:
        return self._load_whole(table, f"{_PASSED}{asked[:26]}")

    def _load_whole(self, table: str, columns: str) -> str:
        with self._database.reading() as tx:
            condition = t.contents.c.table_name == table, t.contents.c.columns == columns
            row = tx.execute(tx.select(t.contents).where(*condition)).one_or_none()
            return row.hash if row else ""

    def record_pass(self, table: str, asked: str, basis: str) -> None:
        """Store what an audit's pass rests on: it counts while that is found again, so nobody need hold the table."""
        with self._database.writing() as tx:
            tx.put(t.contents, [_whole_row(table, f"{_PASSED}{asked[:26]}", basis[:32])])

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


def _whole_row(table: str, columns: str, value: str) -> dict[str, object]:
    return {"table_name": table, "columns": columns, "period": WHOLE, "start_at": None, "rows": 0, "hash": value}
