"""A plan that ends the Spark that plans share: it is tried again alone, and given up with a sentence."""

from __future__ import annotations

from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, FILTER, SHOP, Bench, until


def test_a_plan_that_ends_spark_again_alone_fails_and_says_why(bench: Bench) -> None:
    bench.knobs(no_memory="pr_1")
    number = bench.open(COLUMN)
    other = bench.open(FILTER, "other")
    bench.idle()

    assert (bench.record(number).state, bench.record(other).state) == (PullState.FAILED, PullState.PLANNED)
    assert len(bench.calls("plan", "pr_1")) == 3
    assert "Spark ran out of memory. That ended 3 runs of this plan" in bench.plan(number)
    assert bench.conclusions(bench.head(number))["environment"] == "failure"


def test_a_plan_that_lost_spark_once_is_made_alone(bench: Bench) -> None:
    bench.knobs(no_memory="pr_1")
    number = bench.open(COLUMN)
    until(lambda: bench.record(number).run.spark_losses == 1)
    bench.knobs()
    bench.idle()

    assert bench.record(number).state is PullState.PLANNED
    assert bench.record(number).run.spark_losses == 0


def test_a_plan_that_waits_for_its_turn_says_so(bench: Bench) -> None:
    with bench.context.turns.take(SHOP, "another", alone=True, should_stop=lambda: ""):
        number = bench.open(COLUMN)
        until(lambda: bench.record(number).run.progress.startswith("Waiting: another plan"))
    bench.idle()

    assert bench.record(number).state is PullState.PLANNED
