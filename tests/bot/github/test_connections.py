"""One client serves many threads, and follows a repository that was renamed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from github.Requester import HTTPRequestsConnectionClass

from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.github.gateway import GitHub
from mergeplan.bot.github.patience import Pause, call_patiently
from mergeplan_sandbox.gate import Gate
from tests.bot.conftest import COLUMN, SHOP, Bench

BETWEEN_SECONDS = 20.0


@dataclass
class Hold:
    """Holds a request between its storing and its sending until the request of another thread has ended."""

    path: str = ""
    stored: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


@pytest.fixture(name="gate")
def _gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hold]:
    gate, request = Hold(), HTTPRequestsConnectionClass.request

    def hold(connection: Any, verb: str, url: str, *rest: Any) -> None:
        request(connection, verb, url, *rest)
        if gate.path and url.endswith(gate.path):
            gate.stored.set()
            assert gate.ended.wait(BETWEEN_SECONDS)

    monkeypatch.setattr(HTTPRequestsConnectionClass, "request", hold)
    yield gate
    gate.path = ""


def test_a_pull_request_is_never_read_as_another_one(bench: Bench, gate: Hold) -> None:
    first, second = bench.open(COLUMN, "first"), bench.open(COLUMN, "second")
    bench.idle()
    gateway = GitHub(bench.settings).repository(SHOP)  # nothing is cached yet
    gate.path = f"/pulls/{first}"
    with ThreadPoolExecutor() as pool:
        first_call = pool.submit(gateway.pull, first)
        assert gate.stored.wait(BETWEEN_SECONDS)
        other = gateway.pull(second)
        gate.ended.set()

        assert (first_call.result().number, other.number) == (first, second)


def test_a_comment_of_one_thread_is_posted_once_beside_another(bench: Bench, gate: Hold) -> None:
    first, second = bench.open(COLUMN, "first"), bench.open(COLUMN, "second")
    bench.idle()
    gateway = GitHub(bench.settings).repository(SHOP)  # nothing is cached yet
    gate.path = f"/issues/{first}/comments"
    with ThreadPoolExecutor() as pool:
        repository = gateway._calls.repo
        first_call = pool.submit(repository.get_issue(first).create_comment, "for the first")
        assert gate.stored.wait(BETWEEN_SECONDS)
        repository.get_issue(second).create_comment("for the second")
        gate.ended.set()
        first_call.result()

    texts = {number: [comment.body for comment in bench.github.comments(SHOP, number)] for number in (first, second)}
    assert texts[first].count("for the first") == 1 and "for the second" not in texts[first]
    assert texts[second].count("for the second") == 1


@pytest.fixture(name="moved")
def _move(bench: Bench) -> Bench:
    """The shop under another name, which the bot does not know."""
    bench.github.faults.drop("*", times=100)
    bench.github.move_repository(SHOP, "ann/store")
    return bench


def test_a_list_by_an_earlier_name_is_asked_with_its_query(moved: Bench) -> None:
    numbers = [moved.github.state.next_id() for _ in range(2)]
    for number in numbers:
        moved.github.commit("ann/store", f"b{number}", COLUMN, "A change", author="wim")
    closed, opened = (
        moved.github.open_pull_request("ann/store", f"b{number}", "main", "A change", author="wim")
        for number in numbers
    )
    moved.github.close("ann/store", closed, author="wim")
    gateway = GitHub(moved.settings).repository(SHOP)

    assert [pull.number for pull in gateway.open_pulls()] == [opened]
    assert [pull.number for pull in gateway.list_closed_pulls()] == [closed]


def test_a_write_by_an_earlier_name_is_done(moved: Bench) -> None:
    moved.github.commit("ann/store", "change", COLUMN, "A change", author="wim")
    number = moved.github.open_pull_request("ann/store", "change", "main", "A change", author="wim")
    posted = GitHub(moved.settings).repository(SHOP).comments.write(number, "Hello", "<!-- mark -->")
    (comment,) = moved.github.comments("ann/store", number)

    assert posted.id == comment.id
    assert "Hello" in comment.body


def test_a_redirect_to_another_host_is_not_followed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would get the token."""
    monkeypatch.setattr(bench.github.state, "base_url", "http://localhost:1")
    bench.github.move_repository(SHOP, "ann/store")
    with pytest.raises(ForgeFailed, match="GitHub redirected to another host: http://localhost:1"):
        GitHub(bench.settings).repository(SHOP).open_pulls()


@pytest.mark.parametrize("verb", ["GET", "POST"])  # redirected by 301 and 307
def test_redirects_without_an_end_are_not_followed(bench: Bench, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    base_url = bench.github.state.base_url
    client = GitHub(bench.settings).owners.connect(SHOP).client
    monkeypatch.setattr(Gate, "_follow_move", lambda _gate, path: (path, f"{base_url}{path}/more"))
    with pytest.raises(ForgeFailed, match="GitHub redirected more than 3 times"):
        client.requester.requestJsonAndCheck(verb, f"/repos/{SHOP}")
    assert len([call for call in bench.github.calls if call.status in (301, 307)]) == 4


def test_a_proxys_page_in_place_of_an_answer_is_asked_for_again(bench: Bench) -> None:
    """It was kept as a repository without an address: nothing could be fetched until the service was restarted."""
    gateway = GitHub(bench.settings).repository(SHOP)
    bench.github.faults.lose_answer("GET", r"/repos/ann/shop$", status=200)

    assert gateway.clone_url.endswith("/ann/shop.git")
    assert bench.github.faults.pending_faults() == []


def test_an_answer_that_is_cut_is_asked_for_again() -> None:
    answers = iter(['{"items": [{"id": 1}', '{"items": []}'])

    assert call_patiently(Pause(), lambda: json.loads(next(answers))) == {"items": []}
