"""GitHub on a bad day: each call fails once, each answer is lost once, and the end is the same.

`make test` has them all fail in one life, sort by sort; `make prove` gives each failure a life of its own as well.
"""

from __future__ import annotations

import os
import re
from typing import TypeVar

import pytest

from mergeplan.bot.records import PullState
from mergeplan.bot.service.worker import is_overdue
from mergeplan_sandbox.faults import ApiFault, RateLimit
from tests.bot.conftest import COLUMN, SHOP, Bench, until
from tests.bot.test_pull_requests import GREEN

pytestmark = pytest.mark.sampled

READS = (
    r"/repos/ann/shop$",
    r"/repos/ann/shop/pulls/\d+$",
    r"/repos/ann/shop/pulls$",
    r"/issues/\d+/comments$",
    r"/collaborators/wim/permission$",
    r"/commits/\w+/check-runs$",
)
WRITES = (
    ("POST", r"/app/installations/\d+/access_tokens$"),
    ("POST", r"/issues/\d+/comments$"),
    ("PATCH", r"/issues/comments/\d+$"),
    ("POST", r"/issues/comments/\d+/reactions$"),
    ("POST", r"/check-runs$"),
    ("PATCH", r"/check-runs/\d+$"),
)
GRAPHQL = ("POST", r"^/graphql$")
APART = "MERGEPLAN_CASES" in os.environ


T = TypeVar("T")


def lives(failures: tuple[T, ...]) -> list[tuple[T, ...]]:
    """Which calls fail in one life."""
    return [failures, *((failure,) for failure in failures if APART)]


def live_once(bench: Bench) -> int:
    """A pull request that is planned, categorised and merged."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.say(number, "/categorize orders breaking")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    return number


def assert_the_usual_end(bench: Bench, number: int) -> None:
    """What a good day leaves."""
    assert bench.record(number).state is PullState.PROMOTED
    assert len(bench.bot_comments(number)) == 2
    assert "nothing was computed" in bench.plan(number)
    assert "`shop.orders` is now Breaking" in bench.replies(number)[0]
    asked = next(comment for comment in bench.github.comments(SHOP, number) if comment.author == "wim")
    assert sorted(reaction.content for reaction in asked.reactions) == ["eyes", "rocket"]
    assert bench.conclusions(bench.head(number)) == GREEN
    merged = bench.github.pull_request(SHOP, number).merge_commit_sha
    assert merged is not None
    assert bench.conclusions(merged) == {"promotion": "success"}
    runs = bench.github.state.repositories[SHOP].checks.values()
    assert len(runs) == len({(run.name, run.head_sha) for run in runs})
    assert list(bench.planner_state()["environments"]) == ["prod"]


def test_the_calls_below_are_all_that_are_made(bench: Bench) -> None:
    """Behaviour 24: a new call of GitHub is put to the same test."""
    live_once(bench)
    known = (
        [("GET", path) for path in READS]
        + [*WRITES, GRAPHQL]
        + [("GET", "/reactions$|/installation|/app$|/ref/|/git/")]
    )
    made = {(call.method, call.path) for call in bench.github.calls}

    assert not {
        call for call in made if not any(call[0] == method and re.search(path, call[1]) for method, path in known)
    }


@pytest.mark.parametrize("paths", lives(READS))
def test_a_read_that_fails_once_changes_no_end(bench: Bench, paths: tuple[str, ...]) -> None:
    """Behaviour 24."""
    for path in paths:
        bench.github.faults.fail("GET", path, status=502, times=1)

    assert_the_usual_end(bench, live_once(bench))
    assert bench.github.faults.pending_faults() == []


FAULTS = {"fail": {"status": 500}, "lose_answer": {}, "rate_limit": {"says": RateLimit(retry_after=1)}}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("calls", lives(WRITES))
def test_a_write_that_fails_or_whose_answer_is_lost_changes_no_end(
    bench: Bench, calls: tuple[tuple[str, str], ...], fault: str
) -> None:
    """Behaviours 23, 24: refused, done without an answer, or put off: each thing stands once, by REST alone."""
    bench.github.faults.fail(*GRAPHQL, status=404, times=1000)
    for method, path in calls:
        getattr(bench.github.faults, fault)(method, path, times=1, **FAULTS[fault])

    assert_the_usual_end(bench, live_once(bench))
    left = {fault.path for fault in bench.github.faults.pending_faults() if isinstance(fault, ApiFault)}
    assert left <= {r"/app/installations/\d+/access_tokens$", GRAPHQL[1]}  # a token may be in hand already


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("times", [1, 2] if APART else [2])
def test_a_call_of_many_writes_that_fails_or_whose_answer_is_lost_changes_no_end(
    bench: Bench, fault: str, times: int
) -> None:
    """Behaviours 23, 24: what it wrote is found, and what it did not is written."""
    getattr(bench.github.faults, fault)(*GRAPHQL, times=times, **FAULTS[fault])

    assert_the_usual_end(bench, live_once(bench))
    assert bench.github.faults.pending_faults() == []


@pytest.mark.parametrize("status", [403, 422])
def test_a_success_does_not_outlive_the_time_in_which_github_refuses_checks(bench: Bench, status: int) -> None:
    """It stood for good on a head that conflicts by now, because the refused failure counted as shown."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.fail("*", r"^/graphql$|/check-runs", status=status, times=1000)
    bench.github.commit(SHOP, "main", {"models/orders.sql": "SELECT 5 AS id\n"}, "A conflict", author="ann")
    bench.idle()
    assert bench.conclusions(bench.head(number)) == GREEN
    bench.github.faults.clear()
    refused_at = bench.record(number).refused_at
    assert [is_overdue(bench.record(number), refused_at + seconds) for seconds in (60, 3600)] == [False, True]
    bench.context.inbox.queue.wake(SHOP, number)
    bench.idle()

    assert bench.conclusions(bench.head(number))["plan"] == "failure"
    runs = bench.github.state.repositories[SHOP].checks.values()
    assert len(runs) == len({(run.name, run.head_sha) for run in runs})


@pytest.mark.parametrize("status", [403, 500])
def test_the_check_of_a_push_ends_when_github_takes_it_again(bench: Bench, status: int) -> None:
    """It stayed in progress for good, and of a failed push it is the only sign on GitHub."""
    sha = bench.github.commit(SHOP, "main", COLUMN, "A push", author="wim")
    bench.github.faults.fail("*", r"/check-runs", status=status, times=1000)
    bench.idle()
    assert [unwritten.commit for unwritten in bench.context.inbox.prods.get(SHOP).unwritten] == [sha]
    bench.github.faults.clear()
    bench.worker.sweep()
    until(lambda: not bench.context.inbox.prods.get(SHOP).unwritten, what="the check's end")

    assert bench.conclusions(sha) == {"promotion": "success"}


def test_a_command_whose_comment_was_deleted_keeps_no_other_waiting(bench: Bench) -> None:
    """Nobody can react to it, and so the job failed for good: no later command was answered."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.faults.slow("GET", r"/collaborators/wim/permission$", seconds=1.0)
    asked = bench.github.comment(SHOP, number, "/categorize orders breaking", author="wim")
    bench.github.delete_comment(SHOP, asked, author="wim")
    bench.say(number, "/categorize orders non-breaking")

    assert len(bench.replies(number)) == 2
