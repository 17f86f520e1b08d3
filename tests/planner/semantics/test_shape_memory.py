"""Shapes that are remembered are those that would be computed, and a query is seen over no more than it can mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import pytest

from mergeplan.planner.project.lineage import row_sources_of
from mergeplan.planner.semantics import columns
from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.semantics.traits import traits_of
from tests.planner.spelling.constructs import constructs
from tests.planner.spelling.tables import TABLES

EVERY = tuple(dict.fromkeys(construct.sql for construct in constructs(9)))
QUERIES = EVERY if "MERGEPLAN_CASES" in os.environ else EVERY[::10]  # each value in another of its nine places
ORDERS = Parent(("id", "day", "price"), types=(("id", "int"), ("price", "double")))
QUERY = "WITH o AS (SELECT id, price FROM s.orders WHERE day > 7) SELECT id, SUM(price) AS total FROM o GROUP BY id"
HELD = TableDigest("rows", {"id": "i", "day": "d", "price": "p", "tax": "t"})


class Kept(dict[str, str]):
    """Texts in memory."""

    def put(self, key: str, text: str) -> None:
        self[key] = text


def wider(parent: Parent) -> Parent:
    """A table with columns of which no query speaks, first, last and between."""
    first, *rest = parent.columns or ()
    return replace(parent, columns=("zz_first", first, "zz_second", *rest, "zz_last"))


def over_all_columns(sql: str, parents: Mapping[str, Parent]) -> Shape:
    """The shape over the parents as they are."""
    shape = columns._analyze_query(sql, tuple(sorted(parents.items(), key=lambda parent: parent[0])), "").shape
    return replace(shape, named=traits_of(sql, NO_MEMORY).columns)


@pytest.mark.sampled
def test_columns_that_a_query_cannot_mean_change_no_shape() -> None:
    """Every construct of Spark SQL that the proof of spellings has; in every place by `make prove`."""
    parents = {name: wider(table.parent) for name, table in TABLES.items()}

    wrong = [sql for sql in QUERIES if shape_of(sql, parents) != over_all_columns(sql, parents)]

    assert wrong == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM s.t",
        "SELECT t.* FROM s.t",
        "SELECT STRUCT(*) AS x FROM s.t",
        "SELECT COUNT(DISTINCT *) AS n FROM s.t",
        "SELECT a.id FROM s.t AS a NATURAL JOIN s.o AS b",
        "SELECT x FROM s.t AS a (x, y, z)",
        "SELECT * FROM s.t PIVOT (SUM(n) FOR s IN ('a', 'b'))",
        "SELECT id FROM s.t WHERE EXISTS (TABLE s.o)",
        "SELECT IDENTIFIER('i' || 'd') AS x FROM s.t",
        "FROM s.t",
        "SELECT id FROM s.t TABLESAMPLE (10 PERCENT)",
        "SELECT TO_JSON(t) AS x FROM s.t",
    ],
)
def test_a_query_that_may_mean_more_than_it_names_is_seen_over_all_columns(sql: str) -> None:
    assert traits_of(sql, NO_MEMORY).unnamed


@pytest.mark.parametrize("sql", [QUERY, "SELECT COUNT(*) AS n FROM s.t", "SELECT a.n * a.p AS x FROM s.t AS a"])
def test_a_star_that_stands_for_no_columns_is_none(sql: str) -> None:
    assert not traits_of(sql, NO_MEMORY).unnamed


def test_a_shape_and_its_digest_are_remembered_as_they_were() -> None:
    kept = Kept()
    fresh = shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept))
    held = fresh.compute_digest({"s.orders": HELD})
    columns._analyze_query.cache_clear()

    again = shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept))

    assert (again, again.compute_digest({"s.orders": HELD})) == (fresh, held)
    assert columns._analyze_query.cache_info().misses == 0
    assert again.relation is not None


def test_a_parent_with_one_more_column_is_no_other_query() -> None:
    """What a hub that gains a column costs: nothing of its readers is analysed anew."""
    kept = Kept()
    shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept)).compute_digest({"s.orders": HELD})
    known = len(kept)
    more = replace(ORDERS, columns=("id", "day", "price", "tax"))
    held = replace(HELD, columns={**HELD.columns, "tax": "other"})

    shape_of(QUERY, {"s.orders": more}, memory=ShapeMemory(kept)).compute_digest({"s.orders": held})

    assert len(kept) == known


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"known": 1}', '{"other": true}', '{"reads": 3}'])
def test_what_cannot_be_read_is_computed_again(damage: str) -> None:
    kept = Kept()
    fresh = shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept))
    for key in kept:
        kept[key] = damage

    assert shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept)) == fresh


def test_another_version_of_the_reader_asks_for_shapes_of_its_own() -> None:
    kept = Kept()
    shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept, "1"))
    known = len(kept)

    shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept, "2"))

    assert len(kept) == 2 * known


def test_a_remembered_query_that_cannot_be_followed_again_counts_all_that_it_reads() -> None:
    """How deep the stack is by then decides that, so nothing of it is remembered."""
    kept = Kept()
    again = shape_of(QUERY, {"s.orders": ORDERS})
    assert again.source is not None
    deep = replace(again, source=replace(again.source, analyse=lambda: None, memory=ShapeMemory(kept)))

    lost, other = (deep.compute_digest({"s.orders": held}) for held in (HELD, replace(HELD, rows="others")))

    assert lost.rows != other.rows
    assert not kept
    assert lost.rows != again.compute_digest({"s.orders": HELD}).rows


def test_a_remembered_value_is_decoded_once_in_a_plan() -> None:
    kept = Kept()
    shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept))
    memory = ShapeMemory(kept)
    first = shape_of(QUERY, {"s.orders": ORDERS}, memory=memory)

    again = shape_of(QUERY, {"s.orders": ORDERS}, memory=memory)

    assert again == first and again.reads is first.reads


def test_a_parent_with_other_rows_needs_no_analysis() -> None:
    kept = Kept()
    fresh = shape_of(QUERY, {"s.orders": ORDERS}).compute_digest({"s.orders": HELD})
    shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept))
    columns._analyze_query.cache_clear()

    again = shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept)).compute_digest({"s.orders": HELD})

    assert again == fresh
    assert columns._analyze_query.cache_info().misses == 0


def test_the_lineage_of_a_remembered_query_needs_no_analysis() -> None:
    """The first page of a catalog after a plan would analyse each query again."""
    kept = Kept()
    fresh = row_sources_of(shape_of(QUERY, {"s.orders": ORDERS}))
    shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept))
    columns._analyze_query.cache_clear()

    again = row_sources_of(shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept)))

    assert again == fresh
    assert again.deciding == {"s.orders"}
    assert columns._analyze_query.cache_info().misses == 0
