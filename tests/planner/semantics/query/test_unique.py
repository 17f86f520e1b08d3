"""What a query says of which rows are told apart by what."""

from __future__ import annotations

import pytest

from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent

COLUMNS = ("id", "k", "x")
PARENTS = {
    "s.a": Parent(COLUMNS, keys=(("id",),)),
    "s.b": Parent(COLUMNS, keys=(("k", "x"),)),
    "s.c": Parent(COLUMNS),
    "s.d": Parent(COLUMNS, audited=(("id",),)),
}
FIRST = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM {})"


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT id, x FROM s.a WHERE k > 1", (("id",),)),
        ("SELECT id AS k FROM s.a", (("k",),)),
        ("SELECT k, x FROM s.a", ()),
        ("SELECT k AS id FROM s.a", ()),
        ("SELECT id + 1 AS id FROM s.a", ()),
        ("SELECT id, k FROM s.d", ()),  # an audit is not passed on: it may go, and nobody would know
        ("SELECT DISTINCT k, x FROM s.c", (("k", "x"),)),
        ("SELECT k, COUNT(*) AS n FROM s.c GROUP BY k", (("k",),)),
        ("SELECT COUNT(*) AS n FROM s.c GROUP BY k", ()),
        ("SELECT COUNT(*) AS n FROM s.c", ((),)),
        ("SELECT k, COUNT(*) AS n FROM s.c GROUP BY ROLLUP (k)", ()),
        (f"SELECT k FROM {FIRST.format('s.c')} WHERE n = 1", (("k",),)),
        (f"SELECT id, k FROM {FIRST.format('s.a')} WHERE 1 = n", (("id",), ("k",))),
        (f"SELECT k FROM {FIRST.format('s.c')} WHERE n <= 1", ()),
        (f"SELECT k FROM {FIRST.format('s.c')} WHERE n = 1 OR x = 1", ()),
        (f"SELECT k FROM {FIRST.format('s.c').replace('ROW_NUMBER', 'RANK')} WHERE n = 1", ()),
        (f"SELECT q.k FROM {FIRST.format('s.c')} AS q JOIN s.c AS c ON q.id = c.id WHERE n = 1", ()),
        (f"SELECT q.k, a.id FROM {FIRST.format('s.c')} AS q JOIN s.a AS a ON q.id = a.id WHERE n = 1", (("id", "k"),)),
        ("SELECT a.id, b.k, b.x FROM s.a AS a JOIN s.b AS b ON a.k = b.k", (("id", "k", "x"),)),
        ("SELECT a.id, b.k, b.x FROM s.a AS a LEFT JOIN s.b AS b ON a.k = b.k", (("id", "k", "x"),)),
        ("SELECT a.id, b.k, b.x FROM s.a AS a FULL JOIN s.b AS b ON a.k = b.k", ()),
        ("SELECT a.id FROM s.a AS a JOIN s.b AS b ON a.k = b.k", ()),
        ("SELECT a.id FROM s.a AS a LEFT SEMI JOIN s.c AS c ON a.k = c.k", (("id",),)),
        ("SELECT id FROM s.a UNION ALL SELECT id FROM s.a", ()),
        ("SELECT id FROM s.a UNION SELECT id FROM s.a", (("id",),)),
        ("SELECT id, EXPLODE(ARRAY(k, x)) AS e FROM s.a", ()),
        ("SELECT id, my_function(k) AS e FROM s.a", ()),
        ("SELECT id FROM (SELECT id FROM s.a LIMIT 3)", ()),
    ],
)
def test_a_query_has_the_keys_that_it_shows(sql: str, keys: tuple[tuple[str, ...], ...]) -> None:
    assert shape_of(sql, PARENTS).keys == keys


@pytest.mark.parametrize(
    ("value", "chance"),
    [
        ("LAG(x) OVER (PARTITION BY k ORDER BY id)", False),
        ("LAG(RAND()) OVER (PARTITION BY k ORDER BY id)", True),
        ("LAG(x) OVER (PARTITION BY k ORDER BY RAND(), id)", True),
        ("LAG(x) OVER (PARTITION BY k ORDER BY -id)", True),
        ("my_function(x) OVER (PARTITION BY k ORDER BY id)", True),
        ("COLLECT_SET(x) OVER (PARTITION BY k ORDER BY id)", True),
        ("MODE(x) OVER (PARTITION BY k, id)", True),
        ("ROW_NUMBER() OVER w", False),
        ("SUM(x) OVER (ORDER BY k, id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", False),
        ("SUM(x) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", True),
    ],
)
def test_an_order_without_ties_leaves_nothing_to_chance(value: str, chance: bool) -> None:
    shape = shape_of(f"SELECT id, {value} AS v FROM s.d WINDOW w AS (ORDER BY id DESC)", PARENTS)

    assert shape.relation is not None
    assert shape.volatile == (frozenset("v") if chance else frozenset())
    assert shape.relies == (("s.d", (("id",),)),)
