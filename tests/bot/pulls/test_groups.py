"""The merge queue on the sandbox: a group's checks, and the merge that follows. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mergeplan.bot.child.planner_process import Finished
from mergeplan.bot.context import Later, PlannerCall
from mergeplan.bot.pulls.actions import groups
from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, SHOP, Bench, until
from tests.bot.pulls.test_reviews import bench_with_rules
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


def test_a_group_that_comes_while_the_one_before_is_dropped_is_planned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub drops a group, and makes another, when the pull request before it leaves the queue."""
    bench.github.require_checks(SHOP, "main", REQUIRED)
    number, _ = queue_pull(bench, COLUMN, "change")
    heads, plan = list[str](), bench.context.plan

    def plan_and_queue(call: PlannerCall, **more: Any) -> Finished:
        if call.arguments[0] == "invalidate" and not heads:
            heads.append(bench.github.enqueue(SHOP, number, author="wim"))
            bench.github.wait_idle()
        return plan(call, **more)

    monkeypatch.setattr(bench.context, "plan", plan_and_queue)
    bench.github.dequeue(SHOP, number, author="ann")
    bench.idle()
    assert bench.conclusions(heads[0]) == GREEN


def test_the_environment_of_a_group_is_dropped_by_another_try(bench: Bench) -> None:
    number, _ = queue_pull(bench, COLUMN, "change")
    bench.knobs(defect="invalidate")
    bench.github.dequeue(SHOP, number, author="ann")
    until(lambda: bench.calls("invalidate"), what="the first try")
    bench.knobs()
    bench.idle()
    assert sorted(bench.planner_state()["environments"]) == ["pr_1", "prod"]


def test_a_group_whose_tables_are_in_use_waits_for_them(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was thrown out of the queue after three tries."""
    monkeypatch.setattr(groups, "Later", lambda seconds, why: Later(seconds / 30, why))
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(busy=5)
    head = bench.github.enqueue(SHOP, number, author="wim")
    bench.idle()
    assert bench.conclusions(head) == GREEN


def test_an_approval_whose_webhook_is_lost_counts_for_the_group(make_bench: Callable[..., Bench]) -> None:
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("pull_request_review")
    bench.review(number, author="bob")
    head = bench.github.enqueue(SHOP, number, author="wim")
    bench.idle()
    assert bench.conclusions(head)["plan"] == "success"


def test_a_group_behind_a_fork_that_nobody_let_in_runs_no_code_of_it(bench: Bench) -> None:
    bench.github.add_user("eve")
    fork = bench.github.fork(SHOP, "eve")
    bench.github.commit(fork, "mine", {"models/mine.sql": "SELECT 4 AS x\n"}, "Mine", author="eve")
    first = bench.github.open_pull_request(SHOP, "eve:mine", "main", "Mine", author="eve")
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.enqueue(SHOP, first, author="wim")
    head = bench.github.enqueue(SHOP, number, author="wim")
    bench.idle()
    assert bench.conclusions(head)["plan"] == "failure"
    assert sorted(bench.planner_state()["environments"]) == ["pr_2", "prod"]

    bench.github.dequeue(SHOP, first, author="ann")
    bench.idle()
    assert bench.conclusions(bench.record(number).group.head) == GREEN


def test_rerun_of_a_groups_check_plans_the_group_again(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(fail="pr")
    head = bench.github.enqueue(SHOP, number, author="wim")
    bench.idle()
    assert bench.conclusions(head)["environment"] == "failure"
    bench.knobs()
    bench.github.rerequest(SHOP, bench.checks(head)["environment"].id, author="wim")
    bench.idle()
    assert bench.conclusions(head) == GREEN


def test_a_group_takes_the_categories_of_those_before_it(bench: Bench) -> None:
    """Their merges come first, with these."""
    first, number = bench.open(COLUMN), bench.open({"models/more.sql": "SELECT 3 AS x\n"}, "more")
    bench.idle()
    bench.say(first, "/categorize breaking")
    bench.github.enqueue(SHOP, first, author="wim")
    bench.github.enqueue(SHOP, number, author="wim")
    bench.idle()
    assert bench.calls("plan", "pr_2_queue")[-1]["argv"][-3:-2] == ["pr_2,pr_1"]
