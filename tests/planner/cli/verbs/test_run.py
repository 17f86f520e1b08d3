"""`run` on a real Spark: what is due and what is not, part of a unit, models that restate themselves, two at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine, Ran
from tests.planner.shop import ALONE, rows

Shop = Callable[..., CommandLine]
DAILY = """
MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (
  time_column day, auto_restatement_cron '0 0 * * 3', auto_restatement_intervals 2
), allow_partials true);
SELECT day, n FROM (SELECT EXPLODE(SEQUENCE(DATE '2026-01-01', DATE '2026-01-31')) AS day, 1 AS n)
WHERE day BETWEEN @start_date AND @end_date
"""
COPY = "MODEL (name shop.copy, kind INCREMENTAL_BY_TIME_RANGE (time_column day));\nSELECT day, n FROM shop.daily WHERE day BETWEEN @start_date AND @end_date"  # noqa: E501
UNTIL = """
from sqlmesh import signal

@signal()
def until(batch):
    return [(start, end) for start, end in batch if start.date().isoformat() <= "2026-01-07"]
"""
FILES = {**ALONE, "total": "", "daily": DAILY, "copy": COPY}


def run_at(mergeplan: CommandLine, moment: str, *arguments: str) -> Ran:
    return mergeplan("run", *arguments, "--output", "json", "--execution-time", moment)


def batches(ran: Ran) -> list[tuple[str, list[str]]]:
    assert ran.code == 0, ran.out
    return [(line["model"], line["interval"]) for line in ran.lines if line["event"] == "batch"]


@pytest.fixture
def mergeplan(shop: Shop) -> CommandLine:
    opened = shop(**FILES)
    assert opened("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00").code == 0
    return opened


def test_a_unit_that_is_not_over_is_computed_at_each_run_and_its_readers_wait(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    first, again = run_at(mergeplan, "2026-01-06 06:00:00"), run_at(mergeplan, "2026-01-06 07:00:00")

    assert batches(first) == batches(again) == [("shop.daily", ["2026-01-06", "2026-01-07"])]
    assert rows(engine, "SELECT max(day(day)) FROM shop.daily") == [(6,)]
    assert rows(engine, "SELECT max(day(day)) FROM shop.copy") == [(5,)]
    upstream = run_at(mergeplan, "2026-01-07 00:00:00", "--select-model", "shop.copy", "--no-auto-upstream")
    assert batches(upstream) == []


@pytest.mark.prove
def test_a_run_leaves_what_signals_hold_back_for_a_later_one_and_says_so(
    mergeplan: CommandLine, engine: SparkEngine
) -> None:
    night, late = "2026-01-09 00:00:00", ["2026-01-08", "2026-01-09"]
    mergeplan.write("signals/until.py", UNTIL)
    mergeplan.edit("models/daily.sql", "name shop.daily", "name shop.daily, signals (until())")
    mergeplan("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00")

    told, again = mergeplan("run", "--execution-time", night), run_at(mergeplan, night)
    mergeplan.edit("signals/until.py", "01-07", "01-08")

    assert (told.code, batches(again)) == (0, [])
    assert "- shop.daily: 2026-01-08 - 2026-01-08 waits for `until`" in told.out
    assert {"event": "late", "model": "shop.daily", "signals": ["until"], "intervals": [late]} in again.lines
    assert rows(engine, "SELECT max(day(day)) FROM shop.copy") == [(7,)]
    assert batches(run_at(mergeplan, night)) == [("shop.daily", late), ("shop.copy", late)]


def test_models_restate_themselves_when_their_cron_has_struck_and_once(mergeplan: CommandLine) -> None:
    later = "2027-01-06 00:00:00"  # a Wednesday, after everything was first shown
    behind = run_at(mergeplan, later, "--end", "2026-01-05")
    again = run_at(mergeplan, later, "--end", "2026-01-05")
    table = mergeplan.state.environments.get("prod").snapshots["shop.daily"].table

    assert {"event": "restating", "models": ["shop.daily"]} in behind.lines
    assert "restating" not in {line["event"] for line in again.lines}
    assert batches(again) == []
    assert mergeplan.state.intervals.load_timelines([table])[table]


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_time_that_has_not_come_is_not_computed(mergeplan: CommandLine, verb: str) -> None:
    table = mergeplan.state.environments.get("prod").snapshots["shop.daily"].table
    before = mergeplan.state.intervals.load_timelines([table])
    flags = ("--run", "--auto-apply") if verb == "plan" else ()
    ran = mergeplan(verb, *flags, "--execution-time", "2099-01-06")

    assert ran.code == 4
    assert "The execution time 2099-01-06 00:00 UTC is ahead of the state database's clock" in ran.err
    assert mergeplan.state.intervals.load_timelines([table]) == before


def test_a_second_run_at_the_same_time_does_nothing_and_says_so(mergeplan: CommandLine) -> None:
    with mergeplan.state.leases.hold("prod", "run of prod"):
        ran, as_text = run_at(mergeplan, "2026-01-09"), mergeplan("run")

    assert ran.result["ok"]
    assert ran.result["skipped"] == as_text.out.strip()
    assert as_text.out.startswith("`prod` is being run already, since ")
    assert (as_text.code, batches(ran)) == (0, [])


@pytest.mark.prove
def test_plan_with_run_computes_what_has_come_due_too(mergeplan: CommandLine, engine: SparkEngine) -> None:
    ran = mergeplan("plan", "--run", "--auto-apply", "-o", "json", "--execution-time", "2026-01-09 03:00:00")

    assert ran.result["ok"]
    assert dict(batches(ran))["shop.daily"] == ["2026-01-06", "2026-01-10"]
    assert dict(batches(ran))["shop.copy"] == ["2026-01-06", "2026-01-09"]
    assert rows(engine, "SELECT max(day(day)) FROM shop.copy") == [(8,)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--no-auto-upstream",), "`--no-auto-upstream` does nothing without `--select-model`."),
        (("--start", "2026-01-05", "--end", "2026-01-03"), "The end `2026-01-03` does not come after the start"),
        (("--start", "soon"), "`soon` is not a date."),
    ],
)
def test_what_cannot_be_run_is_told(arguments: tuple[str, ...], told: str, offline: CommandLine) -> None:
    offline.write("config.yaml", "gateways: {l: {connection: {type: spark}}}\n")

    ran = offline("run", *arguments)

    assert (ran.code, ran.err.startswith(f"Error: {told}")) == (1, True), ran.err
