"""Contracts: a query that returns other columns or types than its model declares builds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import ALONE, plan_and_apply, rows, write_shop

VIEW = "MODEL (name shop.total, kind VIEW{});\nSELECT 1 AS a, 'x' AS b"
CONTRACT = ", columns (b STRING, a INT), contract true"


@pytest.mark.parametrize(
    ("declared", "kind", "why"),
    [
        ("b STRING, a BIGINT", "FULL", "of `a` that says bigint, and the query returns int"),
        ("b STRING, a BIGINT", "VIEW", "of `a` that says bigint, and the query returns int"),
        ("a INT", "VIEW", "of `b` that says no such column, and the query returns string"),
        ("a INT, b STRING, c INT", "FULL", "declares the column `c`, which its query does not return"),
    ],
)
def test_a_broken_contract_is_an_error_before_anything_is_built(
    tmp_path: Path, engine: SparkEngine, store: StateStore, declared: str, kind: str, why: str
) -> None:
    text = VIEW.format(f", columns ({declared}), contract true").replace("VIEW", kind)

    with pytest.raises(ProjectError, match=why) as error:
        plan_and_apply(write_shop(tmp_path, **ALONE, total=text), engine, store)
    assert str(error.value.place) == "models/total.sql:1"


def test_a_contract_that_holds_orders_the_columns_of_a_table(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    plan_and_apply(write_shop(tmp_path, **ALONE, total=VIEW.format(CONTRACT).replace("VIEW", "FULL")), engine, store)

    assert rows(engine, "SELECT * FROM shop.total") == [("x", 1)]


def test_a_contract_that_comes_to_a_view_that_stays_is_checked(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    plan_and_apply(write_shop(tmp_path, **ALONE, total=VIEW.format("")), engine, store)

    with pytest.raises(ProjectError, match="breaks its contract"):
        plan_and_apply(
            write_shop(tmp_path, **ALONE, total=VIEW.format(", columns (a INT), contract true")), engine, store
        )
    plan_and_apply(write_shop(tmp_path, **ALONE, total=VIEW.format(CONTRACT)), engine, store)
