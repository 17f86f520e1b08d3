"""Every webhook is sent when it should be, and is what GitHub's published types say."""

import json
from typing import Any

import httpx
from githubkit.webhooks import parse
from githubkit_schemas.latest import models

from mergeplan_sandbox.git.pushes import Change
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP, Receiver


def webhook_names(sandbox: Sandbox) -> list[str]:
    """The webhooks so far, as `event.action`."""
    sandbox.wait_idle()
    return [f"{item.event}.{item.action}" if item.action else item.event for item in sandbox.deliveries]


def last(sandbox: Sandbox, event: str) -> dict[str, Any]:
    """The newest payload of an event."""
    sandbox.wait_idle()
    return next(item.payload for item in reversed(sandbox.deliveries) if item.event == event)


def test_every_webhook_is_of_github_s_type(
    sandbox: Sandbox, number: int, receiver: Receiver, api: httpx.Client
) -> None:
    sandbox.create_repository("ann/second", {"a": "1"})
    sandbox.install_app("ann/second", webhook_url=receiver.url)
    everything_happens(sandbox, number, api)
    sandbox.remove_from_app("ann/second")
    sandbox.suspend_app("ann")
    sandbox.suspend_app("ann", is_suspended=False)
    sandbox.uninstall_app("ann")
    sandbox.wait_idle()

    for item in sandbox.deliveries:
        parse(item.event, json.dumps(item.payload))
    assert set(webhook_names(sandbox)) >= {
        "ping",
        "installation.created",
        "installation_repositories.added",
        "installation_repositories.removed",
        *(f"installation.{action}" for action in ("suspend", "unsuspend", "deleted")),
        "push",
        *(
            f"pull_request.{action}"
            for action in ("opened", "synchronize", "edited", "labeled", "unlabeled", "closed", "reopened")
        ),
        *(f"issue_comment.{action}" for action in ("created", "edited", "deleted")),
        *(f"pull_request_review.{action}" for action in ("submitted", "dismissed")),
        *(f"check_run.{action}" for action in ("created", "completed", "rerequested", "requested_action")),
        "check_suite.rerequested",
        *(f"merge_group.{action}" for action in ("checks_requested", "destroyed")),
    }


def everything_happens(sandbox: Sandbox, number: int, api: httpx.Client) -> None:
    """Each thing that the sandbox tells of, once."""
    sha = sandbox.commit(SHOP, "more", {"models/new.sql": "SELECT 3"}, "More", author="wim")
    sandbox.edit_pull_request(SHOP, number, author="wim", title="New title")
    sandbox.commit(SHOP, "other-base", {"x": "1"}, "x", author="ann")
    sandbox.edit_pull_request(SHOP, number, author="wim", base="other-base")
    sandbox.label(SHOP, number, "urgent", author="ann")
    sandbox.label(SHOP, number, "urgent", author="ann", remove=True)
    comment = sandbox.comment(SHOP, number, "Hello", author="rea")
    sandbox.edit_comment(SHOP, comment, "Hello you", author="rea")
    sandbox.delete_comment(SHOP, comment, author="rea")
    review = sandbox.review(SHOP, number, "APPROVED", author="ann")
    sandbox.dismiss_review(SHOP, number, review, author="ann")
    button = {"label": "Apply", "description": "Apply the plan", "identifier": "apply"}
    body = {"name": "plan", "head_sha": sha, "conclusion": "success", "actions": [button]}
    run = api.post("/check-runs", json=body).json()["id"]
    sandbox.rerequest(SHOP, run, author="wim")
    sandbox.click(SHOP, run, "apply", author="wim")
    sandbox.rerequest_suite(SHOP, sha, author="wim")
    sandbox.close(SHOP, number, author="wim")
    sandbox.reopen(SHOP, number, author="wim")
    sandbox.enqueue(SHOP, number, author="wim")
    assert sandbox.advance_queue(SHOP, author="wim") == [number]
    sandbox.delete_branch(SHOP, "more", author="wim")


def test_an_organization_s_webhooks_name_the_organization(sandbox: Sandbox) -> None:
    sandbox.add_user("acme", organization=True)
    sandbox.create_repository("acme/shop", {"a": "1"})
    sandbox.install_app("acme/shop")
    sandbox.open_issue("acme/shop", "A question", author="ann")
    sandbox.comment("acme/shop", 1, "An answer", author="ann")

    payload = last(sandbox, "issue_comment")
    models.WebhookIssueCommentCreated.model_validate(payload)
    assert payload["organization"]["login"] == "acme"
    assert "pull_request" not in payload["issue"]


def test_a_repository_without_the_app_stays_silent(sandbox: Sandbox) -> None:
    sandbox.create_repository("ann/other", {"a": "1"})
    before = webhook_names(sandbox)

    sandbox.commit("ann/other", "main", {"a": "2"}, "Two", author="ann")

    assert webhook_names(sandbox) == before


def test_a_push_says_what_it_changed(sandbox: Sandbox) -> None:
    sandbox.commit(SHOP, "more", {"README.md": None, "a.sql": "1"}, "Move things", author="wim")

    commit = last(sandbox, "push")["commits"][0]
    assert (commit["added"], commit["removed"], commit["modified"]) == (["a.sql"], ["README.md"], [])
    assert commit["author"]["username"] == "wim"


def test_a_forced_push_says_so(sandbox: Sandbox) -> None:
    sandbox.force_push(SHOP, "more", Change({"b.sql": "1"}, "Start again", "wim"))

    assert last(sandbox, "push")["forced"] is True


def test_a_deleted_branch_is_a_push_to_nothing(sandbox: Sandbox) -> None:
    sandbox.delete_branch(SHOP, "more", author="wim")

    payload = last(sandbox, "push")
    assert (payload["deleted"], payload["after"], payload["head_commit"]) == (True, "0" * 40, None)


def test_a_push_to_a_fork_tells_the_base_repository_only(sandbox: Sandbox) -> None:
    fork = sandbox.fork(SHOP, "rea")
    sandbox.commit(fork, "idea", {"a.sql": "1"}, "Idea", author="rea")
    number = sandbox.open_pull_request(SHOP, "rea:idea", "main", "Idea", author="rea")
    before = webhook_names(sandbox)

    sha = sandbox.commit(fork, "idea", {"a.sql": "2"}, "Better idea", author="rea")

    assert webhook_names(sandbox) == [*before, "pull_request.synchronize"]
    payload = last(sandbox, "pull_request")
    assert (payload["number"], payload["after"]) == (number, sha)
    assert payload["pull_request"]["head"]["repo"]["full_name"] == fork


def test_a_merge_is_told_as_closed_and_merged_then_as_a_push(sandbox: Sandbox, number: int) -> None:
    before = webhook_names(sandbox)

    sha = sandbox.merge(SHOP, number, author="wim")

    assert webhook_names(sandbox) == [*before, "pull_request.closed", "push"]
    shape = last(sandbox, "pull_request")["pull_request"]
    assert (shape["merged"], shape["merge_commit_sha"], shape["merged_by"]["login"]) == (True, sha, "wim")


def test_a_comment_s_webhook_carries_no_head(sandbox: Sandbox, number: int) -> None:
    sandbox.comment(SHOP, number, "/plan", author="wim")

    payload = json.dumps(last(sandbox, "issue_comment"))
    assert sandbox.pull_request(SHOP, number).head_sha not in payload


def test_a_button_s_webhook_names_the_button_and_who_pressed_it(
    sandbox: Sandbox, number: int, api: httpx.Client
) -> None:
    button = {"label": "Apply", "description": "Apply the plan", "identifier": "apply"}
    body = {"name": "plan", "head_sha": sandbox.head(SHOP, "more"), "conclusion": "success", "actions": [button]}
    run = api.post("/check-runs", json=body).json()["id"]

    sandbox.click(SHOP, run, "apply", author="wim")

    payload = last(sandbox, "check_run")
    assert (payload["action"], payload["requested_action"]) == ("requested_action", {"identifier": "apply"})
    assert payload["sender"]["login"] == "wim"
    assert [pull["number"] for pull in payload["check_run"]["pull_requests"]] == [number]
