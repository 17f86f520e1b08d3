"""A stored algebra is the one that was stored: it has the same digests over any parents."""

from __future__ import annotations

import os

import pytest

from mergeplan.planner.project.lineage import row_sources_of
from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.digests import Digests, TableDigest
from mergeplan.planner.semantics.query.algebra import Relation
from mergeplan.planner.semantics.query.stored_algebra import decode_relation, encode_relation
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from tests.planner.semantics.test_shape_memory import HELD, ORDERS, QUERY, Kept
from tests.planner.spelling.constructs import constructs
from tests.planner.spelling.tables import TABLES

EVERY = tuple(dict.fromkeys(construct.sql for construct in constructs(9)))
QUERIES = EVERY if "MERGEPLAN_CASES" in os.environ else EVERY[::10]
PARENTS = {name: table.parent for name, table in TABLES.items()}
OTHERS = {
    name: TableDigest(f"rows of {name}", {column: f"{name} {column}" for column in table.columns}, "sorted 1")
    for name, table in TABLES.items()
}


def describe(relation: Relation) -> tuple[object, ...]:
    """Return what a plan asks of a relation."""
    digests = [Digests(seen).relation(relation) for seen in ({}, OTHERS)]
    return *digests, relation.volatile, relation.size, [value.volatile for value in relation.columns.values()]


@pytest.mark.sampled
def test_a_stored_algebra_has_the_digests_of_the_analysed_one() -> None:
    """Every construct of Spark SQL that the proof of spellings has; in every place by `make prove`."""
    memory, kept = ShapeMemory(Kept()), 0

    for sql in QUERIES:
        fresh = shape_of(sql, PARENTS)
        remembered = shape_of(sql, PARENTS, memory=memory)
        if fresh.relation is None or "collate" in sql.lower():
            continue
        assert remembered.relation is not None and remembered.relation is not fresh.relation
        stored = decode_relation(encode_relation(fresh.relation))
        assert describe(stored) == describe(fresh.relation), sql
        assert remembered.compute_digest(OTHERS) == fresh.compute_digest(OTHERS), sql
        assert row_sources_of(remembered) == row_sources_of(fresh), sql
        kept += 1

    assert kept > len(QUERIES) / 2


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[[99]]", "[[0]]", '[[1,5,"a"]]', '[[0,"op",["tuple"],false]]', "[1]"]
)
def test_a_text_that_is_no_relation_is_analysed_again(text: str) -> None:
    kept = Kept()
    shape = shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(kept))
    assert shape.source is not None
    fresh, key = shape.compute_digest({"s.orders": HELD}), ShapeMemory().key("algebra", *shape.source.key_parts)
    assert key in kept
    spoiled = Kept({name: text if name == key else entry for name, entry in kept.items()})

    again = shape_of(QUERY, {"s.orders": ORDERS}, memory=ShapeMemory(spoiled))

    assert again.compute_digest({"s.orders": HELD}) == fresh
