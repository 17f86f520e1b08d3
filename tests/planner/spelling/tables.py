"""The tables that the constructs are written over: each row and each name is there to catch a reading that is wrong.

Columns have the names of lambda variables and of keyword functions; there are NULLs, NaN, -0.0, equal rows, texts that
differ in case only, and a table without rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.semantics.parent import Parent


@dataclass(frozen=True)
class Table:
    """A table's columns with their types, and its rows as Spark SQL; '' for none."""

    columns: Mapping[str, str]
    rows: str

    @property
    def sql(self) -> str:
        names = ", ".join(f"`{name}`" for name in self.columns)
        cast = ", ".join(f"CAST(`{name}` AS {kind}) AS `{name}`" for name, kind in self.columns.items())
        nulls = ", ".join("NULL" for _ in self.columns)
        return (
            f"SELECT {cast} FROM VALUES {self.rows or f'({nulls})'} AS v({names}){'' if self.rows else ' WHERE FALSE'}"
        )

    @property
    def parent(self) -> Parent:
        return Parent(tuple(self.columns), types=tuple(self.columns.items()))


def _table(columns: str, rows: str) -> Table:
    pairs = (column.strip().split(" ", 1) for column in re.split(r",(?![^<(]*[>)])", columns))
    return Table({column[0]: column[1] for column in pairs}, rows)


TABLES = {
    "s.t": _table(
        """id int, n int, f double, p decimal(10,2), s string, u string, d date, ts timestamp, b boolean,
        arr array<int>, words array<string>, st struct<x:int,Y:string>, m map<string,int>,
        x int, a int, y string, big bigint, fl float""",
        """(1, 10, 1.5D, 5.00BD, 'a', 'A', DATE '2026-01-01', TIMESTAMP '2026-01-01 10:00:00',
            true, array(1, 2, NULL), array('a', 'B'), named_struct('x', 1, 'Y', 'a'),
            map('a', 1, 'B', 2), 7, 3, 'k', 5L, 0.5F),
        (2, NULL, double('NaN'), NULL, 'B', 'b ', DATE '2026-01-02', NULL, false, array(), array(),
            NULL, map(), NULL, 1, '1', NULL, NULL),
        (2, NULL, double('NaN'), NULL, 'B', 'b ', DATE '2026-01-02', NULL, false, array(), array(),
            NULL, map(), NULL, 1, '1', NULL, NULL),
        (3, -1, -0.0D, -1.50BD, NULL, '', NULL, TIMESTAMP '2026-02-28 23:59:59', NULL, NULL, NULL,
            named_struct('x', NULL, 'Y', 'Z'), NULL, 2, NULL, NULL, -7L, -0.0F),
        (NULL, 10, 0.0D, 99.99BD, '10', 'a', DATE '1999-12-31', TIMESTAMP '1999-12-31 00:00:00', true, array(5, 5),
            array(NULL, 'x'), named_struct('x', 3, 'Y', NULL), map('x', NULL), 1, 2, 'x', 10L, 2.5F)""",
    ),
    "s.o": _table(
        "id int, n int, s string, d date",
        """(1, 10, 'a', DATE '2026-01-01'), (1, 11, NULL, NULL), (3, NULL, 'B', DATE '2026-01-02'),
        (NULL, 5, '', DATE '2026-01-01'), (9, 9, '9', NULL)""",
    ),
    "s.e": _table("id int, n int, s string, d date", ""),
    "s.k": _table(
        """id int, current_date date, current_timestamp timestamp, current_user string, user string,
        session_user string, localtimestamp timestamp, current_catalog string,
        current_database string, current_schema string, current_time string, now string, pi int, date string,
        first string, key string,
        value string, col string, pos int""",
        """(1, DATE '2001-01-01', TIMESTAMP '2001-01-01 00:00:00', 'u', 'v', 'w',
        TIMESTAMP '2001-01-01 00:00:00', 'c', 'd', 'e', 'noon', 'n', 3, 'x', 'f', 'k', 'v', 'c', 0)""",
    ),
}


def create_tables(engine: SparkEngine) -> None:
    """Create the tables in the schema `s`, which must not exist."""
    engine.fetch("CREATE SCHEMA s")
    for name, table in TABLES.items():
        engine.fetch(f"CREATE TABLE {name} USING parquet AS {table.sql}")
