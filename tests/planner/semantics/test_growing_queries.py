"""A text in which each level uses the one below twice is not followed where that would take any time."""

from __future__ import annotations

import pytest

from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent

PARENTS = {"s.t": Parent(("id",))}
FIRST = "SELECT id AS a FROM s.t"
LEVELS = {  # a query over the one below
    "sum": "SELECT a + a AS a FROM ({})",
    "case": "SELECT CASE WHEN a > 1 THEN a ELSE a + 1 END AS a FROM ({})",
    "condition": "SELECT a BETWEEN a AND a AS a FROM ({})",
    "list": "SELECT a IN (a, a) AS a FROM ({})",
    "struct": "SELECT STRUCT(a AS x, a AS y) AS a FROM ({})",
    "function": "SELECT NULLIF(COALESCE(a, a), a) AS a FROM ({})",
    "lambda": "SELECT TRANSFORM(ARRAY(a), x -> x + a + a)[0] AS a FROM ({})",
    "window": "SELECT SUM(a) OVER (ORDER BY a) AS a FROM ({})",
    "aggregate": "SELECT SUM(a) + MAX(a) AS a FROM ({}) GROUP BY a",
    "distinct": "SELECT DISTINCT a + a AS a FROM ({})",
    "union": "SELECT a + a AS a FROM ({}) UNION ALL SELECT 1",
    "limit": "SELECT a + a AS a FROM ({}) ORDER BY a LIMIT 5",
    "generator": "SELECT EXPLODE(ARRAY(a, a)) AS a FROM ({})",
    "subquery": "SELECT (SELECT MAX(a + a) FROM ({})) AS a",
    "exists": "SELECT a + a AS a FROM ({}) AS q WHERE EXISTS (SELECT 1 FROM s.t WHERE id = q.a)",
    "two columns": "SELECT a + b AS a, a - b AS b FROM (SELECT *, a AS b FROM ({}))",
}


def nest(level: str, depth: int) -> str:
    query = FIRST
    for _ in range(depth):
        query = level.format(query)
    return query


@pytest.mark.parametrize("name", LEVELS)
def test_a_text_that_doubles_at_each_level_is_not_followed(name: str) -> None:
    shape = shape_of(nest(LEVELS[name], 40), PARENTS)

    assert "expressions that expand to that many" in shape.obstacle


@pytest.mark.parametrize("name", LEVELS)
def test_a_few_levels_are_followed(name: str) -> None:
    assert not shape_of(nest(LEVELS[name], 5), PARENTS).obstacle


@pytest.mark.parametrize(("depth", "is_known"), [(5, True), (40, False)])
def test_aliases_that_use_aliases_are_followed_up_to_a_size(depth: int, is_known: bool) -> None:
    outputs = ", ".join(["id AS a0", *(f"a{n} + a{n} AS a{n + 1}" for n in range(depth))])

    assert shape_of(f"SELECT {outputs} FROM s.t", PARENTS).known is is_known
