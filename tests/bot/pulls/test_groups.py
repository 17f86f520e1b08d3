"""The merge queue on the sandbox: a group's checks, and the merge that follows. The planner is the scripted child."""

from __future__ import annotations

import pytest

from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, SHOP, Bench
from tests.bot.test_pull_requests import GREEN

REQUIRED = ["mergeplan / plan", "mergeplan / environment"]


def queue_pull(bench: Bench, files: dict[str, str], branch: str) -> tuple[int, str]:
    """A pull request that is planned, and its group's head, whose checks have ended."""
    number = bench.open(files, branch)
    bench.idle()
    head = bench.github.enqueue(SHOP, number, author="wim")
    bench.idle()
    return number, head


def test_a_groups_plan_is_built_on_its_head_and_the_merge_computes_nothing(bench: Bench) -> None:
    """Behaviour 38: the required checks stand on the queue's commit; prod follows, and the group leaves nothing."""
    bench.github.require_checks(SHOP, "main", REQUIRED)
    number, head = queue_pull(bench, COLUMN, "change")
    assert bench.conclusions(head) == GREEN
    assert "pr_1_queue" in bench.planner_state()["environments"]
    assert bench.github.advance_queue(SHOP, author="wim") == [number]
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED
    assert "nothing was computed" in bench.plan(number)
    assert list(bench.planner_state()["environments"]) == ["prod"]
    assert bench.conclusions(head) == GREEN


@pytest.mark.prove
def test_a_group_that_fails_leaves_the_queue_and_the_next_one_is_planned_anew(bench: Bench) -> None:
    """Its check fails at the file; prod does not see it; who waited behind it is merged."""
    bench.github.require_checks(SHOP, "main", REQUIRED)
    number, head = queue_pull(bench, {"models/orders.sql": "BROKEN\n"}, "broken")
    other, _ = queue_pull(bench, {"models/more.sql": "SELECT 3 AS x\n"}, "more")
    assert bench.conclusions(head)["plan"] == "failure"
    assert bench.github.advance_queue(SHOP, author="wim") == []
    bench.idle()
    assert bench.github.advance_queue(SHOP, author="wim") == [other]
    bench.idle()

    assert [bench.record(pull).state for pull in (number, other)] == [PullState.FAILED, PullState.PROMOTED]
    assert sorted(bench.planner_state()["environments"]["prod"]["models"]) == [
        "shop.more",
        "shop.orders",
        "shop.totals",
    ]


def test_what_the_queue_did_is_found_by_the_timer_when_its_webhooks_are_lost(bench: Bench) -> None:
    """Behaviour 38: a group whose webhook was lost is planned, and one that has left the queue is over."""
    bench.github.require_checks(SHOP, "main", REQUIRED)
    number = bench.open({"models/orders.sql": "BROKEN\n"}, "broken")
    bench.idle()
    bench.github.faults.drop(times=1000)
    head = bench.github.enqueue(SHOP, number, author="wim")
    bench.worker.sweep()
    bench.idle()
    assert bench.conclusions(head)["plan"] == "failure"

    assert bench.github.advance_queue(SHOP, author="wim") == []
    bench.worker.sweep()
    bench.idle()
    assert bench.record(number).group.head == ""
