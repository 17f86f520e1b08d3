"""Merges by unique key, run as SELECTs on a real Spark: what a MERGE would leave."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.macros.expand import dates
from mergeplan.planner.tables.merge.relations import MergeBatch
from mergeplan.planner.tables.merge.unique_key import upsert_into, upsert_query
from tests.planner.builders import days
from tests.planner.shop import NOW
from tests.sampling import prove_rest

COLUMNS = (Column("id", "int"), Column("name", "string"), Column("n", "int"))
OLD = "(1, 'a', 10), (2, 'b', 20), (CAST(NULL AS INT), 'x', 1)"
NEW = "(1, 'A', 5), (3, 'C', 7), (CAST(NULL AS INT), 'y', 2)"


def merge_rows(
    engine: SparkEngine,
    when: str = "",
    only: str = "",
    keys: tuple[str, ...] = ("id",),
    new: str = NEW,
    *,
    null_safe: bool = False,
) -> list[tuple[object, ...]]:
    """The merged rows, sorted."""
    engine.fetch(f"CREATE OR REPLACE TEMP VIEW held AS SELECT * FROM VALUES {OLD} AS t(id, name, n)")
    batch = MergeBatch("shop.t", f"SELECT * FROM VALUES {new} AS t(id, name, n)", "held", COLUMNS, keys, null_safe)
    sql = upsert_query(batch, when, only, dates(days(1, 1), NOW))
    return list(engine.fetch(f"SELECT * FROM ({sql}) ORDER BY ALL").rows)


X, Y = (None, "x", 1), (None, "y", 2)


@pytest.mark.parametrize(
    ("when", "only", "rows"),
    prove_rest([
        ("", "", [X, Y, (1, "A", 5), (2, "b", 20), (3, "C", 7)]),
        ("WHEN MATCHED THEN UPDATE SET *", "", [X, Y, (1, "A", 5), (2, "b", 20), (3, "C", 7)]),
        ("WHEN MATCHED THEN UPDATE SET * EXCEPT (NAME)", "", [X, Y, (1, "a", 5), (2, "b", 20), (3, "C", 7)]),
        ("WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n", "",
         [X, Y, (1, "a", 15), (2, "b", 20), (3, "C", 7)]),
        ("WHEN MATCHED AND source.n > 100 THEN DELETE WHEN MATCHED AND source.n < 9 THEN UPDATE SET target.n = 0 "
         "WHEN MATCHED THEN DELETE", "", [X, Y, (1, "a", 0), (2, "b", 20), (3, "C", 7)]),
        ("WHEN MATCHED AND source.n = 5 THEN DELETE", "", [X, Y, (2, "b", 20), (3, "C", 7)]),
        ("WHEN MATCHED AND source.n > 100 THEN UPDATE SET *", "", [X, Y, (1, "a", 10), (2, "b", 20), (3, "C", 7)]),
        ("", "target.n > 10 AND @start_ds = '2026-01-01'",
         [X, Y, (1, "A", 5), (1, "a", 10), (2, "b", 20), (3, "C", 7)]),
    ], 3),
    ids=["all", "star", "all but one", "set", "first when decides", "delete", "no when holds", "filter"],
)  # fmt: skip
def test_a_merge_by_key_leaves_what_merge_would(
    when: str, only: str, rows: list[tuple[object, ...]], shared_engine: SparkEngine
) -> None:
    assert merge_rows(shared_engine, when, only) == rows


def test_a_key_may_be_an_expression_that_knows_null(shared_engine: SparkEngine) -> None:
    rows = merge_rows(shared_engine, keys=("COALESCE(id, -1)",))

    assert rows == [(None, "y", 2), (1, "A", 5), (2, "b", 20), (3, "C", 7)]


def test_a_null_key_may_be_the_same_as_a_null_key(shared_engine: SparkEngine) -> None:
    assert merge_rows(shared_engine, null_safe=True) == [Y, (1, "A", 5), (2, "b", 20), (3, "C", 7)]
    with pytest.raises(QueryError, match=r"more than one row for the key \(id = NULL\)"):
        merge_rows(shared_engine, new=f"{NEW}, (CAST(NULL AS INT), 'z', 3)", null_safe=True)

    statement = upsert_into(MergeBatch("shop.t", "SELECT 1", "held", COLUMNS, ("id",), null_safe=True), "", "", {})
    assert statement is not None
    assert "IS NOT DISTINCT FROM" in statement.on


def test_two_rows_of_one_key_are_refused_and_not_chosen_from(shared_engine: SparkEngine) -> None:
    with pytest.raises(QueryError) as error:
        merge_rows(shared_engine, new="(1, 'A', 5), (1, 'B', 6)")

    assert str(error.value) == (
        "The query of shop.t returns more than one row for the key (id = 1) in one batch. Keep one of them, for "
        "example with QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY ...) = 1."
    )


def test_a_merge_may_be_one_statement_over_columns_of_both_sides() -> None:
    batch = MergeBatch("shop.t", "SELECT 1", "", COLUMNS, ("coalesce(ID, -1)", "name"))
    when = "WHEN MATCHED AND source.n > target.n THEN UPDATE SET target.n = source.n + 1 WHEN MATCHED THEN DELETE"
    upsert = upsert_into(batch, when, "target.n > 10", {})

    assert upsert is not None
    keys = "(COALESCE(target.ID, -1)) = (COALESCE(source.ID, -1)) AND (target.`name`) = (source.`name`)"
    assert upsert.on.startswith(f"{keys} AND (target.n > 10 OR CRC32(")  # no condition on the target alone
    first, second = upsert.matched
    assert first == "WHEN MATCHED AND (source.n > target.n) THEN UPDATE SET n = source.n + 1"
    assert second == "WHEN MATCHED THEN DELETE"


@pytest.mark.parametrize("key", ["name.first", "t.id", "mergeplan_in", "(SELECT id)", "filter(names, id -> id > n)"])
def test_a_key_that_is_more_than_columns_of_the_model_is_merged_by_a_select_of_all_rows(key: str) -> None:
    assert upsert_into(MergeBatch("shop.t", "SELECT 1", "", COLUMNS, (key,)), "", "", {}) is None


@pytest.mark.parametrize(
    ("when", "only"),
    [
        ("WHEN MATCHED AND source.n > (SELECT 0) THEN UPDATE SET *", ""),
        ("WHEN MATCHED THEN UPDATE SET target.n = CAST(rand() AS int)", ""),
        ("", "target.n > (SELECT 0)"),
    ],
)
def test_what_a_merge_statement_cannot_hold_is_merged_by_a_select_of_all_rows(when: str, only: str) -> None:
    assert upsert_into(MergeBatch("shop.t", "SELECT 1", "", COLUMNS, ("id",)), when, only, {}) is None
