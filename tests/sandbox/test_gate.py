"""Every call is logged; lists are paged; what did not change is not sent again."""

import httpx
from github import Github

from mergeplan_sandbox.server import Sandbox
from mergeplan_sandbox.state import ApiCall

from .conftest import SHOP


def test_every_call_is_logged_with_whose_token_it_was(sandbox: Sandbox, bot: Github, number: int) -> None:
    bot.get_repo(SHOP).get_pull(number).create_issue_comment("Hello")

    assert sandbox.calls == [
        ApiCall("GET", f"/repos/{SHOP}", 200, "mergeplan[bot]"),
        ApiCall("GET", f"/repos/{SHOP}/pulls/{number}", 200, "mergeplan[bot]"),
        ApiCall("POST", f"/repos/{SHOP}/issues/{number}/comments", 201, "mergeplan[bot]"),
    ]


def test_a_long_list_comes_in_pages(sandbox: Sandbox, bot: Github, number: int) -> None:
    for index in range(32):
        sandbox.comment(SHOP, number, str(index), author="wim")

    comments = bot.get_repo(SHOP).get_pull(number).get_issue_comments()

    assert [comment.body for comment in comments] == [str(index) for index in range(32)]
    assert comments.totalCount == 32


def test_pages_are_linked_both_ways(sandbox: Sandbox, api: httpx.Client, number: int) -> None:
    for index in range(3):
        sandbox.comment(SHOP, number, str(index), author="rea")

    links = api.get(f"/issues/{number}/comments", params={"per_page": 1, "page": 2}).links

    assert {name: link["url"][-1] for name, link in links.items()} == {
        "first": "1",
        "prev": "1",
        "next": "3",
        "last": "3",
    }


def test_comments_since_a_time_leave_out_older_ones(sandbox: Sandbox, api: httpx.Client, number: int) -> None:
    sandbox.comment(SHOP, number, "Hello", author="wim")

    everything = api.get(f"/issues/{number}/comments", params={"since": "2020-01-01T00:00:00Z"})
    nothing = api.get(f"/issues/{number}/comments", params={"since": "2999-01-01T00:00:00Z"})

    assert (len(everything.json()), len(nothing.json())) == (1, 0)


def test_what_did_not_change_is_not_sent_again_and_is_free(sandbox: Sandbox, api: httpx.Client, number: int) -> None:
    first = api.get(f"/pulls/{number}")

    second = api.get(f"/pulls/{number}", headers={"If-None-Match": first.headers["etag"]})
    sandbox.commit(SHOP, "more", {"x": "1"}, "x", author="wim")
    third = api.get(f"/pulls/{number}", headers={"If-None-Match": first.headers["etag"]})

    assert (second.status_code, second.content, third.status_code) == (304, b"", 200)
    assert second.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]


def test_pygithub_notices_what_changed_and_what_did_not(sandbox: Sandbox, bot: Github, number: int) -> None:
    pull = bot.get_repo(SHOP).get_pull(number)

    assert pull.update() is False
    sandbox.edit_pull_request(SHOP, number, author="wim", title="Better")
    assert pull.update() is True
    assert pull.title == "Better"
