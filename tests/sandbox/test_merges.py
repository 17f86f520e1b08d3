"""Asynchronous merges: accepted at once, done or refused later, by GitHub's published types."""

from __future__ import annotations

import httpx
import pytest
from githubkit_schemas.latest import models

from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP


def read_result(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, models.PullRequestMergeAsyncResult.model_validate(answer.json()).status


def test_a_merge_is_accepted_and_its_result_is_read_by_its_id(sandbox: Sandbox, api: httpx.Client, number: int) -> None:
    accepted = api.put(f"/pulls/{number}/merge-async", json={"merge_method": "squash"})
    again = api.put(f"/pulls/{number}/merge-async")
    path = f"/pulls/{number}/merge-async/{accepted.json()['details']['uuid']}"
    pending = api.get(path)
    assert (sandbox.run_merge(SHOP, number), sandbox.pull_request(SHOP, number).state) == ("merged", "closed")

    assert [read_result(answer) for answer in (accepted, again, pending)] == [
        (202, "pending"),
        (409, "pending"),
        (200, "pending"),
    ]
    assert read_result(api.get(path)) == read_result(api.put(f"/pulls/{number}/merge-async")) == (200, "merged")
    assert api.get(path).json()["details"]["sha"] == sandbox.head(SHOP)
    assert api.get(f"/pulls/{number}/merge-async/other").status_code == 404


@pytest.mark.parametrize("change", ["push", "check", "close"])
def test_an_accepted_merge_fails_of_what_came_in_between(sandbox: Sandbox, number: int, change: str) -> None:
    assert sandbox.request_merge(SHOP, number, author="wim") == "pending"
    if change == "push":
        sandbox.commit(SHOP, "more", {"a.sql": "SELECT 1\n"}, "More", author="wim")
    elif change == "check":
        sandbox.require_checks(SHOP, "main", ["mergeplan / plan"])
    else:
        sandbox.close(SHOP, number, author="wim")

    assert sandbox.run_merge(SHOP, number) == "failed"
    assert sandbox.pull_request(SHOP, number).merged_at is None


def test_a_closed_pull_request_is_refused_at_once(sandbox: Sandbox, api: httpx.Client, number: int) -> None:
    sandbox.close(SHOP, number, author="wim")

    assert read_result(api.put(f"/pulls/{number}/merge-async")) == (400, "failed")


def test_a_queued_merge_is_enqueued_and_who_jumps_the_queue_is_merged_first(sandbox: Sandbox, number: int) -> None:
    sandbox.commit(SHOP, "other", {"b.sql": "SELECT 1\n"}, "Other", author="wim")
    other = sandbox.open_pull_request(SHOP, "other", "main", "Other", author="wim")
    sandbox.request_merge(SHOP, number, author="wim", action="merge_queue")
    assert sandbox.run_merge(SHOP, number) == "enqueued"
    assert sandbox.request_merge(SHOP, number, author="wim") == "enqueued"
    sandbox.enqueue(SHOP, other, author="wim", jump=True)

    assert sandbox.advance_queue(SHOP, author="wim") == [other, number]


def test_who_is_taken_out_of_the_queue_or_pushed_to_is_not_merged(sandbox: Sandbox, number: int) -> None:
    sandbox.enqueue(SHOP, number, author="wim")
    sandbox.dequeue(SHOP, number, author="wim")
    assert sandbox.advance_queue(SHOP, author="wim") == []
    sandbox.enqueue(SHOP, number, author="wim")
    sandbox.commit(SHOP, "more", {"a.sql": "SELECT 1\n"}, "More", author="wim")

    assert sandbox.advance_queue(SHOP, author="wim") == []
    assert sandbox.pull_request(SHOP, number).state == "open"
