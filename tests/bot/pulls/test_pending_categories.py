"""Categories and restatements that were accepted, until something else came first. The planner is scripted."""

from __future__ import annotations

import pytest

from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, SHOP, Bench, until
from tests.bot.pulls.test_reviews import open_pull


def say_during_plan(bench: Bench, number: int, text: str) -> None:
    """A command whose plan has begun, and waits."""
    bench.knobs(ponder="pr")
    bench.github.comment(SHOP, number, text, author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the plan with the category")


def end_plan(bench: Bench, number: int, state: PullState) -> None:
    until(lambda: bench.record(number).state is state, what=state.value)
    bench.knobs()
    bench.idle()


def test_a_category_of_a_branch_that_conflicts_is_answered_once(bench: Bench) -> None:
    """It was planned again and again, and the comment never answered."""
    number = bench.open({**COLUMN, "README.md": "# Mine\n"})
    bench.idle()
    bench.github.commit(SHOP, "main", {"README.md": "# Theirs\n"}, "Theirs", author="ann")
    bench.idle()
    bench.patience = 60.0
    bench.say(number, "/categorize breaking")

    assert "The plan could not be made again" in bench.replies(number)[0]
    assert bench.record(number).state is PullState.FAILED


def test_a_category_whose_plan_is_cancelled_is_answered(bench: Bench) -> None:
    number = open_pull(bench)
    say_during_plan(bench, number, "/categorize breaking")
    bench.github.comment(SHOP, number, "/cancel", author="wim")
    end_plan(bench, number, PullState.CANCELLED)

    assert len(bench.replies(number)) == 2
    assert "The plan did not succeed." in "".join(bench.replies(number))


def test_a_category_of_a_forks_head_is_answered_when_a_push_comes_first(bench: Bench) -> None:
    bench.github.add_user("eve")
    fork = bench.github.fork(SHOP, "eve")
    bench.github.commit(fork, "change", COLUMN, "Change", author="eve")
    number = bench.github.open_pull_request(SHOP, "eve:change", "main", "Change", author="eve")
    bench.idle()
    bench.say(number, f"/ok-to-plan {bench.head(number)}", author="ann")
    bench.knobs(ponder="pr")
    bench.github.comment(SHOP, number, "/categorize breaking", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the plan with the category")
    bench.github.commit(fork, "change", {"README.md": "# More\n"}, "More", author="eve")
    end_plan(bench, number, PullState.HELD)

    assert len(bench.replies(number)) == 2


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("/categorize shop.orders breaking", "`shop.orders` stays Non-breaking"),
        ("/categorize --all breaking", "`shop.orders` stays Non-breaking"),
        ("/restate shop.totals --copy", "Nothing is restated."),
    ],
)
def test_what_a_merge_came_before_is_not_said_to_be_done(bench: Bench, command: str, reply: str) -> None:
    """Prod was promoted without it."""
    number = open_pull(bench)
    say_during_plan(bench, number, command)
    bench.github.merge(SHOP, number, author="ann")
    end_plan(bench, number, PullState.PROMOTED)

    (answer,) = bench.replies(number)
    assert "😕" in answer
    assert reply in answer
