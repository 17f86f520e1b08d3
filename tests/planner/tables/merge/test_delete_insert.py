"""Keys with several rows, replaced by those of a batch, run as SELECTs on Spark: what DELETE and INSERT leave."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.tables.merge.delete_insert import delete_insert, delete_insert_into
from mergeplan.planner.tables.merge.relations import MergeBatch

COLUMNS = (Column("day", "int"), Column("n", "int"))
OLD = "(1, 10), (1, 10), (2, 20), (CAST(NULL AS INT), 30)"


def rows(engine: SparkEngine, new: str, base: str = "held", keys: tuple[str, ...] = ("day",)) -> list[object]:
    """What the table is to hold, sorted."""
    engine.fetch(f"CREATE OR REPLACE TEMP VIEW held AS SELECT * FROM VALUES {OLD} AS t(day, n)")
    batch = MergeBatch("shop.t", f"SELECT * FROM VALUES {new} AS t(day, n)", base, COLUMNS, keys)
    return list(engine.fetch(f"SELECT * FROM ({delete_insert(batch)}) ORDER BY ALL").rows)


def test_all_rows_of_a_key_give_way_to_those_of_the_batch(shared_engine: SparkEngine) -> None:
    assert rows(shared_engine, "(1, 5), (3, 7), (3, 7)") == [(None, 30), (1, 5), (2, 20), (3, 7), (3, 7)]
    assert rows(shared_engine, "(1, 5), (1, 5), (4, 0)", keys=("day % 3",)) == [
        (None, 30),
        (1, 5),
        (1, 5),
        (2, 20),
        (4, 0),
    ]
    assert rows(shared_engine, "(CAST(NULL AS INT), 1), (1, 5)", base="") == [(None, 1), (1, 5)]


def test_a_key_that_is_null_ends_the_query(shared_engine: SparkEngine) -> None:
    with pytest.raises(QueryError) as error:
        rows(shared_engine, "(CAST(NULL AS INT), 1), (1, 5)")

    assert str(error.value) == (
        "The query of shop.t returns a row whose key (day) is NULL, which replaces no rows. "
        "Leave it out with WHERE, or return another value with COALESCE."
    )


def test_it_may_be_one_statement_over_columns_of_both_sides() -> None:
    into = delete_insert_into(MergeBatch("shop.t", "SELECT 1 AS day, 2 AS n", "held", COLUMNS, ("day",)))

    assert into is not None
    assert into.on == "source.`mergeplan_does` = '1 goes' AND (target.`day`) = (source.`day`)"
    assert (into.matched, into.added) == (("WHEN MATCHED THEN DELETE",), "source.`mergeplan_does` = '2 comes'")
