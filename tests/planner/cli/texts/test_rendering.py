"""render from outside: what Spark would run, with models expanded, in other dialects; no Spark is started."""

from __future__ import annotations

import pytest

from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import write_shop

MIDDLE = """MODEL (name shop.middle, kind FULL);
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) AS m FROM shop.total"""


@pytest.fixture
def shop(offline: CommandLine) -> CommandLine:
    """`mergeplan` in the shop, where no Spark may be started."""
    write_shop(offline.root, middle=MIDDLE)
    return offline


def test_a_query_is_printed_with_the_calls_that_spark_gets(shop: CommandLine) -> None:
    ran = shop("render", "shop.middle", "--no-format")

    assert ran.code == 0
    assert ran.out == "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) AS m FROM shop.total\n"
    assert "PERCENTILE_CONT(0.5) WITHIN GROUP" in shop("render", "shop.middle").out


def test_models_are_expanded_where_they_are_read(shop: CommandLine) -> None:
    one = shop("render", "shop.middle", "--expand", "shop.total", "--no-format").out
    every = shop("render", "shop.middle", "--expand", "+shop.middle", "--no-format", "--start", "2026-01-02").out

    assert one.endswith("FROM (SELECT sum(price) AS total FROM shop.daily) AS total\n")
    assert "FROM (SELECT id, day, price FROM shop.items WHERE day BETWEEN CAST('2026-01-02' AS DATE)" in every


def test_audits_are_printed_as_they_are_asked(shop: CommandLine) -> None:
    ran = shop("render", "shop.daily", "--audits", "--start", "2026-01-01", "--end", "2026-01-01", "--no-format")

    assert ran.code == 0
    assert ran.out.startswith("SELECT * FROM (SELECT * FROM shop.daily WHERE `day` >= CAST('2026-01-01 00:00:00'")
    assert ran.out.endswith("WHERE (id IS NULL);\n")


def test_the_moment_of_the_run_may_be_given(shop: CommandLine) -> None:
    shop.write("models/now.sql", "MODEL (name shop.now, kind FULL);\nSELECT @execution_ds AS d")

    assert (
        shop("render", "shop.now", "--execution-time", "2026-03-04", "--no-format").out == "SELECT '2026-03-04' AS d\n"
    )


def test_another_dialect_is_written_as_it_is_there(shop: CommandLine) -> None:
    shop.write("models/agg.sql", "MODEL (name shop.agg, kind FULL);\nSELECT collect_list(price) AS p FROM shop.daily")

    assert "ARRAY_AGG(price" in shop("render", "shop.agg", "--dialect", "postgres").out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["shop.daily", "--dialect", "duck"], "`duck` is not a SQL dialect. Did you mean `duckdb`?"),
        (["shop.daily", "--expand", "nothing"], "`nothing` selects no model."),
        (["shop.total", "--audits"], "`shop.total` has no audits."),
        (["shop.daily", "--start", "2026-02-01", "--end", "2026-01-01"], "The end does not come after the start."),
    ],
)
def test_a_wrong_request_is_told(arguments: list[str], told: str, shop: CommandLine) -> None:
    ran = shop("render", *arguments)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: {told}")
