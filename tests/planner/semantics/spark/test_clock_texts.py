"""Texts that Spark reads with the clock, and the constants of a query that count as reading it."""

from __future__ import annotations

import pytest
import sqlglot

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.semantics.spark.spark_functions import is_volatile
from tests.planner.building import change_of, external, model, project

TIMES = ("10:00", "1:0", "10:0:0", "10:00:00.5", "10:00:00Z", "10", "T10:00", "T1:0", "T10", "t10:00", " 10:00", " T10")
DAYS = ("now", "NOW", "today", "yesterday", "tomorrow", "epoch", "2020", "2020-01-01T10", "2020-01-01 10:00", "x10:00")
ESCAPES = (r"\t10:00", r"\n10:00", r"\u000010:00", r"\u001f10:00", r"\u007f10:00", r"\u00a010:00")
CONSTANTS = ("CAST('10' || ':00' AS TIMESTAMP)", "CAST(CONCAT('T', '10') AS TIMESTAMP)", "TIMESTAMP 'T10:00'")


def reads_clock(value: str) -> bool:
    """True if any part of a value counts as reading the clock."""
    return any(map(is_volatile, sqlglot.parse_one(f"SELECT {value}", dialect="spark").walk()))


def test_every_text_that_spark_reads_with_the_clock_counts_as_such(shared_engine: SparkEngine) -> None:
    values = [f"'{text}'" for text in (*TIMES, *DAYS, *ESCAPES)]
    near = "abs(datediff(current_date(), try_cast({0} AS timestamp))) <= 1"
    (row,) = shared_engine.fetch(f"SELECT {', '.join(map(near.format, values))}").rows

    of_clock = [value for value, is_near in zip(values, row, strict=True) if is_near]
    assert len(of_clock) > 15
    assert all(map(reads_clock, of_clock))


@pytest.mark.parametrize("value", CONSTANTS)
def test_a_constant_moment_of_parts_counts_as_the_clock(value: str) -> None:
    assert reads_clock(value)


@pytest.mark.parametrize(
    "value", ["'2020-01-01'", "'T1000'", "CAST(x AS TIMESTAMP)", "CAST(CONCAT(d, 'Z') AS TIMESTAMP)"]
)
def test_other_texts_and_columns_do_not(value: str) -> None:
    assert not reads_clock(value)


def test_a_column_that_reads_the_clock_counts_as_changed_when_its_table_is_rebuilt() -> None:
    query = "SELECT id, CAST('T10:00' AS TIMESTAMP) AS at, {} AS price FROM s.orders"
    reader = model("s.reader", "SELECT at FROM s.moments")
    before, after = (
        project(external("s.orders", "id price"), model("s.moments", query.format(price)), reader)
        for price in ("price", "price + 1")
    )

    assert change_of(before, after)["s.reader"].recomputed
