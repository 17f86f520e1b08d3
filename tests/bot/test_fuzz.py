"""Hundreds of signed payloads that GitHub never sends: each is answered and none leaves a trace."""

from __future__ import annotations

import copy
import json
import logging
import os
import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import httpx
import pytest

from mergeplan.bot.github.events import read_delivery, sign_body
from mergeplan.bot.service.connections import Limits
from mergeplan_sandbox.server import Sandbox
from tests.bot.conftest import SECRET, SHOP
from tests.bot.github.test_events import edit, press_payload
from tests.bot.service.test_connections import Door, _door  # noqa: F401 - the server, as a fixture

pytestmark = pytest.mark.sampled

PAYLOADS = int(os.environ.get("MERGEPLAN_PAYLOADS", "300"))
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**64, 1e308, "", " ", "x" * 3000, "../..", "a/b", "$(id)", "\u202e", "😀", [], {},
    [[]], {"login": None}, "0" * 40, "refs/heads/" + "y" * 300, "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00",
)  # fmt: skip
RAW = (b'"\\ud800"', b"1e999", b"-1e999", b"NaN", b"99999999999999999999", b'"\\u0000"', b"[" * 2000 + b"]" * 2000)


@pytest.fixture(name="github")
def _github() -> Iterator[Sandbox]:
    """A sandbox in which everything has happened once; it sends nowhere."""
    with Sandbox() as github:
        for login in ("ann", "wim"):
            github.add_user(login)
        github.create_repository(SHOP, {"a.sql": "SELECT 1"})
        github.set_permission(SHOP, "wim", "write")
        github.install_app(SHOP)
        github.commit(SHOP, "more", {"a.sql": "SELECT 2"}, "More", author="wim")
        number = github.open_pull_request(SHOP, "more", "main", "More", author="wim")
        github.comment(SHOP, number, "/plan", author="wim")
        github.comment(SHOP, number, "/categorize a breaking", author="ann")
        github.close(SHOP, number, author="wim")
        github.reopen(SHOP, number, author="wim")
        github.commit(SHOP, "more", {"a.sql": "SELECT 3"}, "More", author="wim")
        github.suspend_app("ann")
        github.suspend_app("ann", is_suspended=False)
        github.uninstall_app("ann")
        github.wait_idle()
        yield github


def samples(github: Sandbox) -> list[tuple[str, dict[str, Any]]]:
    """What the sandbox told, one of each event and action."""
    payloads = {(item.event, item.action): item.payload for item in github.deliveries}
    payloads |= {("issue_comment", "edited"): edit(), ("check_run", "requested_action"): press_payload()}
    return [(event, payload) for (event, _), payload in payloads.items()]


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at] * bool(at) + [path for key, element in inner for path in paths(element, (*at, key))]


def mutate(chance: random.Random, payload: dict[str, Any]) -> bytes:
    """A payload with one to three places changed, taken away, or made what no JSON writer makes."""
    changed, holes = copy.deepcopy(payload), []
    used = "action repository pull_request issue comment ref after installation repositories check_run sender changes"
    for _ in range(chance.randint(1, 3)):
        spots = paths({key: changed[key] for key in changed if key in used.split()}) or paths(changed)
        short = [path for path in spots if len(path) <= 3]
        *way, last = chance.choice(short)
        place: Any = changed
        for key in way:
            place = place[key]
        kind = chance.random()
        if kind < 0.2:
            del place[last]
        elif kind < 0.3:
            holes.append(chance.choice(RAW))
            place[last] = f"hole{len(holes) - 1}"
        else:
            place[last] = chance.choice(ODD)
    body = json.dumps(changed).encode()
    for index, raw in enumerate(holes):
        body = body.replace(f'"hole{index}"'.encode(), raw)
    return body[: chance.randrange(len(body))] if chance.random() < 0.03 else body


@pytest.mark.parametrize("door", [Limits()], indirect=True)
def test_odd_payloads_are_answered_and_leave_no_trace(
    door: Door, github: Sandbox, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 28."""
    chance, known, answers = random.Random(9), samples(github), []  # noqa: S311 - a seed, so that it can be done again
    with httpx.Client(base_url=door.url) as client, caplog.at_level(logging.WARNING):
        for index in range(PAYLOADS):
            event, payload = chance.choice(known)
            body = mutate(chance, payload)
            guid = f"odd-{index - index % 10 if chance.random() < 0.1 else index}"
            fields = {
                "X-GitHub-Event": event,
                "X-GitHub-Delivery": guid,
                "X-Hub-Signature-256": sign_body(SECRET, body),
            }
            answers.append(client.post("/webhook", content=body, headers=fields).status_code)

    assert set(answers) <= {202, 400}
    assert min(answers.count(202), answers.count(400)) > PAYLOADS / 10
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err + caplog.text
    assert door.post().status_code == 202


def test_each_odd_value_in_each_field_is_answered_in_a_text_that_can_be_sent(github: Sandbox) -> None:
    """Half of a surrogate pair as the action was a 500: the answer repeated it."""
    for event, payload in samples(github):
        fields = {"X-GitHub-Event": event, "X-GitHub-Delivery": "odd", "X-Hub-Signature-256": ""}
        for *way, last in (path for path in paths(payload) if len(path) <= 3):
            changed = copy.deepcopy(payload)
            place: Any = changed
            for key in way:
                place = place[key]
            place[last] = "hole"
            text = json.dumps(changed).encode()
            for raw in RAW:
                body = text.replace(b'"hole"', raw)
                answer = read_delivery(fields | {"X-Hub-Signature-256": sign_body(SECRET, body)}, body, SECRET)
                json.dumps(asdict(answer), ensure_ascii=False).encode()
