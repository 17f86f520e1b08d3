"""Headers and bytes -> an event, or why not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mergeplan.bot.forge.events import Event, Ignored, InvalidDelivery, Pressed, WrittenDescription
from mergeplan.bot.github.events import read_delivery, sign_body
from mergeplan.bot.records import Press
from mergeplan.bot.report.comment import comment_digest

REPOSITORY = {"full_name": "ann/shop"}
SECRET = "a-secret"  # noqa: S105 - of this test


def deliver(name: str, payload: dict[str, Any], **changes: str) -> Event | Ignored | InvalidDelivery:
    body = json.dumps(payload).encode()
    headers = {"X-GitHub-Event": name, "X-GitHub-Delivery": "g-1", "X-Hub-Signature-256": sign_body(SECRET, body)}
    return read_delivery({**headers, **changes}, body, SECRET)


def comment(**changes: Any) -> dict[str, Any]:
    said = {"id": 5, "user": {"login": "wim", "type": "User"}, "body": "/plan", "created_at": "2026-01-01T00:00:00Z"}
    issue = {"number": 7, "pull_request": {"url": "x"}}
    return {"action": "created", "repository": REPOSITORY, "issue": issue, "comment": {**said, **changes}}


def test_a_push_to_a_branch_is_an_event() -> None:
    """Its branch and head are told."""
    read = deliver("push", {"ref": "refs/heads/main", "after": "a" * 40, "repository": REPOSITORY})

    assert isinstance(read, Event)
    assert (read.repository, read.branch, read.head, read.number) == ("ann/shop", "main", "a" * 40, 0)


def test_a_comment_on_a_pull_request_is_an_event() -> None:
    """Who said what, and when."""
    read = deliver("issue_comment", comment())

    assert isinstance(read, Event)
    assert read.comment is not None
    assert (read.number, read.comment.author, read.comment.body) == (7, "wim", "/plan")


@pytest.mark.parametrize(
    "payload",
    [
        {**comment(), "action": "edited"},
        {**comment(), "issue": {"number": 7}},
        comment(user={"login": "dependabot[bot]", "type": "Bot"}),
    ],
)
def test_edits_issues_and_bots_are_ignored(payload: dict[str, Any]) -> None:
    """Behaviours 28, 36."""
    assert isinstance(deliver("issue_comment", payload), Ignored)


BOX = "- [{}] `/plan`: plans again <!-- plan@" + "0" * 40 + " -->"


def edit(before: str = BOX.format(" "), after: str = BOX.format("x"), **changes: Any) -> dict[str, Any]:
    """An edit of what looks like a plan comment, by ann."""
    text = "<!-- mergeplan:plan -->\n{}\n"
    written = comment(body=text.format(after), updated_at="2026-01-01T00:00:09Z")
    payload = {**written, "action": "edited", "changes": {"body": {"from": text.format(before)}}}
    return {**payload, "sender": {"login": "ann", "type": "User"}, **changes}


def press_payload(**changes: Any) -> dict[str, Any]:
    """A press of a button on a check of ours, by ann."""
    run = {"id": 9, "head_sha": "a" * 40, "external_id": "mergeplan:7:plan", "pull_requests": []}
    sender, button = {"login": "ann", "type": "User"}, {"identifier": "plan@1a2b3c4"}
    payload = {"action": "requested_action", "repository": REPOSITORY, "sender": sender, "requested_action": button}
    return {**payload, "check_run": {**run, **changes.pop("run", {})}, **changes}


def test_a_tick_and_a_press_are_events_of_who_did_it() -> None:
    """Behaviour 36: a check's key names the pull request, where GitHub itself names none."""
    tick, press = deliver("issue_comment", edit()), deliver("check_run", press_payload())

    assert isinstance(tick, Event)
    read = comment_digest(f"<!-- mergeplan:plan -->\n{BOX.format(' ')}\n")
    assert tick.pressed == Pressed("ann", Press((BOX.format(" "),)), comment_id=5, at="2026-01-01T00:00:09Z", read=read)
    assert isinstance(press, Event)
    assert press.pressed == Pressed("ann", Press(("plan@1a2b3c4",), "a" * 40), check_id=9)
    assert (tick.number, press.number) == (7, 7)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("issue_comment", edit(sender={"login": "renovate[bot]", "type": "Bot"})),
        ("issue_comment", edit(sender=None)),
        ("issue_comment", edit(before=BOX.format("x"), after=BOX.format(" "))),
        ("issue_comment", edit(before="")),
        ("issue_comment", edit(changes={})),
        ("issue_comment", edit(after="\n".join([BOX.format("x")] * 21), before="\n".join([BOX.format(" ")] * 21))),
        ("check_run", press_payload(sender={"login": "renovate[bot]", "type": "Bot"})),
        ("check_run", press_payload(run={"external_id": None})),
        ("check_run", press_payload(run={"external_id": "mergeplan:9999999999:plan"})),
        ("check_run", press_payload(requested_action={"identifier": "x" * 21})),
    ],
)
def test_bots_and_what_is_none_of_ours_press_nothing(name: str, payload: dict[str, Any]) -> None:
    """Behaviours 28, 36: an untick, an edit that GitHub does not describe, a key that is not ours."""
    assert isinstance(deliver(name, payload), Ignored)


def test_a_comment_of_an_account_that_is_gone_is_ignored() -> None:
    """Behaviour 28: `user` is null, and nobody's permission could be asked for."""
    read = deliver("issue_comment", comment(user=None))

    assert read == Ignored("g-1", "its author has no account any more")


def test_a_pull_request_of_an_account_that_is_gone_is_an_event_like_any_other() -> None:
    """Who opened it and who sent it decide nothing here."""
    pull = {"number": 7, "user": None, "base": {"ref": "main"}, "head": {"sha": "a" * 40}}
    payload = {"action": "synchronize", "repository": REPOSITORY, "pull_request": pull, "sender": None}
    read = deliver("pull_request", payload)

    assert isinstance(read, Event)
    assert (read.kind, read.number) == ("pull_request.synchronize", 7)


WIM, BOT = {"login": "wim", "type": "User"}, {"login": "dependabot[bot]", "type": "Bot"}
FROM_OLD = {"changes": {"body": {"from": "old"}}}


@pytest.mark.parametrize(
    ("payload", "before"),
    [
        ({"action": "opened", "sender": WIM}, ""),
        ({"action": "edited", "sender": WIM, **FROM_OLD}, "old"),
        ({"action": "edited", "sender": WIM, "changes": {"title": {"from": "old"}}}, None),
        ({"action": "edited", "sender": BOT, **FROM_OLD}, None),
        ({"action": "reopened", "sender": WIM}, None),
        ({"action": "edited", "sender": None, **FROM_OLD}, None),
    ],
)
def test_a_description_is_of_who_sent_it_and_not_of_the_author(payload: dict[str, Any], before: str | None) -> None:
    pull = {"number": 7, "user": {"login": "rea"}, "base": {"ref": "main"}, "head": {"sha": "a" * 40}, "body": "new"}
    at = {"updated_at": "2026-01-01T00:00:00Z"}
    read = deliver("pull_request", {"repository": REPOSITORY, "pull_request": {**pull, **at}, **payload})

    assert isinstance(read, Event)
    written = None if before is None else WrittenDescription("wim", "new", before, at["updated_at"])
    assert read.description == written


@pytest.mark.parametrize(("label", "name"), [({"name": "no-plan"}, "no-plan"), (None, "")])
def test_a_label_that_comes_or_goes_names_no_head(label: object, name: str) -> None:
    """Late or out of order it supersedes no run; one that is gone from the repository has no name."""
    pull = {"number": 7, "base": {"ref": "main"}, "head": {"sha": "a" * 40}}
    read = deliver(
        "pull_request", {"action": "unlabeled", "repository": REPOSITORY, "pull_request": pull, "label": label}
    )

    assert isinstance(read, Event)
    assert (read.kind, read.number, read.head, read.label) == ("pull_request.unlabeled", 7, "", name)


@pytest.mark.parametrize("value", ["", "sha256=", "sha1=abc", "sha256=" + "0" * 64, "ünicode"])
def test_a_wrong_signature_is_refused_before_anything_is_read(value: str) -> None:
    """Behaviour 1."""
    read = deliver("push", {}, **{"X-Hub-Signature-256": value})

    assert read == InvalidDelivery(401, "the signature is missing or wrong")


def test_an_empty_secret_is_never_accepted() -> None:
    """Behaviour 1: not even with the signature that it would give."""
    with pytest.raises(ValueError, match="secret"):
        read_delivery({"X-Hub-Signature-256": sign_body("", b"{}")}, b"{}", "")


@pytest.mark.parametrize("name", ["../x", "a/b/c", "a b/c", "-", "a/..", ""])
def test_a_repositorys_name_has_one_validator(name: str) -> None:
    """Behaviour 7: nothing odd gets in at the door."""
    payload = {"ref": "refs/heads/main", "after": "a" * 40, "repository": {"full_name": name}}

    assert isinstance(deliver("push", payload), InvalidDelivery)
