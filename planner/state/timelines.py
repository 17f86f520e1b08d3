"""Which physical tables there are, which time each of them holds, and what its batches cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from planner.intervals import Interval, Timeline, merge, subtract
from planner.model.model import Column
from planner.plan.costs import Cost
from planner.serial import Json, from_json, to_json
from planner.state import tables as t
from planner.state.contents import KnownContents
from planner.state.database import clock, put
from planner.state.leases import Lease
from planner.state.records import chunks


@dataclass(frozen=True)
class PhysicalTable:
    """A table that we created: `columns` its visible ones in order, `reads` what a physical view stands on."""

    name: str
    columns: tuple[Column, ...]
    reads: tuple[str, ...]
    garbage: bool
    touched_at: datetime


class Timelines(KnownContents):
    """The physical tables of one project and what they hold."""

    def loaded(self, tables: Collection[str]) -> Mapping[str, Timeline]:
        """Table -> the time it holds, for the given tables; () for one that holds none or is unknown."""
        found: dict[str, list[Interval]] = {name: [] for name in tables}
        with self._reading() as connection:
            for chunk in chunks(sorted(found)):
                rows = connection.execute(self._select(t.intervals).where(t.intervals.c.table_name.in_(chunk)))
                for row in rows:
                    found[row.table_name].append(Interval(row.start_at, row.end_at))
        return {name: merge(intervals) for name, intervals in found.items()}

    def physical_tables(self) -> Mapping[str, PhysicalTable]:
        """Every table that we know, by name."""
        return self._physical_tables(self._select(t.physical_tables))

    def physical_table(self, name: str) -> PhysicalTable | None:
        """What we know of one table; None when we do not know it."""
        return self._physical_tables(self._select(t.physical_tables).where(t.physical_tables.c.name == name)).get(name)

    def _physical_tables(self, query: sa.Select[Any]) -> Mapping[str, PhysicalTable]:
        with self._reading() as connection:
            rows = connection.execute(query.order_by(t.physical_tables.c.name)).all()
            return {
                row.name: PhysicalTable(row.name, _columns(row.columns), tuple(row.reads), row.garbage, row.touched_at)
                for row in rows
            }

    def types_of(self, table: str, column: str) -> tuple[str, ...]:
        """The types that a column has in the files of a table, latest first: those in the tables that it stands on
        count too."""
        known, found, frontier = self.physical_tables(), list[str](), [table]
        while frontier:
            each = known.get(frontier.pop())
            if each is not None:
                found += [c.type for c in each.columns if c.name == column]
                frontier += each.reads
        return tuple(dict.fromkeys(found))

    def register_table(
        self, name: str, columns: Sequence[Column], reads: Collection[str] = (), *, lease: Lease | None = None
    ) -> None:
        """Know a table, freshly meant to be used: no garbage any more."""
        with self._writing() as connection:
            if lease:
                self._checked(connection, lease)
            row: dict[str, Any] = {"project": self.project, "name": name, "columns": to_json(tuple(columns))}
            row |= {"reads": sorted(reads), "garbage": False, "touched_at": clock(connection)}
            put(connection, t.physical_tables, [row])
            self._drop_contents(connection, name)

    def touch_tables(self, names: Collection[str]) -> None:
        """Say that a plan means to use these tables: for a day the janitor leaves them."""
        with self._writing() as connection:
            now = clock(connection)
            for chunk in chunks(sorted(names)):
                mine = sa.update(t.physical_tables).where(self._own(t.physical_tables))
                connection.execute(mine.where(t.physical_tables.c.name.in_(chunk)).values(touched_at=now))

    def record_interval(self, table: str, interval: Interval, *, lease: Lease | None = None) -> None:
        """Say that the table holds the interval: merged with what it held, safely when two processes do it at once."""
        self._change(table, interval, lease, lambda timeline: merge((*timeline, interval)))

    def forget_interval(self, table: str, interval: Interval, *, lease: Lease | None = None) -> None:
        """Say that the table does not hold the interval, so that it is computed again."""
        self._change(table, interval, lease, lambda timeline: subtract(timeline, (interval,)))

    def record_cost(
        self, table: str, start: datetime, *, units: int, rows: int, seconds: float, bytes_read: int | None = None
    ) -> None:
        """Say what the batch from `start` on cost; it replaces what that batch cost earlier."""
        row: dict[str, Any] = {"project": self.project, "table_name": table, "start_at": start, "units": units}
        row |= {"rows": rows, "seconds": seconds, "bytes_read": bytes_read}
        with self._writing() as connection:
            put(connection, t.costs, [{**row, "at": clock(connection)}])

    def costs(self, tables: Collection[str]) -> Mapping[str, Cost]:
        """Table -> what its batches cost together, for those of the given tables that have any."""
        found: dict[str, Cost] = {}
        sums = [sa.func.sum(column) for column in (t.costs.c.units, t.costs.c.rows, t.costs.c.seconds)]
        query = sa.select(t.costs.c.table_name, *sums).where(self._own(t.costs)).group_by(t.costs.c.table_name)
        with self._reading() as connection:
            for chunk in chunks(sorted(tables)):
                for table, units, rows, seconds in connection.execute(query.where(t.costs.c.table_name.in_(chunk))):
                    found[table] = Cost(int(units), int(rows), float(seconds))
        return found

    def record_passed_audit(self, table: str, audit: str) -> None:
        """Say that an audit, by a hash of what it asks, found nothing to block in the table."""
        with self._writing() as connection:
            put(connection, t.passed_audits, [{"project": self.project, "table_name": table, "audit": audit}])

    def forget_passed_audit(self, table: str, audit: str) -> None:
        """Say that it is no longer known whether an audit passes on the table."""
        mine = sa.delete(t.passed_audits).where(self._own(t.passed_audits), t.passed_audits.c.table_name == table)
        with self._writing() as connection:
            connection.execute(mine.where(t.passed_audits.c.audit == audit))

    def passed_audits(self, table: str) -> frozenset[str]:
        """The audits that were said to have passed on the table."""
        mine = self._select(t.passed_audits).where(t.passed_audits.c.table_name == table)
        with self._reading() as connection:
            return frozenset(row.audit for row in connection.execute(mine))

    def mark_garbage(self, table: str, *, lease: Lease, seen: int) -> bool:
        """Say that a table is about to be dropped; False when an environment changed since `seen` (a `generation`).

        From here on no promotion can show it.
        """
        with self._writing() as connection:
            self._checked(connection, lease)
            self._lock_table(connection, table)
            if self._generation(connection) != seen:
                return False
            mine = sa.update(t.physical_tables).where(self._own(t.physical_tables), t.physical_tables.c.name == table)
            connection.execute(mine.values(garbage=True))
            of_table = t.intervals.c.table_name == table
            connection.execute(sa.delete(t.intervals).where(self._own(t.intervals), of_table))
            self._drop_contents(connection, table)
            return True

    def generation(self) -> int:
        """A number that grows with every change of any environment."""
        with self._reading() as connection:
            return self._generation(connection)

    def _generation(self, connection: sa.Connection) -> int:
        history = t.environment_history
        rows = sa.select(sa.func.count()).select_from(history).where(self._own(history))
        return int(connection.execute(rows).scalar_one())

    def forget_tables(self, tables: Collection[str]) -> None:
        """Know nothing of these tables any more."""
        with self._writing() as connection:
            for chunk in chunks(sorted(tables)):
                for table, column in (
                    (t.physical_tables, t.physical_tables.c.name),  # first: whoever writes the others locks its row
                    (t.intervals, t.intervals.c.table_name),
                    (t.costs, t.costs.c.table_name),
                    (t.passed_audits, t.passed_audits.c.table_name),
                    (t.contents, t.contents.c.table_name),
                ):
                    connection.execute(sa.delete(table).where(self._own(table), column.in_(chunk)))

    def _change(
        self, table: str, interval: Interval, lease: Lease | None, change: Callable[[Timeline], Timeline]
    ) -> None:
        with self._writing() as connection:
            if lease:
                self._checked(connection, lease)
            self._set_timeline(connection, table, change)
            self._drop_contents(connection, table, interval)

    def _set_timeline(self, connection: sa.Connection, table: str, change: Callable[[Timeline], Timeline]) -> None:
        self._lock_table(connection, table)
        mine = self._select(t.intervals).where(t.intervals.c.table_name == table)
        before = merge(Interval(row.start_at, row.end_at) for row in connection.execute(mine))
        after = change(before)
        gone, new = set(before) - set(after), set(after) - set(before)
        for interval in gone:
            where = (t.intervals.c.table_name == table, t.intervals.c.start_at == interval.start)
            connection.execute(sa.delete(t.intervals).where(self._own(t.intervals), *where))
        row = {"project": self.project, "table_name": table}
        put(connection, t.intervals, [{**row, "start_at": new.start, "end_at": new.end} for new in sorted(new)])

    def _lock_table(self, connection: sa.Connection, table: str) -> None:
        """Let no other process change what is known of this table until the transaction ends."""
        row = {"project": self.project, "name": table, "columns": [], "reads": [], "garbage": False}
        put(connection, t.physical_tables, [{**row, "touched_at": clock(connection)}], update=False)
        mine = self._select(t.physical_tables).where(t.physical_tables.c.name == table)
        connection.execute(mine.with_for_update())


def _columns(data: Json) -> tuple[Column, ...]:
    return tuple(from_json(Column, column) for column in data)
