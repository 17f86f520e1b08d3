"""Pull requests into a branch with an environment of its own: planned against that, promoted to that. Scripted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mergeplan.bot.records import PullState
from tests.bot.conftest import FILTER, SHOP, Bench
from tests.bot.prod.test_branches import branch, push, qa_bench

Make = Callable[..., Bench]
CHECK = "branch plan"
TOTAL = {"models/totals.sql": "SELECT 7 AS n\n"}


def open_pull(bench: Bench, files: Mapping[str, str | None] = TOTAL, head: str = "change") -> int:
    """A pull request into `qa`, planned."""
    bench.github.commit(SHOP, head, files, "A change", author="wim")
    number = bench.github.open_pull_request(SHOP, head, "qa", "A change", author="wim")
    bench.idle()
    return number


def comments(bench: Bench, number: int) -> list[str]:
    return [comment.body for comment in bench.bot_comments(number)]


def test_the_comment_says_against_which_environment_and_nothing_is_built(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    number = open_pull(bench)
    (text,) = comments(bench, number)

    assert "### Plan of `qa`: 1 model against `qa`" in text
    assert "Against the environment `qa` of the branch `qa`" in text and "revision 1" in text
    assert "Against qa." in text and "promotes to `qa` alone: prod does not change" in text
    assert bench.conclusions(bench.head(number)) == {CHECK: "success"}
    assert [call["argv"][:2] for call in bench.calls("plan", "qa")[1:]] == [["plan", "qa"]]
    assert "--auto-apply" not in bench.calls("plan", "qa")[-1]["argv"]
    assert set(bench.planner_state()["environments"]) == {"prod", "qa"}
    assert bench.record(number).state is PullState.NEW


def test_its_merge_reaches_that_environment_and_never_prod(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    prod, number = bench.planner_state()["environments"]["prod"], open_pull(bench)
    sha = bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert (branch(bench).promoted_commit, branch(bench).revision) == (sha, 2)
    assert bench.planner_state()["environments"]["prod"] == prod
    assert len(bench.calls("plan", "prod")) == 1
    assert branch(bench).previews == ()


def test_a_newer_head_and_a_newer_environment_plan_it_again_in_the_same_comment(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    number = open_pull(bench)
    bench.github.commit(SHOP, "change", {"models/totals.sql": "SELECT 8 AS n\n"}, "More", author="wim")
    bench.idle()
    second = comments(bench, number)
    push(bench, FILTER)

    assert len(second) == 1 and "SELECT 8" in second[0] and "revision 1" in second[0]
    (third,) = comments(bench, number)
    assert "revision 2" in third
    assert bench.conclusions(bench.head(number)) == {CHECK: "success"}
    calls = len(bench.calls("plan", "qa"))
    bench.worker.sweep()
    bench.idle()
    assert len(bench.calls("plan", "qa")) == calls


@pytest.mark.prove
def test_what_is_wrong_stands_in_the_comment_and_fails_the_check(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    number = open_pull(bench, {"models/totals.sql": "BROKEN <b>"})
    conflict = open_pull(bench, {"models/orders.sql": "SELECT 1 AS id, 3 AS other\n"}, "other")

    assert "1 problem" in comments(bench, number)[0] and "<b>" not in comments(bench, number)[0]
    assert "It conflicts with `qa` in `models/orders.sql`" in comments(bench, conflict)[0].replace("\\", "")
    for pull in (number, conflict):
        assert bench.conclusions(bench.head(pull)) == {CHECK: "failure"}


def test_a_fork_and_an_unfollowed_branch_are_left_alone(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    bench.github.commit(SHOP, "other", {"README.md": "# Other\n"}, "A branch", author="wim")
    bench.github.commit(SHOP, "change", FILTER, "A change", author="wim")
    number = bench.github.open_pull_request(SHOP, "change", "other", "A change", author="wim")
    bench.idle()

    assert comments(bench, number) == []
    assert len(bench.calls("plan", "qa")) == 1


def test_a_retargeted_pull_request_gets_a_plan_of_prod(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    number = open_pull(bench)
    bench.github.edit_pull_request(SHOP, number, base="main", author="wim")
    bench.idle()

    assert bench.record(number).state is PullState.PLANNED
    assert bench.calls("plan", f"pr_{number}")
    assert "merges into `main` now" in comments(bench, number)[0]
    assert "against `qa`" not in "".join(comments(bench, number))
    assert branch(bench).previews == ()


@pytest.mark.parametrize("knob", [{"crash": 9}, {"defect": "diff"}])
def test_a_planner_that_ends_without_an_answer_is_no_silence(copy_bench: Make, knob: dict[str, object]) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    bench.knobs(**knob)
    number = open_pull(bench)

    assert comments(bench, number)
    assert bench.conclusions(bench.head(number)) == {CHECK: "failure"}
