"""Merges that prod lacks and gets with a later one, or by another try. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mergeplan.bot.github.gateway import GitHubRepository
from mergeplan.bot.pull_parts import RESTATED, PendingOverride
from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench, until
from tests.bot.prod.test_rollback import MORE, merge_pull
from tests.bot.pulls.test_reviews import bench_with_rules, open_pull, review

Make = Callable[..., Bench]


def fail_merge(bench: Bench, command: str = "/categorize breaking", branch: str = "change") -> int:
    """A pull request with a command, merged while Spark refuses what prod would need."""
    number = bench.open(COLUMN, branch)
    bench.idle()
    bench.say(number, command, author="ann")
    bench.knobs(fail="prod")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.knobs()
    assert bench.record(number).state is PullState.UNPROMOTED
    return number


def prod_arguments(bench: Bench) -> list[str]:
    arguments: list[str] = bench.calls("plan", "prod")[-1]["argv"]
    return arguments


def category(bench: Bench, number: int) -> str | None:
    outcome = bench.record(number).promotion.outcome
    models = outcome.plan.models if outcome and outcome.plan else ()
    return next(model.category for model in models if model.name == "shop.orders")


@pytest.mark.parametrize("what", ["check", "suite"])
def test_rerun_on_the_commit_of_a_failed_merge_promotes_it_with_its_categories(bench: Bench, what: str) -> None:
    number = fail_merge(bench)
    sha = bench.record(number).promotion.merge_sha
    if what == "check":
        bench.github.rerequest(SHOP, bench.checks(sha)["promotion"].id, author="wim")
    else:
        bench.github.rerequest_suite(SHOP, sha, author="wim")
    bench.idle()

    assert (bench.record(number).state, category(bench, number)) == (PullState.PROMOTED, "breaking")
    assert bench.record(number).promotion.revision == 2


def test_rerun_of_a_failed_merge_asks_the_rules_again(make_bench: Make) -> None:
    """The approval was taken back meanwhile."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    approval = review(bench, number, "bob")
    bench.knobs(fail="prod")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.knobs()
    bench.github.dismiss_review(SHOP, number, approval, author="ann")
    bench.github.rerequest_suite(SHOP, bench.record(number).promotion.merge_sha, author="wim")
    bench.idle()

    assert (bench.record(number).state, bench.record(number).rules.held) == (PullState.MERGED, True)
    assert bench.planner_state()["environments"]["prod"]["revision"] == 1


def test_a_failed_merge_that_comes_with_a_later_one_keeps_its_categories(bench: Bench) -> None:
    number = fail_merge(bench)
    other = merge_pull(bench, MORE, "more")

    assert category(bench, other) == "breaking"
    assert (bench.record(number).state, bench.record(number).reason) == (
        PullState.PROMOTED,
        f"Prod shows it together with #{other}.",
    )


@pytest.mark.parametrize("failed", ["change", "change-forward-only"])
def test_a_forward_only_branch_keeps_the_rows_of_its_own_models_alone(bench: Bench, failed: str) -> None:
    """Of the merge that failed and the one with which it comes, one is forward-only."""
    later = {"change": "more-forward-only", "change-forward-only": "more"}[failed]
    number = fail_merge(bench, "/categorize forward-only", failed)
    other = merge_pull(bench, MORE, later)
    arguments = prod_arguments(bench)

    assert [bench.record(pull).source.forward_only for pull in (number, other)] == [
        failed != "change",
        failed == "change",
    ]
    assert "--forward-only" not in arguments
    assert ("--categorize=shop.orders=forward-only" in arguments) == (failed != "change")


def test_a_rollback_takes_back_what_came_with_the_merge(bench: Bench) -> None:
    """The comment of both says so, and the revert says that it does not revert the other."""
    number = fail_merge(bench)
    other = merge_pull(bench, MORE, "more")
    bench.say(other, "/rollback", author="ann")

    assert [bench.record(pull).state for pull in (number, other)] == [PullState.ROLLED_BACK] * 2
    assert f"#{number} went with it: revert that too." in bench.replies(other)[0]


def test_a_held_merge_is_not_in_prod_when_the_promotion_that_takes_it_along_fails(make_bench: Make) -> None:
    bench = bench_with_rules(make_bench, {"models": "shop.orders", "approvals": 1})
    number = open_pull(bench)
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    other = bench.open(MORE, "more")
    bench.idle()
    review(bench, other, "bob")
    bench.knobs(fail="prod")
    bench.github.merge(SHOP, other, author="ann")
    bench.idle()
    assert (bench.record(number).state, bench.record(number).rules.held) == (PullState.MERGED, True)
    assert "### ✋ Merged; promotion on hold" in bench.plan(number)

    bench.knobs()
    bench.say(other, "/plan")
    assert [bench.record(pull).state for pull in (number, other)] == [PullState.PROMOTED] * 2
    assert not bench.record(number).rules.held


def test_what_a_failed_merge_restates_does_not_pass_for_promoted_with_a_later_one(bench: Bench) -> None:
    """It is in no tree: only another try of that pull request brings it."""
    number = fail_merge(bench)
    wish = PendingOverride("shop.totals", RESTATED, "wim", bench.head(number))
    bench.context.inbox.pulls.update(
        SHOP, number, lambda record: replace(record, wishes=replace(record.wishes, overrides=(wish,)))
    )
    merge_pull(bench, MORE, "more")

    assert bench.record(number).state is PullState.UNPROMOTED
    assert "pr_1" not in prod_arguments(bench)


def test_a_permit_for_one_head_lets_no_later_head_lose_columns_at_the_merge(bench: Bench) -> None:
    """The later head was merged before the bot saw it."""
    number = open_pull(bench)
    bench.say(number, "/allow-destructive shop.orders", author="ann")
    bench.github.faults.drop("pull_request.synchronize")
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED
    assert "--allow-destructive-model=shop.orders" not in prod_arguments(bench)


def test_a_forward_only_branch_is_promoted_so_when_it_is_merged_before_its_plan(copy_bench: Make) -> None:
    bench = copy_bench({**PROJECT, "config.yaml": "gateways: {}\ncicd_bot:\n  forward_only_branch_suffix: -forward\n"})
    bench.github.faults.drop("pull_request")
    number = bench.open(COLUMN, "orders-forward")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED
    assert "--forward-only" in prod_arguments(bench)


def test_a_merge_whose_environment_was_dropped_keeps_its_categories(bench: Bench) -> None:
    number = open_pull(bench)
    bench.say(number, "/categorize breaking")
    bench.say(number, "/destroy")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert (bench.record(number).state, category(bench, number)) == (PullState.PROMOTED, "breaking")


def test_a_merge_after_which_many_were_closed_while_the_service_was_down_is_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub lists those that were closed last; its merge passed for a push, without its categories."""
    number = open_pull(bench)
    bench.say(number, "/categorize breaking")
    monkeypatch.setattr(GitHubRepository, "list_closed_pulls", lambda self, limit=50: ())
    bench.github.faults.drop("pull_request")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert (bench.record(number).promotion.revision, category(bench, number)) == (2, "breaking")


def test_unlock_stops_a_promotion_that_waits_for_its_next_try(bench: Bench) -> None:
    """Another process holds prod; a try takes a moment, and then it waits."""
    number = open_pull(bench)
    bench.knobs(held="prod")
    bench.github.merge(SHOP, number, author="ann")
    until(lambda: bench.context.inbox.prods.get(SHOP).attempts >= 3, what="some tries")
    bench.github.comment(SHOP, number, "/unlock", author="ann")
    until(lambda: bench.record(number).state is not PullState.MERGED, what="the end of the promotion")
    bench.knobs()
    bench.idle()

    assert bench.record(number).state is PullState.UNPROMOTED
    bench.say(number, "/plan")
    assert bench.record(number).state is PullState.PROMOTED
