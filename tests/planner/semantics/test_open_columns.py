"""A table that may have more columns than are declared: what is read by name is followed, what is not is not."""

from __future__ import annotations

import pytest

from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent

PARENTS = {"s.a": Parent(("id", "x"), is_open=True), "s.b": Parent(("id", "y"))}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, x FROM s.a",
        "SELECT id, other FROM s.a WHERE third > 1",
        "SELECT t.other FROM s.a AS t JOIN s.b AS u ON t.id = u.id",
        "WITH t AS (SELECT * FROM s.a) SELECT id, x FROM t",
        "WITH t AS (SELECT *, x + 1 AS z FROM s.a), u AS (SELECT id, z FROM t) SELECT * FROM u",
        "SELECT COUNT(*) AS n FROM s.a",
        "SELECT id FROM s.b WHERE EXISTS (SELECT 1 FROM s.a WHERE s.a.id = s.b.id)",
    ],
)
def test_what_is_read_by_name_is_followed(sql: str) -> None:
    shape = shape_of(sql, PARENTS)

    assert shape.own is not None
    assert shape.unresolved is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM s.a",
        "WITH t AS (SELECT DISTINCT * FROM s.a) SELECT id FROM t",
        "SELECT y FROM s.b NATURAL JOIN s.a",
        "SELECT * EXCEPT (x) FROM s.a",
        "SELECT p FROM s.a AS q(p, r)",
        "SELECT id FROM (SELECT * FROM s.a UNION ALL SELECT * FROM s.a)",
        "SELECT TO_JSON(STRUCT(*)) AS j FROM s.a",
        "SELECT id FROM s.b WHERE EXISTS (SELECT 1 FROM s.a WHERE y = 1)",  # s.a may have a `y`
        "SELECT x + 1 AS z, z + 1 AS w FROM s.a",  # s.a may have a `z`
        "SELECT id, current_date AS d FROM s.a",  # or a `current_date`
    ],
)
def test_what_may_mean_another_column_is_not(sql: str) -> None:
    shape = shape_of(sql, PARENTS)

    assert shape.own is None
    assert shape.unresolved is None


def test_a_declared_table_has_no_other_column() -> None:
    assert shape_of("SELECT other FROM s.b", PARENTS).unresolved == "other"
