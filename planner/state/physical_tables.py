"""Which physical tables there are, and which of them are garbage."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from mergeplan.planner.errors import Refused
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.costs import TableSize
from mergeplan.planner.serial import decode_json, encode_json
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.contents import drop_contents
from mergeplan.planner.state.environments import read_generation
from mergeplan.planner.state.leases import Lease, check_lease
from mergeplan.planner.state.transaction import ProjectStore, Transaction, split_chunks
from mergeplan.planner.wording import first_names


@dataclass(frozen=True)
class PhysicalTable:
    """A table that we created: `columns` its visible ones in order, `reads` what a physical view stands on."""

    name: str
    columns: tuple[Column, ...]
    reads: tuple[str, ...]
    garbage: bool
    touched_at: datetime
    size: TableSize | None = None


class PhysicalTables(ProjectStore):
    def all(self) -> Mapping[str, PhysicalTable]:
        with self._database.reading() as tx:
            return _read_tables(tx, tx.select(t.physical_tables))

    def names(self) -> frozenset[str]:
        with self._database.reading() as tx:
            names = sa.select(t.physical_tables.c.name).where(tx.own(t.physical_tables))
            return frozenset(tx.execute(names).scalars())

    def get(self, name: str) -> PhysicalTable | None:
        with self._database.reading() as tx:
            return _read_tables(tx, tx.select(t.physical_tables).where(t.physical_tables.c.name == name)).get(name)

    def load(self, names: Collection[str]) -> Mapping[str, PhysicalTable]:
        tables: dict[str, PhysicalTable] = {}
        with self._database.reading() as tx:
            for chunk in split_chunks(sorted(set(names))):
                tables |= _read_tables(tx, tx.select(t.physical_tables).where(t.physical_tables.c.name.in_(chunk)))
        return tables

    def columns(self, names: Collection[str]) -> Mapping[str, tuple[Column, ...]]:
        return {name: table.columns for name, table in self.load(names).items()}

    def owner(self) -> str:
        """Return the ID of this state, which its tables carry: 16 hexadecimal digits, drawn when first needed."""
        with self._database.reading() as tx:
            row = tx.execute(tx.select(t.identity)).one_or_none()
        if row is None:
            with self._database.writing() as tx:
                tx.put(t.identity, [{"id": uuid4().hex[:16]}], update=False)
                row = tx.execute(tx.select(t.identity)).one()
        return str(row.id)

    def replace_owner(self, state_id: str) -> None:
        """Take the ID of another state, which is lost: its tables are those of this state."""
        with self._database.writing() as tx:
            tx.put(t.identity, [{"id": state_id}])

    def find_unmeasured(self, names: Collection[str]) -> tuple[frozenset[str], datetime]:
        """Return the tables that were written since their size was measured, and the moment of this look (UTC)."""
        physical, written = t.physical_tables.c, sa.func.max(t.costs.c.at, type_=t.Utc)
        last = sa.select(t.costs.c.table_name, written.label("at")).group_by(t.costs.c.table_name)
        with self._database.reading() as tx:
            writes = last.where(tx.own(t.costs)).subquery()
            query = sa.select(physical.name).outerjoin(writes, writes.c.table_name == physical.name)
            query = query.where(tx.own(t.physical_tables), physical.garbage.is_(False))
            query = query.where(sa.or_(physical.measured_at.is_(None), writes.c.at >= physical.measured_at))
            return frozenset(tx.execute(query).scalars()) & frozenset(names), tx.now()

    def record_size(self, name: str, size: TableSize) -> None:
        with self._database.writing() as tx:
            statement = tx.update(t.physical_tables).where(t.physical_tables.c.name == name)
            tx.execute(statement.values(bytes=size.bytes, measured_at=size.measured_at))

    def types_of(self, table: str, column: str) -> tuple[str, ...]:
        """Return the types of a column in the files of a table and of its bases, latest first."""
        recorded_tables, types, frontier = self.all(), list[str](), [table]
        while frontier:
            physical_table = recorded_tables.get(frontier.pop())
            if physical_table is not None:
                types += [c.type for c in physical_table.columns if c.name == column]
                frontier += physical_table.reads
        return tuple(dict.fromkeys(types))

    def register(
        self, name: str, columns: Sequence[Column], reads: Collection[str] = (), *, lease: Lease | None = None
    ) -> None:
        """Know a table, freshly meant to be used: no garbage any more."""
        with self._database.writing() as tx:
            if lease:
                check_lease(tx, lease)
            row: dict[str, Any] = {"name": name, "columns": encode_json(tuple(columns)), "reads": sorted(reads)}
            tx.put(t.physical_tables, [{**row, "garbage": False, "touched_at": tx.now()}])
            drop_contents(tx, name)

    def touch(self, names: Collection[str]) -> None:
        """Note that a plan means to use these tables: for a day the janitor leaves them."""
        with self._database.writing() as tx:
            current_time = tx.now()
            for chunk in split_chunks(sorted(names)):
                statement = tx.update(t.physical_tables).where(t.physical_tables.c.name.in_(chunk))
                tx.execute(statement.values(touched_at=current_time))

    def mark_garbage(self, table: str, *, lease: Lease, seen_generation: int) -> bool:
        """Mark a table to drop, so no promotion shows it; False if an environment changed since `seen_generation`."""
        with self._database.writing() as tx:
            check_lease(tx, lease)
            lock_table(tx, table)
            if read_generation(tx) != seen_generation:
                return False
            tx.execute(tx.update(t.physical_tables).where(t.physical_tables.c.name == table).values(garbage=True))
            tx.execute(tx.delete(t.intervals).where(t.intervals.c.table_name == table))
            drop_contents(tx, table)
            return True

    def forget(self, tables: Collection[str], *, lease: Lease | None = None) -> None:
        with self._database.writing() as tx:
            if lease:
                check_lease(tx, lease)
            for chunk in split_chunks(sorted(tables)):
                for table, column in (
                    (t.physical_tables, t.physical_tables.c.name),  # first: whoever writes the others locks its row
                    (t.intervals, t.intervals.c.table_name),
                    (t.costs, t.costs.c.table_name),
                    (t.passed_audits, t.passed_audits.c.table_name),
                    (t.contents, t.contents.c.table_name),
                    (t.operations, t.operations.c.table_name),
                ):
                    tx.execute(tx.delete(table).where(column.in_(chunk)))


def are_ours(known_tables: Mapping[str, PhysicalTable], tables: Collection[str]) -> bool:
    """Return True when nobody else writes these tables, nor their bases: our files are never overwritten."""
    waiting, visited = list(tables), set[str]()
    while waiting:
        table = known_tables.get(waiting.pop())
        if table is None or table.garbage:
            return False
        waiting += set(table.reads) - visited
        visited.add(table.name)
    return True


def lock_table(tx: Transaction, table: str) -> None:
    """Let no other process change what is known of this table until the transaction ends."""
    row: dict[str, Any] = {"name": table, "columns": [], "reads": [], "garbage": False}
    tx.put(t.physical_tables, [{**row, "touched_at": tx.now()}], update=False)
    tx.execute(tx.select(t.physical_tables).where(t.physical_tables.c.name == table).with_for_update())


def check_present(tx: Transaction, tables: Collection[str]) -> None:
    """Refused when one of the tables is gone; the janitor can mark none of them before the transaction ends."""
    present_names, physical = set(), t.physical_tables
    for chunk in split_chunks(sorted(tables)):
        is_present = (tx.own(physical), physical.c.name.in_(chunk), physical.c.garbage.is_(False))
        statement = sa.select(physical.c.name).where(*is_present)
        present_names |= set(tx.execute(statement.order_by(physical.c.name).with_for_update()).scalars())
    if gone := sorted(set(tables) - present_names):
        tables = first_names([f"`{table}`" for table in gone], 1)
        raise Refused(f"The table {tables} is gone.", hint="Plan again: it will be built again.")


def _read_tables(tx: Transaction, query: sa.Select[Any]) -> Mapping[str, PhysicalTable]:
    rows = tx.execute(query.order_by(t.physical_tables.c.name)).all()
    return {
        row.name: PhysicalTable(
            row.name,
            tuple(decode_json(Column, column) for column in row.columns),
            tuple(row.reads),
            row.garbage,
            row.touched_at,
            TableSize(row.bytes, row.measured_at) if row.measured_at else None,
        )
        for row in rows
    }
