"""Merges that are accepted first and done later, or never: prod follows what landed alone."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.bot.records import PullState
from mergeplan_sandbox.gate import Gate
from tests.bot.conftest import COLUMN, FILTER, SHOP, Bench, until
from tests.bot.pulls.test_groups import REQUIRED
from tests.bot.pulls.test_stacks import open_stack, prod_models
from tests.bot.test_pull_requests import GREEN

MORE = {"models/more.sql": "SELECT 3 AS x\n"}


def revision(bench: Bench) -> int:
    number: int = bench.planner_state()["environments"]["prod"]["revision"]
    return number


def unfinished(bench: Bench) -> list[str]:
    runs = bench.github.state.repositories[SHOP].checks.values()
    return [f"{run.name} on {run.head_sha[:7]}" for run in runs if run.status != "completed"]


@pytest.mark.parametrize("change", ["push", "close", "check"])
def test_a_merge_that_is_accepted_and_fails_later_leaves_prod(bench: Bench, change: str) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    assert bench.github.request_merge(SHOP, number, author="ann") == "pending"
    bench.idle()
    if change == "push":
        bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    elif change == "close":
        bench.github.close(SHOP, number, author="wim")
    else:
        bench.github.require_checks(SHOP, "main", ["another"])
    assert bench.github.run_merge(SHOP, number) == "failed"
    bench.idle()

    assert bench.record(number).state is (PullState.CLOSED if change == "close" else PullState.PLANNED)
    assert (revision(bench), unfinished(bench)) == (1, [])


def test_merges_that_land_in_another_order_are_promoted_in_that_order(bench: Bench) -> None:
    first, second = bench.open(COLUMN), bench.open(MORE, "more")
    bench.idle()
    for number in (first, second):
        bench.github.request_merge(SHOP, number, author="ann")
    bench.idle()
    assert revision(bench) == 1
    assert [bench.github.run_merge(SHOP, number) for number in (second, first)] == ["merged"] * 2
    bench.idle()

    assert [bench.record(number).promotion.revision for number in (second, first)] == [2, 3]
    assert bench.context.inbox.prods.get(SHOP).commit == bench.github.head(SHOP)
    assert "nothing was computed" in bench.plan(second)


def test_a_stack_that_is_merged_later_is_promoted_when_it_landed(bench: Bench) -> None:
    numbers = open_stack(bench, "one", "two", "three")
    bench.github.stack(SHOP, *numbers, author="wim")
    bench.github.request_merge(SHOP, numbers[2], author="ann")
    bench.idle()
    assert not prod_models(bench)
    assert bench.github.run_merge(SHOP, numbers[2]) == "merged"
    bench.idle()

    assert [bench.record(number).state for number in numbers] == [PullState.PROMOTED] * 3
    assert prod_models(bench) == {"shop.one", "shop.two", "shop.three"}


@pytest.mark.parametrize("webhooks", ["sent", "lost"])
def test_who_is_taken_out_of_the_queue_leaves_nothing_pending(bench: Bench, webhooks: str) -> None:
    bench.github.require_checks(SHOP, "main", REQUIRED)
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.request_merge(SHOP, number, author="ann", action="merge_queue")
    assert bench.github.run_merge(SHOP, number) == "enqueued"
    bench.idle()
    if webhooks == "lost":
        bench.github.faults.drop("merge_group")
    bench.github.dequeue(SHOP, number, author="ann")
    bench.worker.sweep()
    bench.idle()

    assert (bench.record(number).state, bench.record(number).group.head) == (PullState.PLANNED, "")
    assert sorted(bench.planner_state()["environments"]) == ["pr_1", "prod"]
    assert (revision(bench), unfinished(bench)) == (1, [])


def test_a_group_that_is_taken_out_in_the_middle_of_its_plan_ends_it(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.knobs(ponder="pr")
    head = bench.github.enqueue(SHOP, number, author="wim")
    until(lambda: bench.calls("plan", "pr_1_queue"), what="the group's plan")
    bench.github.dequeue(SHOP, number, author="ann")
    until(lambda: not bench.record(number).group.head, what="the end of the group")
    bench.knobs()
    bench.idle()

    assert (bench.record(number).group.head, revision(bench), unfinished(bench)) == ("", 1, [])
    assert sorted(bench.planner_state()["environments"]) == ["pr_1", "prod"]
    assert "success" not in bench.conclusions(head).values()


def test_who_jumps_the_queue_reaches_prod_first_and_the_others_are_planned_on_it(bench: Bench) -> None:
    bench.github.require_checks(SHOP, "main", REQUIRED)
    first, second = bench.open(COLUMN), bench.open(MORE, "more")
    bench.idle()
    bench.github.enqueue(SHOP, first, author="wim")
    bench.idle()
    bench.github.enqueue(SHOP, second, author="wim", jump=True)
    bench.idle()
    assert bench.github.advance_queue(SHOP, author="wim") == [second, first]
    bench.idle()

    assert [bench.record(number).promotion.revision for number in (second, first)] == [2, 3]
    assert list(bench.planner_state()["environments"]) == ["prod"]
    assert (bench.conclusions(bench.head(first)), unfinished(bench)) == (GREEN, [])


def hold_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub's lists of pull requests stay as they are first asked for; nothing is in that of closed ones."""
    lists: dict[bytes, Any] = {}
    real = Gate._call_app

    async def call_app(gate: Gate, scope: Any, receive: Any) -> Any:
        status, headers, body = await real(gate, scope, receive)
        if not scope["path"].endswith("/pulls"):
            return status, headers, body
        return lists.setdefault(
            scope["query_string"], (status, headers, b"[]" if b"closed" in scope["query_string"] else body)
        )

    monkeypatch.setattr(Gate, "_call_app", call_app)


def test_a_merge_that_githubs_lists_show_late_is_promoted_as_it_was_planned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for a push, and promoted without its categories; its comment said that no view had to change."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/categorize orders breaking")
    hold_lists(monkeypatch)
    bench.worker.sweep()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    (call,) = bench.calls("plan", "prod")[1:]
    assert call["argv"][call["argv"].index("--overrides-from") + 1] == bench.record(number).environment.name
    assert "2 views promoted, nothing was computed" in bench.plan(number)
