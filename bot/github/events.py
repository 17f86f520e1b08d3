"""A webhook's headers and bytes -> what happened, or why it is none of our business, or a refusal. Pure."""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from mergeplan.bot.forge.events import (
    COMES,
    GUID,
    MAX_BYTES,
    REPOSITORY,
    SHA,
    TOO_LARGE,
    Delivery,
    Event,
    Ignored,
    InvalidDelivery,
    Pressed,
    WrittenComment,
    WrittenDescription,
)
from mergeplan.bot.projects import label_of
from mergeplan.bot.records import Press
from mergeplan.bot.report.checks.keys import pull_of_key
from mergeplan.bot.report.comment import PLAN_MARKER, comment_digest
from mergeplan.bot.report.offers import IDENTIFIER_MOST, clear_boxes, find_ticks

OWNER = re.compile(r"[A-Za-z0-9_.-]{1,100}")
INSTALLATION_ACTIONS = COMES | {"deleted", "suspend", "removed"}
SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")
MOST_NUMBER, MOST_ID = 2**31 - 1, 2**63 - 1  # what the database's columns hold
LABEL_ACTIONS = frozenset({"labeled", "unlabeled"})
PULL_ACTIONS = LABEL_ACTIONS | {
    "opened",
    "reopened",
    "synchronize",
    "closed",
    "edited",
    "ready_for_review",
    "converted_to_draft",
}
BOXES_MOST = 20  # more than are ever shown
QUEUE_BRANCH = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-(\d{1,10})-[0-9a-f]{40,64}")
REVIEW_ACTIONS = frozenset({"submitted", "dismissed"})


WRONG_SIGNATURE = InvalidDelivery(401, "the signature is missing or wrong")
FORM = InvalidDelivery(
    415, "the webhook sends a form: set its content type to application/json, in the settings on GitHub"
)


def sign_body(secret: str, body: bytes) -> str:
    """Return the X-Hub-Signature-256 that GitHub would send."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def check_headers(headers: Mapping[str, str]) -> InvalidDelivery | None:
    """Return the reason to refuse a delivery by its headers alone; None if its body has to be read."""
    low = {key.lower(): value for key, value in headers.items()}
    if not SIGNATURE.fullmatch(low.get("x-hub-signature-256", "")):
        return WRONG_SIGNATURE
    length = low.get("content-length", "")
    return TOO_LARGE if length.isdigit() and int(length[:20]) > MAX_BYTES else None


def read_delivery(headers: Mapping[str, str], body: bytes, secret: str) -> Delivery:
    """Read a delivery; nothing of its body is parsed before its signature is verified."""
    low = {key.lower(): value for key, value in headers.items()}
    if not secret:
        raise ValueError("a webhook secret is required")
    if len(body) > MAX_BYTES:
        return TOO_LARGE
    signature_header = low.get("x-hub-signature-256", "")
    if not hmac.compare_digest(signature_header.encode("utf-8", "replace"), sign_body(secret, body).encode()):
        return WRONG_SIGNATURE
    guid, name = low.get("x-github-delivery", ""), low.get("x-github-event", "")
    if not GUID.fullmatch(guid) or not name:
        return InvalidDelivery(400, "the delivery has no id or no event name")
    if low.get("content-type", "").partition(";")[0].strip().lower() in FORMS:
        return FORM
    try:
        payload = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return InvalidDelivery(400, "the body is not JSON")
    if not isinstance(payload, dict):
        return InvalidDelivery(400, "the body is not a JSON object")
    return read_event(guid, name, payload)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def read_event(guid: str, name: str, payload: Mapping[str, Any]) -> Delivery:
    reader = READERS.get(name)
    if reader is None:
        return Ignored(guid, f"nothing to do for {name[:40]}")
    try:
        event = reader(guid, payload)
        if not isinstance(event, Event) or event.owner:
            return event
        repository_id = payload["repository"].get("id")
        return event if repository_id is None else replace(event, repository_id=_parse_number(repository_id, MOST_ID))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError, RecursionError):
        return InvalidDelivery(400, f"the {name} payload lacks what GitHub documents")


def _parse_repository(payload: Mapping[str, Any]) -> str:
    name = payload["repository"]["full_name"]
    if not REPOSITORY.fullmatch(name) or ".." in name:
        raise ValueError("not a repository's name")
    return str(name)


def _parse_sha(value: object) -> str:
    if not isinstance(value, str) or not SHA.fullmatch(value):
        raise ValueError("not a commit")
    return value


def _parse_number(value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
        raise ValueError("not a number that GitHub gives")
    return value


def _parse_moment(value: object) -> str:
    if not isinstance(value, str) or not MOMENT.fullmatch(value):
        raise ValueError("not a time")
    datetime.fromisoformat(value)
    return value


def _parse_text(value: object) -> str:
    """Return a text that every database takes: no half of a surrogate pair, no NUL."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("not a text")
    value.encode()  # UnicodeEncodeError is a ValueError
    return value


def _read_pull_request(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    action = _parse_text(payload["action"])
    if action not in PULL_ACTIONS:
        return Ignored(guid, f"pull_request.{action[:40]} changes nothing here")
    pull, kind = payload["pull_request"], f"pull_request.{action}"
    repository, number = _parse_repository(payload), _parse_number(pull["number"], MOST_NUMBER)
    if action in LABEL_ACTIONS:  # it names no head: a label ends no run, however late its webhook comes
        return Event(guid, kind, repository, number, label=_parse_text((payload.get("label") or {}).get("name", "")))
    branch, head = _parse_text(pull["base"]["ref"]), _parse_sha(pull["head"]["sha"])
    return Event(guid, kind, repository, number, branch, head, description=_read_description(payload))


def _read_description(payload: Mapping[str, Any]) -> WrittenDescription | None:
    """Parse a new or edited description; None for a bot's, and where another text was edited."""
    change, pull = payload.get("changes", {}).get("body"), payload["pull_request"]
    author = _sender_login({"sender": payload.get("sender")})
    if not author or not (payload["action"] == "opened" or (payload["action"] == "edited" and change)):
        return None
    try:
        body, before = _parse_text(pull.get("body") or ""), _parse_text((change or {}).get("from") or "")
        return WrittenDescription(author, body, before, _parse_moment(pull["updated_at"]))
    except (KeyError, ValueError):
        return None  # what it asks for otherwise counts all the same


def _read_review(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    """Read a written, edited or dismissed review; its content is read from GitHub when it counts."""
    action = _parse_text(payload["action"])
    if action not in REVIEW_ACTIONS:
        return Ignored(guid, f"pull_request_review.{action[:40]} changes nothing here")
    number = _parse_number(payload["pull_request"]["number"], MOST_NUMBER)
    return Event(guid, f"pull_request_review.{action}", _parse_repository(payload), number)


def _read_merge_group(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    """Read a group that the merge queue made or dropped; its branch names its last pull request."""
    action, group = _parse_text(payload["action"]), payload["merge_group"]
    if action not in ("checks_requested", "destroyed"):
        return Ignored(guid, f"merge_group.{action[:40]} changes nothing here")
    named = QUEUE_BRANCH.fullmatch(_parse_text(group["head_ref"]))
    if named is None:
        return Ignored(guid, "a merge group of no pull request")
    number = _parse_number(int(named[1]), MOST_NUMBER)
    return Event(guid, f"merge_group.{action}", _parse_repository(payload), number, head=_parse_sha(group["head_sha"]))


def _read_issue_comment(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    action, issue, comment = _parse_text(payload["action"]), payload["issue"], payload["comment"]
    if action == "edited" and issue.get("pull_request") and PLAN_MARKER.match(_parse_text(comment["body"] or "")):
        return _read_ticks(guid, payload)
    if action != "created":
        return Ignored(guid, "edited and deleted comments run nothing")
    if not issue.get("pull_request"):
        return Ignored(guid, "a comment on a plain issue")
    author = comment["user"]
    if author is None:
        return Ignored(guid, "its author has no account any more")
    if author.get("type") == "Bot":
        return Ignored(guid, "bots give no commands")
    at = _parse_moment(comment["created_at"])
    if comment.get("updated_at", at) != at:
        return Ignored(guid, "it was edited before it was delivered")
    written = WrittenComment(
        _parse_number(comment["id"], MOST_ID), _parse_text(author["login"]), _parse_text(comment["body"] or ""), at
    )
    number = _parse_number(issue["number"], MOST_NUMBER)
    return Event(guid, "issue_comment.created", _parse_repository(payload), number, comment=written)


def _read_ticks(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    """Parse ticked boxes of a comment that looks like the bot's plan comment; its record shows whether it is."""
    comment, old_body = payload["comment"], _parse_text(payload.get("changes", {}).get("body", {}).get("from", ""))
    boxes = find_ticks(old_body, _parse_text(comment["body"]))
    if not boxes or len(boxes) > BOXES_MOST:
        return Ignored(guid, "an edit that is no tick of a box runs nothing")
    author = _sender_login(payload)
    if not author:
        return Ignored(guid, "bots tick nothing")
    at, number = _parse_moment(comment["updated_at"]), _parse_number(payload["issue"]["number"], MOST_NUMBER)
    read, marker = comment_digest(clear_boxes(old_body)), PLAN_MARKER.match(comment["body"])
    label = label_of(marker[1]) if marker else None
    pressed = Pressed(author, Press(boxes), comment_id=_parse_number(comment["id"], MOST_ID), at=at, read=read)
    return Event(guid, "issue_comment.edited", _parse_repository(payload), number, pressed=pressed, project=label)


def _read_button(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    """Parse a pressed button of a check, whose key names the pull request; its record shows whether it is the bot's.

    GitHub itself names none for a pull request of a fork, nor for a merge's commit.
    """
    run, identifier = payload["check_run"], _parse_text(payload["requested_action"]["identifier"])
    (number, label), author = pull_of_key(_parse_text(run.get("external_id") or "")), _sender_login(payload)
    if not number or number > MOST_NUMBER or len(identifier) > IDENTIFIER_MOST:
        return Ignored(guid, "an unknown button")
    if not author:
        return Ignored(guid, "bots press nothing")
    head = _parse_sha(run["head_sha"])
    pressed = Pressed(author, Press((identifier,), head), check_id=_parse_number(run["id"], MOST_ID))
    name = _parse_repository(payload)
    return Event(guid, "check_run.requested_action", name, number, head=head, pressed=pressed, project=label)


def _sender_login(payload: Mapping[str, Any]) -> str:
    """Return the person who did it; '' for a bot, and for an account that is deleted."""
    sender = payload["sender"] or {"type": "Bot"}
    return "" if sender.get("type") == "Bot" else _parse_text(sender["login"])


def _read_push(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    ref = _parse_text(payload["ref"])
    if payload.get("deleted") or not ref.startswith("refs/heads/"):
        return Ignored(guid, "not a push to a branch")
    return Event(
        guid,
        "push",
        _parse_repository(payload),
        branch=ref.removeprefix("refs/heads/"),
        head=_parse_sha(payload["after"]),
    )


def _read_check(guid: str, payload: Mapping[str, Any], noun: str) -> Event | Ignored:
    action = _parse_text(payload["action"])
    if noun == "check_run" and action == "requested_action":
        return _read_button(guid, payload)
    if action != "rerequested":
        return Ignored(guid, f"{noun}.{action[:40]} asks nothing")
    check = payload[noun]
    head = _parse_sha(check["head_sha"])
    pulls = check.get("pull_requests") or []
    check_pull, label = pull_of_key(_parse_text(check.get("external_id") or ""))
    number = _parse_number(pulls[0]["number"] if pulls else check_pull, MOST_NUMBER) if pulls or check_pull else 0
    about = label if check_pull else None  # a whole suite is of every project
    return Event(guid, f"{noun}.rerequested", _parse_repository(payload), number, head=head, again=True, project=about)


def _read_installation(guid: str, payload: Mapping[str, Any]) -> Event | Ignored:
    action = _parse_text(payload["action"])
    if action not in INSTALLATION_ACTIONS:
        return Ignored(guid, f"installation.{action[:40]} changes nothing here")
    account = payload["installation"]["account"] or {}
    owner = account.get("login") or account.get("slug")
    if not isinstance(owner, str) or not OWNER.fullmatch(owner):
        raise ValueError("not an account's name")
    added = payload.get("repositories_added") or payload.get("repositories") or []
    names = tuple(_parse_repository({"repository": repository}) for repository in added) if action in COMES else ()
    numbers = tuple(_parse_number(repository["id"], MOST_ID) for repository in added) if action in COMES else ()
    return Event(guid, f"installation.{action}", "", owner=owner, repositories=names, numbers=numbers)


READERS = {
    "ping": lambda guid, _: Ignored(guid, "pong"),
    "pull_request": _read_pull_request,
    "pull_request_review": _read_review,
    "merge_group": _read_merge_group,
    "issue_comment": _read_issue_comment,
    "push": _read_push,
    "check_run": lambda guid, payload: _read_check(guid, payload, "check_run"),
    "check_suite": lambda guid, payload: _read_check(guid, payload, "check_suite"),
    "installation": _read_installation,
    "installation_repositories": _read_installation,
}
