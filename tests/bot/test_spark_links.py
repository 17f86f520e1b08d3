"""Spark's own pages in the comment and in the checks."""

from __future__ import annotations

from tests.bot.conftest import COLUMN, Bench, until


def test_sparks_own_pages_are_linked_while_tables_are_computed(bench: Bench) -> None:
    bench.knobs(hang="pr", spark_ui="https://history.example/app-1/")
    number = bench.open(COLUMN)
    link = "[Spark UI](https://history.example/app-1/)"

    until(lambda: link in bench.plan(number), what="the comment")
    until(lambda: link in str(bench.checks(bench.head(number))["environment"].summary), what="the check")
    bench.knobs()
    bench.idle()
    assert "Spark UI" not in bench.plan(number)


def test_an_address_that_is_more_than_one_is_no_link(bench: Bench) -> None:
    bench.knobs(spark_ui="https://x.example/) ![](https://evil.example/")
    number = bench.open(COLUMN)
    bench.idle()

    assert "evil" not in bench.plan(number)
    assert bench.record(number).run.spark_ui
