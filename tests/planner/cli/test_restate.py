"""Restating on a real Spark: rows come anew, in place; what is left out, forgotten and told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.builders import days
from tests.planner.cli.conftest import TODAY, CommandLine, Ran
from tests.planner.shop import rows

Shop = Callable[..., CommandLine]
AT = ("--execution-time", TODAY)
DAILY = """
MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 7));
SELECT id, day FROM default.raw WHERE day BETWEEN @start_date AND @end_date
"""
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT count(*) AS n FROM shop.daily"
FILES = {"items": "", "apart": "", "shown": "", "daily": DAILY, "total": TOTAL}


def raw(engine: SparkEngine, *values: str) -> None:
    engine.fetch("DROP TABLE IF EXISTS default.raw")
    told = ", ".join(f"({n}, DATE '2026-01-{day}')" for n, day in enumerate(values))
    engine.fetch(f"CREATE TABLE default.raw USING parquet AS SELECT * FROM VALUES {told} AS t(id, day)")


@pytest.fixture
def mergeplan(shop: Shop, engine: SparkEngine) -> CommandLine:
    """A shop over a table of others, planned and applied in prod; afterwards that table has other rows."""
    raw(engine, "01", "02", "03")
    opened = shop(**FILES)
    assert opened("plan", "--auto-apply", *AT).code == 0
    raw(engine, "01", "01", "02", "02", "03", "03")
    return opened


def restate(mergeplan: CommandLine, *arguments: str) -> Ran:
    return mergeplan("plan", *arguments, "--auto-apply", "--output", "json", *AT)


def batches(ran: Ran) -> list[tuple[str, list[str]]]:
    return [(line["model"], line["interval"]) for line in ran.lines if line["event"] == "batch"]


def test_days_are_computed_anew_in_place_and_with_them_what_reads_them(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    before = mergeplan.state.environments.get("prod")

    ran = restate(mergeplan, "--restate-model", "default.raw", "--start", "2026-01-02", "--end", "2026-01-02")

    assert (ran.code, ran.result["applied"]) == (0, False)
    assert [name for name, _ in batches(ran)] == ["shop.daily", "shop.total"]
    assert batches(ran)[0][1] == ["2026-01-02", "2026-01-03"]
    assert rows(engine, "SELECT day(day), count(*) FROM shop.daily GROUP BY 1 ORDER BY 1") == [(1, 1), (2, 2), (3, 1)]
    assert rows(engine, "SELECT n FROM shop.total") == [(4,)]
    assert mergeplan.state.environments.get("prod") == before


@pytest.mark.prove
def test_the_terminal_shows_what_is_restated_and_who_else_feels_it(mergeplan: CommandLine) -> None:
    mergeplan.edit("models/total.sql", "count(*) AS n", "count(*) + 1 AS n")
    assert mergeplan("plan", "dev", "--auto-apply", *AT).code == 0

    ran = mergeplan("plan", "-r", "shop.daily", "--end", "2026-01-01", "--explain", *AT)

    assert ran.code == 0
    assert ran.out.startswith("Restatement of the `prod` environment as it is shown; no model changes.\n")
    assert "Models to restate:\n├── shop.daily: [2026-01-01 - 2026-01-01]" in ran.out
    assert "└── shop.total: [full refresh]" in ran.out
    assert "`dev` shows the same table of shop.daily and must compute this time of shop.total again" in ran.out
    assert "shop.daily: Restated, by the rule `restated`" in ran.out
    assert "Nothing to create" in ran.out


@pytest.mark.prove
def test_what_dev_made_of_restated_rows_is_computed_again_before_prod_shows_it(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    mergeplan.edit("models/total.sql", "count(*) AS n", "count(*) + 1 AS n")
    restate(mergeplan, "dev")

    ran = restate(mergeplan, "--restate-model", "shop.daily")
    shown = mergeplan("plan", "--restate-model", "shop.daily", "--auto-apply", *AT)
    promoted = restate(mergeplan)

    assert shown.out.count("must compute this time of shop.total again") == 1  # and not again as it is done
    assert ran.lines[1] == {
        "event": "touched",
        "environment": "dev",
        "shared": ["shop.daily"],
        "outdated": ["shop.total"],
    }
    assert [name for name, _ in batches(promoted)] == ["shop.total"]
    assert rows(engine, "SELECT n FROM shop.total") == [(7,)]


@pytest.mark.prove
def test_in_another_environment_prods_tables_are_left_out_and_its_own_restated(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    mergeplan.write("models/copy.sql", "MODEL (name shop.copy, kind FULL);\nSELECT count(*) AS n FROM default.raw")
    restate(mergeplan, "dev")
    raw(engine, "01")

    ran = restate(mergeplan, "dev", "--restate-model", "default.raw")

    assert [name for name, _ in batches(ran)] == ["shop.copy"]
    assert ran.result["plan"]["restatement"]["left_out"] == [
        {"model": "shop.daily", "reason": "prod shows the same table: restate it in prod"}
    ]
    assert rows(engine, "SELECT n FROM shop__dev.copy") == [(1,)]
    assert rows(engine, "SELECT n FROM shop.total") == [(3,)]


def test_what_a_failure_leaves_is_missing_and_the_next_run_fills_it(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    engine.fetch("DROP TABLE default.raw")
    daily = mergeplan.state.environments.get("prod").snapshots["shop.daily"].table

    failed = restate(mergeplan, "--restate-model", "shop.daily", "--start", "2026-01-02", "--end", "2026-01-03")

    assert failed.code == 1
    assert mergeplan.state.intervals.load_timelines([daily])[daily] == (days(1, 1), days(4, 5))
    raw(engine, "01", "02", "02")
    assert [interval for _, interval in batches(mergeplan("run", "-o", "json", *AT))][:1] == [
        ["2026-01-02", "2026-01-04"]
    ]
    assert rows(engine, "SELECT n FROM shop.total") == [(3,)]


@pytest.mark.prove
def test_a_table_by_unique_key_is_restated_whole_and_forgets_rows_that_are_gone(
    shop: Shop, engine: SparkEngine
) -> None:
    raw(engine, "01", "02", "03")
    latest = DAILY.replace("shop.daily", "shop.latest").replace(
        "INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 7)", "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)"
    )
    mergeplan = shop(items="", apart="", shown="", daily="", total="", latest=latest)
    restate(mergeplan)
    raw(engine, "01", "04")

    ran = restate(mergeplan, "-r", "shop.latest", "--start", "2026-01-04")

    assert batches(ran) == [("shop.latest", ["2026-01-01", "2026-01-06"])]
    assert rows(engine, "SELECT id, day(day) FROM shop.latest ORDER BY 1") == [(0, 1), (1, 4)]
