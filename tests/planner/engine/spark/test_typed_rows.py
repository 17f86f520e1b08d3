"""Rows as Spark's own client cannot give them: intervals of months, beside the others and nested."""

from __future__ import annotations

from datetime import timedelta

from mergeplan.planner.engine.spark.engine import SparkEngine


def test_an_interval_of_months_comes_as_text(engine: SparkEngine) -> None:
    months = "INTERVAL '1-2' YEAR TO MONTH"

    (row,) = engine.fetch(f"SELECT 1 AS a, {months} AS b, ARRAY({months}) AS c, INTERVAL '1' DAY AS d").rows

    assert row[:3] == (1, months, f"[{months}]")
    assert row[3] == timedelta(days=1)
