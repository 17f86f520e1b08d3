"""Faults on purpose: each does its harm as often as was asked, then all is well."""

import json
import time

import httpx
import pytest
import requests
from github import Github, GithubException, RateLimitExceededException

from mergeplan_sandbox.faults import RateLimit
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP, Receiver


@pytest.fixture(name="listening")
def _listening(sandbox: Sandbox, receiver: Receiver, number: int) -> Receiver:
    sandbox.install_app(SHOP, webhook_url=receiver.url)
    sandbox.wait_idle()
    return receiver


def comments_heard(sandbox: Sandbox, receiver: Receiver, number: int) -> list[str]:
    """Makes three comments and returns which of them were heard, in that order."""
    for body in ("one", "two", "three"):
        sandbox.comment(SHOP, number, body, author="wim")
    sandbox.wait_idle()
    return [json.loads(body)["comment"]["body"] for _, body in receiver.heard if b'"comment"' in body]


def test_a_dropped_webhook_is_not_heard_but_can_be_redelivered(
    sandbox: Sandbox, listening: Receiver, number: int
) -> None:
    sandbox.faults.drop("issue_comment.created")

    assert comments_heard(sandbox, listening, number) == ["two", "three"]
    lost = next(item for item in sandbox.deliveries if item.status == "dropped")
    sandbox.redeliver(lost.id)
    sandbox.wait_idle()
    assert json.loads(listening.heard[-1][1])["comment"]["body"] == "one"


def test_a_duplicated_webhook_is_heard_twice_under_one_guid(sandbox: Sandbox, listening: Receiver, number: int) -> None:
    sandbox.faults.duplicate("issue_comment")

    assert comments_heard(sandbox, listening, number) == ["one", "one", "two", "three"]
    guids = [headers["X-GitHub-Delivery"] for headers, body in listening.heard if b'"comment"' in body]
    assert len(set(guids)) == 3


def test_reordered_webhooks_are_heard_backwards(sandbox: Sandbox, listening: Receiver, number: int) -> None:
    sandbox.faults.reorder("issue_comment", times=3)

    assert comments_heard(sandbox, listening, number) == ["three", "two", "one"]


def test_a_held_webhook_without_a_successor_is_released_in_the_end(
    sandbox: Sandbox, listening: Receiver, number: int
) -> None:
    sandbox.faults.reorder("issue_comment", times=5)

    assert comments_heard(sandbox, listening, number) == ["three", "two", "one"]


def test_a_delayed_webhook_is_overtaken(sandbox: Sandbox, listening: Receiver, number: int) -> None:
    sandbox.faults.delay(0.3, "issue_comment")

    assert comments_heard(sandbox, listening, number) == ["two", "three", "one"]


def test_a_failing_call_does_nothing(sandbox: Sandbox, bot: Github, number: int) -> None:
    pull = bot.get_repo(SHOP).get_pull(number)
    sandbox.faults.fail("POST", r"/issues/\d+/comments$", status=502)

    with pytest.raises(GithubException) as failed:
        pull.create_issue_comment("Hello")
    assert failed.value.status == 502
    assert sandbox.comments(SHOP, number) == []
    assert pull.create_issue_comment("Hello again").id


def test_an_empty_budget_says_when_it_is_full_again(sandbox: Sandbox, bot: Github) -> None:
    sandbox.faults.rate_limit(says=RateLimit(reset_in=60))

    with pytest.raises(RateLimitExceededException) as refused:
        bot.get_repo(SHOP)
    assert refused.value.headers is not None
    assert refused.value.headers["x-ratelimit-remaining"] == "0"
    assert int(refused.value.headers["x-ratelimit-reset"]) > time.time()


def test_a_secondary_limit_says_how_long_to_wait(sandbox: Sandbox, api: httpx.Client) -> None:
    sandbox.faults.rate_limit(says=RateLimit(429, retry_after=7))

    answer = api.get("/pulls")

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


@pytest.mark.parametrize("status", [None, 502])
def test_a_lost_answer_was_still_a_deed(sandbox: Sandbox, bot: Github, number: int, status: int | None) -> None:
    pull = bot.get_repo(SHOP).get_pull(number)
    sandbox.faults.lose_answer("POST", "/comments", status=status)

    with pytest.raises((GithubException, requests.exceptions.RequestException)):
        pull.create_issue_comment("Once")

    assert [comment.body for comment in sandbox.comments(SHOP, number)] == ["Once"]


def test_a_slow_call_is_answered_after_the_caller_gave_up(sandbox: Sandbox, api: httpx.Client) -> None:
    sandbox.faults.slow("GET", "/pulls", seconds=3)

    with pytest.raises(httpx.ReadTimeout):
        api.get("/pulls", timeout=httpx.Timeout(60, read=0.2))
    assert api.get("/pulls").status_code == 200


def test_mergeability_can_be_unknown_for_a_while(sandbox: Sandbox, bot: Github, number: int) -> None:
    sandbox.faults.mergeability_unknown()
    repo = bot.get_repo(SHOP)

    assert repo.get_pull(number).mergeable is None
    assert repo.get_pull(number).mergeable is True


def test_cleared_faults_do_no_harm(sandbox: Sandbox, api: httpx.Client) -> None:
    sandbox.faults.fail("*", "", times=100)
    sandbox.faults.clear()

    assert api.get("/pulls").status_code == 200
    assert sandbox.faults.pending_faults() == []
