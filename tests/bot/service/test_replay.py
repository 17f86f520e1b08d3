"""A stored webhook: what the service would do with it, and the same sent to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mergeplan.bot.service.replay import Stored, post_delivery, read_stored, rehearse_delivery
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import RequestError
from tests.bot.conftest import COLUMN, SHOP, Bench, read_guids
from tests.bot.github.test_events import press_payload


def comment(number: int, text: str, author: str = "wim") -> dict[str, Any]:
    at = "2026-01-01T00:00:00Z"
    said = {"id": 5, "user": {"login": author, "type": "User"}, "body": text, "created_at": at, "updated_at": at}
    issue = {"number": number, "pull_request": {"url": "u"}}
    return {"action": "created", "repository": {"full_name": SHOP}, "issue": issue, "comment": said}


def open_payload(number: int, head: str) -> dict[str, Any]:
    pull = {"number": number, "base": {"ref": "main"}, "head": {"sha": head}}
    return {"action": "opened", "repository": {"full_name": SHOP}, "pull_request": pull}


def test_a_rehearsal_says_who_pressed_what_and_that_an_unknown_check_is_nobodys(bench: Bench) -> None:
    bench.open(COLUMN)
    bench.idle()
    record = bench.record(1)
    (check,) = [check for check in record.checks if check.name == "mergeplan / plan"]
    ours = {"id": check.id, "head_sha": check.sha, "external_id": "mergeplan:1:plan"}
    lines, _ = rehearse_delivery(bench.settings, Stored("g-9", "check_run", press_payload(run=ours)))
    unknown, ok = rehearse_delivery(bench.settings, Stored("g-9", "check_run", press_payload(run={**ours, "id": 1})))

    assert "It presses `plan@1a2b3c4` by ann, whose permission would be read then." in lines
    assert ok
    assert "It would make due: nothing." in unknown


def test_a_rehearsal_says_what_would_be_done_and_does_nothing(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    before = read_guids(bench.context.inbox)
    lines, ok = rehearse_delivery(
        bench.settings, Stored("g-9", "issue_comment", comment(number, "/plan\n/categorise x y"))
    )
    pull, _ = rehearse_delivery(bench.settings, Stored("g-9", "pull_request", open_payload(number, bench.head(number))))

    assert ok
    assert lines[:3] == [
        f"issue_comment.created of {SHOP}#{number}.",
        f"It would make due: {SHOP}#{number}.",
        "It holds the command `/plan` by wim, whose permission would be read then.",
    ]
    assert "categorise" in lines[3]
    assert pull[-1] == f"Then nothing: {SHOP}#{number} is planned, as it should be."
    assert read_guids(bench.context.inbox) == before
    assert bench.context.inbox.queue.is_idle()


def test_what_is_sent_is_taken_in_once(bench: Bench) -> None:
    payload = {"ref": "refs/heads/main", "after": "0" * 40, "repository": {"full_name": SHOP}}
    stored = Stored("g-7", "push", payload)
    first, second = (post_delivery(bench.settings, stored, f"{bench.url}/webhook") for _ in range(2))
    lines, _ = rehearse_delivery(bench.settings, stored)

    assert (first[0].partition("answered ")[2], first[1]) == ("202: accepted", True)
    assert second[0].endswith("202: known already")
    assert lines[-1] == "The delivery g-7 is known already: nothing would be done."


def test_a_delivery_as_github_lists_it_names_its_event_and_id(bench: Bench, tmp_path: Path) -> None:
    bench.open(COLUMN)
    bench.idle()
    delivery = next(delivery for delivery in bench.github.deliveries if delivery.event == "pull_request")
    listed = {"guid": delivery.guid, "event": delivery.event, "request": {"payload": delivery.payload}}
    (tmp_path / "d.json").write_text(json.dumps(listed))

    assert read_stored(tmp_path / "d.json", "", "") == Stored(delivery.guid, "pull_request", delivery.payload)


def test_where_nothing_is_known_yet_nothing_is_made(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    lines, ok = rehearse_delivery(settings, Stored("g", "pull_request", open_payload(7, "a" * 40)))

    assert (ok, lines[1]) == (True, f"It would make due: {SHOP}#7.")
    assert "set the variables of the App, or a token" in lines[2]
    assert not settings.home.exists()


@pytest.mark.parametrize(("text", "why"), [("no JSON", "as JSON"), ("[1]", "no JSON object"), ("{}", "which event")])
def test_a_file_that_is_no_delivery_is_refused_in_words(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(RequestError, match=why):
        read_stored(tmp_path / "d.json", "", "")


def test_what_would_be_refused_or_ignored_is_told(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)

    assert rehearse_delivery(settings, Stored("g", "push", {})) == (
        ["Refused with 400: the push payload lacks what GitHub documents."],
        False,
    )
    assert rehearse_delivery(settings, Stored("g", "star", {})) == (["Ignored: nothing to do for star."], True)


def test_a_rehearsal_knows_a_renamed_repository_and_stores_no_name(bench: Bench) -> None:
    bench.open(COLUMN)
    bench.idle()
    bench.github.faults.drop("*", times=100)
    bench.github.move_repository(SHOP, "ann/store")
    number = bench.github.state.repositories["ann/store"].id
    payload = open_payload(1, bench.record(1).head) | {"repository": {"full_name": "ann/store", "id": number}}
    lines, _ = rehearse_delivery(bench.settings, Stored("g-9", "pull_request", payload))
    other = payload | {"repository": {"full_name": SHOP, "id": number + 1}}

    assert f"It would make due: {SHOP}#1." in lines
    assert lines[-1] == f"Then nothing: {SHOP}#1 is planned, as it should be."
    assert rehearse_delivery(bench.settings, Stored("g-9", "pull_request", other))[0][-1].startswith("Refused with 503")
    assert bench.context.inbox.repositories.find(SHOP).name == SHOP
