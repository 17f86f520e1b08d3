"""What is written to GitHub next, and that nobody waits for it who need not."""

from __future__ import annotations

from collections import Counter

import pytest
from github import GithubException
from github.Issue import Issue
from github.IssueComment import IssueComment

from mergeplan.bot.pulls.due import what_is_due
from mergeplan.bot.records import CheckRef, PullState
from mergeplan_sandbox.api.shapes_pulls import PASSED
from tests.bot.changing import change_record
from tests.bot.conftest import COLUMN, SHOP, Bench, until
from tests.bot.test_pull_requests import GREEN

LINT, TESTS, PLAN, ENVIRONMENT, PROMOTION = (
    f"mergeplan / {name}" for name in ("lint", "tests", "plan", "environment", "promotion")
)


def test_the_comment_is_written_first_and_then_what_a_reader_waits_for(bench: Bench) -> None:
    """The environment's check, then the others of this head, then those of older heads, and then nothing."""
    number = bench.open(COLUMN)
    bench.idle()
    whole = bench.record(number)
    old = CheckRef(PLAN, "0" * 40, 1, "d", False)
    record = change_record(whole, checks=(old,), comment_digest="")
    due = what_is_due(record, bench.context.inbox.prods.get(SHOP), presses=True)

    assert due is not None
    assert due.comment == bench.plan(number)
    assert [view.name for _, view in due.checks] == [ENVIRONMENT, PROMOTION, PLAN, TESTS, LINT, PLAN]
    shown = change_record(whole, checks=(*whole.checks, CheckRef(PLAN, old.sha, 1, due.checks[-1][1].digest, True)))
    assert what_is_due(shown, bench.context.inbox.prods.get(SHOP), presses=True) is None


def test_a_github_that_takes_no_check_holds_no_plan_up(bench: Bench) -> None:
    """The plan is made meanwhile; when GitHub takes checks again, all of them are shown."""
    for path in (".*/check-runs", "^/graphql$"):
        bench.github.faults.fail("POST", path, status=500, times=1000)
    number = bench.open(COLUMN)
    until(lambda: bench.record(number).state is PullState.PLANNED, what="the plan")
    until(lambda: bench.plan(number), what="the comment")
    assert not bench.checks(bench.head(number))
    bench.github.faults.clear()
    bench.idle()

    assert set(bench.conclusions(bench.head(number)).values()) == {"success"}


def test_a_plan_is_shown_while_spark_still_checks_it(bench: Bench) -> None:
    bench.knobs(comparing="pr", hang="pr")
    number = bench.open(COLUMN)
    until(lambda: "(the comparison is running)" in bench.plan(number), what="the plan")
    assert bench.record(number).state is PullState.PLANNING
    assert "⏳ Planning `" in bench.plan(number)
    bench.knobs(hang="pr")
    until(lambda: "\nChecked by Spark:" in bench.plan(number), what="the checked plan")
    assert "⏳ Building `" in bench.plan(number)
    assert "Not checked by Spark" not in bench.plan(number)
    bench.knobs()
    bench.idle()

    assert set(bench.conclusions(bench.head(number)).values()) == {"success"}


def test_the_checks_of_a_commit_are_looked_for_once(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    looks = Counter(call.path for call in bench.github.calls if call.method == "GET" and "/check-runs" in call.path)
    assert set(looks.values()) == {1}
    assert len(bench.checks(bench.head(number))) == 5


def test_a_promotion_starts_one_planner(bench: Bench) -> None:
    """What prod is after it, its own last line says."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("environments"))
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert len(bench.calls("environments")) == before
    assert len(bench.calls("plan", "prod")) == 2
    prod = bench.context.inbox.prods.get(SHOP)
    assert (prod.revision, prod.plan_id) == (2, bench.record(number).promotion.outcome.plan.id)  # type: ignore[union-attr]


def test_checks_of_a_queues_group_that_was_merged_before_its_plan_ended_are_ended(bench: Bench) -> None:
    """The group's head is the merge: only its promotion is still reported there."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    whole = bench.record(number)
    left = tuple(CheckRef(name, whole.promotion.merge_sha, 99, "d", False) for name in (PLAN, LINT, PROMOTION))
    due = what_is_due(change_record(whole, checks=left), bench.context.inbox.prods.get(SHOP))

    assert due is not None
    ended = {view.name: view.conclusion for sha, view in due.checks if sha == whole.promotion.merge_sha}
    assert ended == {PLAN: "cancelled", LINT: "cancelled", PROMOTION: "success"}


def test_a_failed_plan_lets_no_check_pass_for_another(bench: Bench) -> None:
    """Whichever of them is required, GitHub merges nothing; it counts `neutral` and `skipped` as passed."""
    number = bench.open({"models/orders.sql": "SELECT 1 AS id\nBROKEN\n"})
    bench.idle()
    conclusions = bench.conclusions(bench.head(number))

    assert set(conclusions) == {"lint", "tests", "plan", "environment", "promotion"}
    assert not set(conclusions.values()) & set(PASSED)


def test_a_locked_conversation_keeps_no_check_from_its_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub takes no comment of an App there; commands are carried out, too."""

    def refuse(*_: object) -> None:
        raise GithubException(403, {"message": "Unable to create comment because issue is locked."}, {})

    monkeypatch.setattr(Issue, "create_comment", refuse)
    for verb in ("edit", "create_reaction"):
        monkeypatch.setattr(IssueComment, verb, refuse)
    number = bench.open(COLUMN)
    bench.idle()
    assert bench.conclusions(bench.head(number)) == GREEN
    bench.say(number, "/categorize breaking")
    assert "1 breaking" in str(bench.checks(bench.head(number))["plan"].title)
    assert not bench.bot_comments(number)
