"""The external tables that every generated project reads: few rows, each of them there to catch somebody.

A kind is one letter: i(nteger), n(umber: decimal), f(loat), s(tring), d(ate), b(oolean), a(rray of strings),
t (a struct of x and y), m(ap). The floats are sums of halves, so that no order of adding them up shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mergeplan.planner.naming import quote_column

Columns = Mapping[str, str]  # name -> kind, in order

TABLES: dict[str, Columns] = {
    "s.orders": {"id": "i", "item": "i", "price": "n", "flag": "s", "d": "d"},
    "s.items": {"item": "i", "name": "s", "price": "n", "ok": "b"},
    "s.tags": {"id": "i", "labels": "a", "spot": "t", "attrs": "m", "w": "f", "flag": "s"},
    # columns with the names of functions that are called without brackets, and of a lambda's variable
    "s.words": {"id": "i", "e": "s", "current_user": "s", "current_date": "d", "labels": "a"},
}
ROWS = {
    "s.orders": """
        (1, 10, 5.00BD, 'a', DATE '2026-01-01'), (2, 10, NULL, 'b', DATE '2026-01-01'),
        (3, 20, 5.00BD, NULL, DATE '2026-01-02'), (3, 20, 5.00BD, NULL, DATE '2026-01-02'),
        (4, NULL, -1.50BD, 'A', DATE '2026-01-03'), (5, 30, 0.00BD, '', DATE '2026-01-05'),
        (NULL, 30, 7.25BD, 'a', NULL), (6, 10, 99999999.99BD, 'b', DATE '2026-01-05')""",
    "s.items": """
        (10, 'a', 5.00BD, true), (20, 'A', NULL, false), (20, 'b', 2.00BD, NULL), (40, '', 0.00BD, true),
        (NULL, NULL, -1.50BD, false)""",
    "s.tags": """
        (1, array('a', 'b', 'a'), named_struct('x', 1, 'y', 'a'), map('a', 1), 0.5D, 'a'),
        (2, array(), named_struct('x', NULL, 'y', 'b'), map(), -0.5D, 'b'),
        (2, array(NULL, ''), NULL, NULL, NULL, NULL),
        (4, NULL, named_struct('x', 3, 'y', NULL), map('b', NULL), 0.0D, ''),
        (NULL, array('A'), named_struct('x', 1, 'y', 'a'), map('a', 2, 'b', 3), 2.0D, 'A'),
        (5, array('b', NULL), named_struct('x', 1, 'y', 'a'), map('a', 1), -0.0D, 'b')""",
    "s.words": """
        (1, 'a', 'me', DATE '2026-01-01', array('a', 'c')), (2, 'b', NULL, DATE '2026-01-02', array('b')),
        (3, NULL, 'you', NULL, array()), (10, 'A', '', DATE '2026-01-05', NULL)""",
}
TYPES = {
    "i": "int", "n": "decimal(10,2)", "f": "double", "s": "string", "d": "date", "b": "boolean", "a": "array<string>",
    "t": "struct<x:int,y:string>", "m": "map<string,int>",
}  # fmt: skip
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-31")  # the last day of one stretch, the first of the next


def rows_of(table: str, names: Sequence[str] = ()) -> str:
    """A query that returns an external table's rows; `names` are other names for its first columns."""
    columns = TABLES[table]
    named = dict(zip(columns, names, strict=False))
    cast = ", ".join(
        f"CAST({name} AS {TYPES[kind]}) AS {quote_column(named.get(name, name))}" for name, kind in columns.items()
    )
    return f"SELECT {cast} FROM VALUES {ROWS[table].strip()} AS v({', '.join(columns)})"
