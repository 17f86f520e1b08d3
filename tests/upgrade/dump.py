"""A database as text that git can hold: its statements for SQLite and PostgreSQL, and its rows, one a line.

What is written and read here is told by the database alone, and by nothing that a later version of the code may change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from mergeplan.planner.state.database import open_database, open_transaction

DIALECTS: dict[str, sa.Dialect] = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}


def schema_of(url: str) -> str:
    """The statements that make the tables of a database, in its own dialect."""
    database = open_database(url)
    metadata = _reflect(database)
    dialect = DIALECTS[database.dialect.name]
    database.dispose()
    statements = [str(statement.compile(dialect=dialect)) for statement in _statements(metadata)]
    return "".join(f"{' '.join(statement.split())};\n" for statement in statements)


def rows_of(url: str) -> str:
    """The rows of a database: a line each, as `table {column: value}`."""
    database = open_database(url)
    metadata = _reflect(database)
    with open_transaction(database, read=True) as connection:
        lines = [
            f"{table.name} {json.dumps(_plain(row._mapping), sort_keys=True)}\n"
            for table in metadata.sorted_tables
            for row in connection.execute(sa.select(table).order_by(*_order(table)))
        ]
    database.dispose()
    return "".join(lines)


def load(url: str, folder: Path, replaced: dict[str, str] | None = None) -> None:
    """Make the database of a fixture's folder at a URL, with some texts of its rows replaced."""
    text = (folder / "rows.jsonl").read_text()
    for old, new in (replaced or {}).items():
        text = text.replace(old, new)
    database = open_database(url)
    with open_transaction(database) as connection:
        for statement in (folder / f"schema.{database.dialect.name}.sql").read_text().splitlines():
            connection.execute(sa.text(statement))
    metadata = _reflect(database)
    with open_transaction(database) as connection:
        for line in text.splitlines():
            name, _, row = line.partition(" ")
            table = metadata.tables[name]
            connection.execute(table.insert().values(_typed(table, json.loads(row))))
        _advance_sequences(connection, metadata)
    database.dispose()


def _reflect(database: sa.Engine) -> sa.MetaData:
    metadata = sa.MetaData()
    metadata.reflect(database)
    return metadata


def _statements(metadata: sa.MetaData) -> Iterator[CreateTable | CreateIndex]:
    for table in sorted(metadata.tables.values(), key=lambda table: table.name):
        yield CreateTable(table)
        yield from (CreateIndex(index) for index in sorted(table.indexes, key=lambda index: str(index.name)))


def _order(table: sa.Table) -> list[sa.Column[Any]]:
    return list(table.primary_key) or list(table.columns)


def _plain(row: sa.RowMapping) -> dict[str, Any]:
    return {str(name): value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def _typed(table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
    times = {column.name for column in table.columns if isinstance(column.type, sa.DateTime)}
    return {name: datetime.fromisoformat(value) if name in times and value else value for name, value in row.items()}


def _advance_sequences(connection: sa.Connection, metadata: sa.MetaData) -> None:
    """PostgreSQL counts on from the rows that were put in with their numbers."""
    if connection.dialect.name != "postgresql":
        return
    for table in metadata.sorted_tables:
        for column in table.columns:
            if "nextval" in str(getattr(column.server_default, "arg", "")):
                last = sa.select(sa.func.max(column)).scalar_subquery()
                sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
                connection.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(last, 1))))
