"""CHAR(n) pads some comparisons with spaces, and the first of several structs names their fields."""

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent

T = (("id", "int"), ("c", "char(5)"), ("e", "char(5)"), ("w", "char(8)"), ("s", "string"))
PARENTS = {"s.t": Parent(tuple(name for name, _ in T), types=T)}
OTHER = [  # Spark pads the texts of the second one alone
    ("WHERE c IN (SELECT w FROM s.t)", "WHERE EXISTS (SELECT 1 FROM s.t AS o WHERE o.w = t.c)"),
    ("WHERE c BETWEEN 'a' AND 'ab'", "WHERE c >= 'a' AND c <= 'ab'"),
    ("WHERE NULLIF(c, 'ab') IS NULL", "WHERE CASE WHEN c = 'ab' THEN NULL ELSE c END IS NULL"),
]
SAME = [
    ("WHERE c = 'ab'", "WHERE 'ab' = c"),
    ("WHERE s IN (SELECT s FROM s.t)", "WHERE EXISTS (SELECT 1 FROM s.t AS o WHERE o.s = t.s)"),
    ("WHERE s BETWEEN 'ab' AND 'abc'", "WHERE s >= 'ab' AND s <= 'abc'"),
]
BRANCHES = [  # columns of two branches, and whether it matters which one is the first
    ("c", "s", True),
    ("c", "w", True),
    ("w", "(SELECT MAX(s) FROM s.t)", True),
    ("c", "e", False),
    ("s", "UPPER(s)", False),
]


def is_one_query(one: str, two: str) -> bool:
    return shape_of(one, PARENTS).text == shape_of(two, PARENTS).text


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_a_comparison_that_is_not_padded_is_another_one(one: str, two: str) -> None:
    assert not is_one_query(f"SELECT id FROM s.t {one}", f"SELECT id FROM s.t {two}")


def test_a_field_that_is_made_of_a_char_is_padded_as_one() -> None:
    texts = (f"SELECT id FROM (SELECT id, STRUCT(c).c AS z FROM s.t) WHERE {where}" for where in (
        "z BETWEEN 'ab' AND 'ab'", "z >= 'ab' AND z <= 'ab'"
    ))  # fmt: skip

    assert not is_one_query(*texts)


@pytest.mark.parametrize(("one", "two"), [OTHER[0], OTHER[2]])
def test_a_column_of_an_unknown_type_may_be_padded(one: str, two: str) -> None:
    untyped = {"s.t": Parent(tuple(name for name, _ in T))}
    texts = [shape_of(f"SELECT id FROM s.t {text}", untyped).text for text in (one, two)]

    assert texts[0] != texts[1]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_comparisons_that_are_padded_alike_are_one_query(one: str, two: str) -> None:
    assert is_one_query(f"SELECT id FROM s.t {one}", f"SELECT id FROM s.t {two}")


@pytest.mark.parametrize("operator", ["UNION", "UNION ALL"])
@pytest.mark.parametrize(("one", "two", "counts"), BRANCHES)
def test_the_first_branch_of_a_union_counts_if_one_is_char(operator: str, one: str, two: str, counts: bool) -> None:
    first, second = f"SELECT {one} AS v FROM s.t", f"SELECT {two} AS v FROM s.t"
    query, swapped = (f"SELECT v FROM ({a} {operator} {b})" for a, b in ((first, second), (second, first)))

    assert is_one_query(query, swapped) is not counts
    assert is_one_query(f"{query} WHERE v = 'a'", f"{swapped} WHERE v = 'a'") is not counts


def test_char_is_compared_as_the_rules_say(engine: SparkEngine) -> None:
    engine.fetch("CREATE SCHEMA IF NOT EXISTS s")
    engine.fetch(f"CREATE TABLE s.t ({', '.join(f'{name} {type_}' for name, type_ in T)}) USING parquet")
    engine.fetch("INSERT INTO s.t VALUES (1, 'ab', 'ab', 'ab', 'ab')")

    for one, two in OTHER:
        rows = [engine.fetch(f"SELECT id FROM s.t {text}").rows for text in (one, two)]
        assert [*map(len, rows)] == [0, 1]
