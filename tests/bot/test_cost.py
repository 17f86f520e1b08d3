"""A budget: what would cost more is not computed before somebody approves it."""

from __future__ import annotations

from collections.abc import Callable

from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench

BUDGET = {**PROJECT, "config.yaml": "gateways: {}\ncicd_bot:\n  budget: {bytes: 1000}\n"}


def test_a_plan_over_the_budget_waits_for_an_approval(make_bench: Callable[..., Bench]) -> None:
    """Behaviours 47, 48: told before it is spent, allowed by somebody who may, for that head alone."""
    bench = make_bench(BUDGET)
    bench.knobs(bytes=5000)
    number = bench.open(FILTER)
    bench.idle()

    assert bench.plan(number).splitlines()[1] == (
        "### 💰 Waits for an approval of its cost · would replace 2 tables of prod"
    )
    why = (
        "Computing this plan would read at least 5,000 bytes, and 1,000 are allowed. If `shop.orders` were non-breaking"
    )
    assert f"> **Nothing was computed: the estimate is over the project's budget.** {why}" in bench.plan(number)
    assert "To compute: 2 tables · at least 4.9 KiB to read (Spark's statistics, 1 of 2 tables)" in bench.plan(number)
    assert "| Model | Why | To compute |" in bench.plan(number)
    assert "`/approve-cost`: computes what is estimated, for this head; needs `maintain`" in bench.plan(number)
    assert "If `shop.orders` were non-breaking, 1 table instead of 2 would be computed." in bench.plan(number)
    assert bench.conclusions(bench.head(number)) == {
        **dict.fromkeys(("lint", "tests", "plan"), "success"),
        "environment": "action_required",
        "promotion": "failure",
    }
    bench.say(number, "/approve-cost")
    assert "needs the `maintain` permission" in bench.replies(number)[0]
    bench.say(number, "/approve-cost", author="ann")
    assert bench.record(number).outcome is not None and bench.record(number).outcome.applied  # type: ignore[union-attr]
    assert "--max-bytes=5500" in bench.calls("plan", "pr_1")[-1]["argv"]
    bench.github.commit(SHOP, "change", COLUMN, "Another", author="wim")
    bench.idle()
    assert "--max-bytes=1000" in bench.calls("plan", "pr_1")[-1]["argv"]
    assert "Waits for an approval" in bench.plan(number)


def test_without_a_budget_nothing_waits(bench: Bench) -> None:
    bench.knobs(bytes=5000)
    number = bench.open(FILTER)
    bench.say(number, "/approve-cost", author="ann")

    assert bench.record(number).state is PullState.PLANNED
    assert "No plan waits for an approval of its cost." in bench.replies(number)[0]
    assert not any("--max-bytes" in argument for call in bench.calls("plan", "pr_1") for argument in call["argv"])
