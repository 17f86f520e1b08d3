"""What a query would read, as a Spark of our own tells it and as the text of EXPLAIN COST does."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.scans import parse_plan_bytes
from mergeplan.planner.engine.table import Table, time_partitioning
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column

COLUMNS = (Column("dt", "date"), Column("v", "int"))
DAILY = Table("mergeplan__shop.daily", COLUMNS, time_partitioning(COLUMNS, "dt", "", 86_400))
PRICES = Table("mergeplan__shop.prices", COLUMNS[1:])
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SIXTY_DAYS = "SELECT date_add(date'2024-01-01', cast(id % 60 AS int)) dt, cast(id AS int) v FROM range(6000)"

PLAN = """== Optimized Logical Plan ==
Project [v#9, scalar-subquery#86 [] AS m#87], Statistics(sizeInBytes=1335.0 B)
:  +- Aggregate [max(v#98) AS max(v)#100], Statistics(sizeInBytes=12.0 B, rowCount=1)
:     +- Relation spark_catalog.mp.full[v#98] parquet, Statistics(sizeInBytes=445.0 B)
+- Join LeftSemi, (v#94 = v#95), Statistics(sizeInBytes=8.51E+37 B)
   :- LocalRelation [v#94], Statistics(sizeInBytes=12.0 B, rowCount=1)
   +- Filter (isnotnull(dt#96) AND (dt#96 = 2024-01-04)), Statistics(sizeInBytes=924.0 B)
      +- Relation spark_catalog.mp.daily[v#95,dt#96] parquet, Statistics(sizeInBytes={daily})

== Physical Plan ==
*(1) FileScan parquet spark_catalog.mp.full[v#98], Statistics(sizeInBytes=1.0 GiB)
"""


@pytest.mark.parametrize(("daily", "expected"), [("924.0 B", 1369), ("2.5 MiB", 2_621_885), ("8.0 EiB", None)])
def test_the_leaves_that_are_files_are_added_up(daily: str, expected: int | None) -> None:
    assert parse_plan_bytes(PLAN.replace("{daily}", daily)) == expected


def test_an_error_in_place_of_a_plan_tells_nothing() -> None:
    assert parse_plan_bytes("Error occurred during query planning: \nno such table") is None


def disk_bytes(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def files_of(engine: SparkEngine, sql: str) -> set[Path]:
    """The files whose rows a query's rows come from."""
    file_rows = engine.fetch(f"SELECT DISTINCT input_file_name() FROM ({sql})").rows
    return {Path(unquote(urlparse(str(name)).path)) for (name,) in file_rows}


@pytest.mark.parametrize("days", [3, pytest.param(50, marks=pytest.mark.prove)])
def test_some_days_of_sixty_are_the_bytes_of_their_files(engine: SparkEngine, days: int) -> None:
    engine.tables.create(DAILY)
    engine.tables.replace_interval(DAILY, SIXTY_DAYS, Interval(FIRST, FIRST + timedelta(days=60)))
    last = FIRST + timedelta(days=days - 1)
    some_days = f"SELECT * FROM {DAILY.name} WHERE dt BETWEEN '2024-01-01' AND '{last:%Y-%m-%d}'"
    files = files_of(engine, some_days)
    before = engine.jobs()

    scanned = engine.scan_bytes(some_days)

    assert len({file.parent for file in files}) == days
    assert scanned == disk_bytes(files)
    assert engine.jobs() == before


def test_what_a_query_reads_in_several_places_is_added_up(engine: SparkEngine) -> None:
    engine.tables.create(PRICES)
    engine.tables.replace(PRICES, "SELECT cast(id AS int) v FROM range(100)")
    prices = disk_bytes(files_of(engine, f"SELECT * FROM {PRICES.name}"))
    twice = f"SELECT v, (SELECT max(v) FROM {PRICES.name}) AS most FROM {PRICES.name};"

    assert engine.scan_bytes(twice) == 2 * prices
    assert engine.scan_bytes("SELECT 1 AS one UNION ALL SELECT id FROM range(9)") == 0


def test_what_spark_cannot_tell_is_not_known(engine: SparkEngine) -> None:
    engine.tables.create(DAILY)
    all_days = f"SELECT * FROM {DAILY.name}"  # nobody has counted them

    for sql in (all_days, "SELECT * FROM nowhere.at_all", "SELEC", f"DROP TABLE {DAILY.name}"):
        assert engine.scan_bytes(sql) is None, sql
