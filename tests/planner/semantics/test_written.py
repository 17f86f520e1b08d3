"""What takes rows by their order means the same only over a query that is written the same."""

from __future__ import annotations

import pytest

from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.shape import Shape

PARENTS = {"s.a": Parent(("id", "x", "d")), "s.b": Parent(("id", "y"))}
FIRST = "SELECT id FROM {} LIMIT 2"


def shape(sql: str) -> Shape:
    query_shape = shape_of(sql, PARENTS)
    assert query_shape.relation is not None
    return query_shape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(SELECT id FROM s.a ORDER BY x)", "(SELECT id FROM s.a ORDER BY x DESC)"),
        ("(SELECT id FROM s.a ORDER BY x)", "(SELECT id FROM s.a ORDER BY x NULLS LAST)"),
        ("(SELECT id FROM s.a ORDER BY x)", "(SELECT id FROM s.a SORT BY x)"),
        ("(SELECT id FROM s.a ORDER BY x)", "s.a"),
        ("(SELECT id FROM s.a DISTRIBUTE BY x)", "(SELECT id FROM s.a DISTRIBUTE BY d)"),
        ("(SELECT id FROM s.a CLUSTER BY x)", "(SELECT id FROM s.a CLUSTER BY d)"),
        ("(SELECT /*+ REPARTITION(3) */ id FROM s.a)", "(SELECT /*+ REPARTITION(4) */ id FROM s.a)"),
        ("(SELECT x AS id, d AS e FROM s.a ORDER BY e)", "(SELECT x AS id, d AS e FROM s.a ORDER BY id)"),
        ("(SELECT x AS id, d AS e FROM s.a ORDER BY e)", "(SELECT x AS id, id AS e FROM s.a ORDER BY e)"),
        ("(SELECT id, x FROM s.a GROUP BY id, x)", "(SELECT id, x FROM s.a GROUP BY x, id)"),
        ("(SELECT id, x FROM s.a GROUP BY id, x)", "(SELECT DISTINCT id, x FROM s.a)"),
        ("(SELECT id FROM s.a UNION ALL SELECT id FROM s.b)", "(SELECT id FROM s.b UNION ALL SELECT id FROM s.a)"),
        (
            "(SELECT x AS id, d AS e FROM s.a UNION ALL SELECT id, y FROM s.b ORDER BY e)",
            "(SELECT x AS id, d AS e FROM s.a UNION ALL SELECT id, y FROM s.b ORDER BY id)",
        ),
        ("(SELECT a.id FROM s.a JOIN s.b ON a.id = b.id)", "(SELECT a.id FROM s.b JOIN s.a ON a.id = b.id)"),
        ("(SELECT a.id FROM s.a JOIN s.b ON a.id = b.id)", "(SELECT a.id FROM s.a JOIN s.b ON b.id = a.id)"),
        ("(SELECT b.id FROM s.a RIGHT JOIN s.b ON a.id = b.id)", "(SELECT b.id FROM s.b LEFT JOIN s.a ON a.id = b.id)"),
        (
            "(SELECT id FROM s.a WHERE EXISTS (SELECT 1 FROM s.b WHERE b.id = a.id))",
            "(SELECT a.id FROM s.a LEFT SEMI JOIN s.b ON a.id = b.id)",
        ),
        (
            "(SELECT id, RANK() OVER (PARTITION BY x, d ORDER BY id) AS r FROM s.a)",
            "(SELECT id, RANK() OVER (PARTITION BY d, x ORDER BY id) AS r FROM s.a)",
        ),
    ],
)
@pytest.mark.parametrize(
    "taken",
    [
        FIRST,
        "SELECT id FROM {} ORDER BY id LIMIT 2",
        "SELECT id FROM {} OFFSET 2",
        "SELECT id FROM {} TABLESAMPLE (50 PERCENT)",
        "SELECT COLLECT_LIST(id) AS l FROM {}",
        "SELECT id, LAST(id) OVER (PARTITION BY id) AS l FROM {}",
        "SELECT id, SUM(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS l FROM {}",
        "SELECT id, SPARK_PARTITION_ID() AS l FROM {}",
        "SELECT id, RANDN(3) AS l FROM {}",
        "SELECT id FROM s.b WHERE EXISTS (SELECT 1 FROM (SELECT id AS k FROM {} LIMIT 2) WHERE k = b.id)",
        "SELECT id, (SELECT ANY_VALUE(id) FROM {}) AS l FROM s.b",
    ],
)
def test_an_edit_of_what_decides_the_order_is_another_query_for_who_takes_rows_by_it(
    taken: str, one: str, other: str
) -> None:
    first, second = ((f"(SELECT * FROM {relation})" if relation == "s.a" else relation) for relation in (one, other))

    assert shape(taken.format(first)).text != shape(taken.format(second)).text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(SELECT id FROM s.a ORDER BY x)", "( select  A.ID from s.a as A order by A.X  ) -- sorted\n"),
        ("(SELECT id FROM s.a ORDER BY x)", "(SELECT id FROM s.a AS q ORDER BY (x))"),
        ("(SELECT id, x AS k FROM s.a ORDER BY k)", "(SELECT id, x AS m FROM s.a ORDER BY m)"),
        ("(SELECT id FROM s.a ORDER BY x)", "(SELECT id FROM s.a ORDER BY x ASC)"),
        ("(WITH c AS (SELECT * FROM s.a) SELECT id FROM c)", "(WITH e AS (SELECT * FROM s.a) SELECT e.id FROM e)"),
        ("(WITH c AS (SELECT * FROM s.a) SELECT id FROM c)", "(SELECT id FROM (SELECT * FROM s.a))"),
        (
            "(SELECT p.id FROM s.a AS p JOIN s.a AS q ON p.id = q.x ORDER BY q.d)",
            "(SELECT q.id FROM s.a AS q JOIN s.a AS p ON q.id = p.x ORDER BY p.d)",
        ),
        (
            "(SELECT id FROM s.a WHERE EXISTS (SELECT 1 FROM s.b WHERE b.id = a.id))",
            "(SELECT id FROM s.a AS k WHERE EXISTS (SELECT 1 FROM s.b AS m WHERE m.id = k.id))",
        ),
    ],
)
@pytest.mark.parametrize("taken", [FIRST, "SELECT COLLECT_LIST(id) AS l FROM {}"])
def test_layout_comments_and_names_decide_no_order(taken: str, one: str, other: str) -> None:
    assert shape(taken.format(one)).text == shape(taken.format(other)).text


@pytest.mark.parametrize(
    "taken",
    [
        "SELECT COUNT(*) AS n, MAX(id) AS m, COUNT(DISTINCT id) AS k FROM {}",
        "SELECT id, RANK() OVER (ORDER BY id) AS r FROM {}",
        "SELECT id, CURRENT_DATE() AS r FROM {}",
        "SELECT DISTINCT id FROM {}",
        "SELECT id FROM {} ORDER BY id",
    ],
)
def test_what_takes_all_rows_alike_does_not_mind_their_order(taken: str) -> None:
    told = {shape(taken.format(f"(SELECT id FROM s.a {order})")).text for order in ("ORDER BY x", "SORT BY d", "")}

    assert len(told) == 1


def test_a_gained_column_of_a_parent_is_no_other_way_to_write_a_star() -> None:
    sql = "SELECT COLLECT_LIST(id) AS l FROM (SELECT *, x AS k FROM s.a ORDER BY x)"
    wider = PARENTS | {"s.a": Parent(("id", "x", "d", "new"))}

    assert shape(sql).text == shape_of(sql, wider).text
