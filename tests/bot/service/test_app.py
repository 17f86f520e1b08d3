"""The doors: what is let in, what is stored, what is answered."""

from __future__ import annotations

import asyncio
import hmac
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.events import InvalidDelivery
from mergeplan.bot.github.events import read_delivery, sign_body
from mergeplan.bot.github.gateway import GitHub
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.records import PullState
from mergeplan.bot.service.app import create_app
from mergeplan.bot.settings import Settings
from tests.bot.conftest import COLUMN, SECRET, SHOP, Bench, until


def send(
    bench: Bench, body: bytes, event: str = "push", guid: str = "g-1", secret: str | None = SECRET
) -> httpx.Response:
    headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": guid}
    if secret is not None:
        headers["X-Hub-Signature-256"] = sign_body(secret, body)
    return httpx.post(f"{bench.url}/webhook", content=body, headers=headers)


def number_of(bench: Bench, metric: str) -> float:
    lines = httpx.get(f"{bench.url}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(metric))


def push_payload(ref: str = "refs/heads/none") -> bytes:
    return json.dumps({"ref": ref, "after": "0" * 40, "repository": {"full_name": SHOP}}).encode()


@pytest.mark.parametrize("secret", [None, "another", ""])
def test_a_missing_or_wrong_signature_gets_401_and_leaves_nothing(
    bench: Bench, secret: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 1: nothing of the body is parsed, stored or logged."""
    body = b'{"planted": "do-not-log-me"'  # no JSON either: who reads it answers 400
    headers = {} if secret is None else {"X-Hub-Signature-256": sign_body(secret, body) if secret else "sha256=zz"}
    answer = httpx.post(
        f"{bench.url}/webhook", content=body, headers={"X-GitHub-Delivery": "g", "X-GitHub-Event": "push", **headers}
    )

    assert answer.status_code == 401
    told = capsys.readouterr()
    kept = b"".join(path.read_bytes() for path in bench.settings.home.glob("bot.db*"))
    assert b"do-not-log-me" not in kept + (told.out + told.err + answer.text).encode()


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behaviour 1: by the one function of the standard library that is made for it."""
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    headers = {"X-Hub-Signature-256": "sha256=guess"}

    assert read_delivery(headers, b"{}", SECRET) == InvalidDelivery(401, "the signature is missing or wrong")
    assert compared == [b"sha256=guess"]


def test_the_same_delivery_twice_runs_once(bench: Bench) -> None:
    """Behaviour 2: also at once; both get 2xx."""
    answers: list[int] = []
    body = push_payload("refs/heads/main")
    threads = [threading.Thread(target=lambda: answers.append(send(bench, body).status_code)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [202] * 5
    assert len([new for new in bench.context.inbox.deliveries.news(f"{SHOP}@prod", 0) if new.kind == "push"]) == 1


def test_the_answer_needs_nothing_but_the_database(tmp_path: Path) -> None:
    """Behaviour 16: no GitHub, no git, no planner and no worker, and still 202 with the job stored for good."""
    settings = Settings(webhook_secret=SecretStr(SECRET), home=tmp_path, github_api_url="http://127.0.0.1:9")
    context = BotContext(settings, Inbox(settings.database_url), GitHub(settings), "nobody")
    body = push_payload("refs/heads/main")
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "g", "X-Hub-Signature-256": sign_body(SECRET, body)}

    async def post() -> httpx.Response:
        door = httpx.ASGITransport(create_app(context))
        async with httpx.AsyncClient(transport=door, base_url="http://bot") as client:
            return await client.post("/webhook", content=body, headers=headers)

    answer = asyncio.run(post())
    context.inbox.close()

    assert answer.status_code == 202
    with closing(Inbox(settings.database_url)) as after_a_crash:
        assert [new.kind for new in after_a_crash.deliveries.news(f"{SHOP}@prod", 0)] == ["push"]
        assert after_a_crash.queue.claim("another") is not None


def test_the_answer_does_not_wait_for_the_work(bench: Bench) -> None:
    """Behaviour 16: while a run goes on, and GitHub answers nothing, the next delivery is taken in."""
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    until(lambda: bench.calls("plan", "pr_1"), what="the run")
    bench.github.faults.fail("*", ".*", status=500, times=1000)
    answer = send(bench, push_payload("refs/heads/main"))

    assert answer.status_code == 202
    assert bench.record(number).state is PullState.PLANNING
    assert bench.context.inbox.deliveries.news(f"{SHOP}@prod", 0)[-1].kind == "push"
    bench.github.faults.clear()
    bench.knobs()


@pytest.mark.parametrize(
    ("event", "body", "status"),
    [
        ("push", b"not json", 400),
        ("push", b"[1]", 400),
        ("push", b"[" * 100_000, 400),
        ("push", b"{}", 400),
        ("pull_request", b'{"action": "opened", "repository": {"full_name": "../../x"}}', 400),
        ("unheard_of", b"{}", 202),
        ("pull_request", b'{"action": "dances"}', 202),
    ],
)
def test_a_poison_event_is_answered_and_the_next_one_is_handled(
    bench: Bench, event: str, body: bytes, status: int
) -> None:
    """Behaviour 28."""
    counted = 'mergeplan_deliveries_total{result="' + ("refused" if status == 400 else "ignored") + '"}'
    before = number_of(bench, counted)

    assert send(bench, body, event).status_code == status
    assert number_of(bench, counted) == before + 1
    assert send(bench, push_payload(), guid="g-2").text == "accepted\n"


def test_a_body_larger_than_github_sends_is_refused_unread(bench: Bench) -> None:
    """Behaviour 28: 25 MB is GitHub's limit."""
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "g", "X-Hub-Signature-256": "sha256=" + "0" * 64}

    def parts() -> Iterator[bytes]:
        for _ in range(27):
            yield b"x" * 1024 * 1024

    try:
        status = httpx.post(f"{bench.url}/webhook", content=parts(), headers=headers, timeout=120).status_code
    except httpx.TransportError:
        status = 413  # the connection was closed on us before we had sent it all
    assert status == 413


def test_an_unknown_repository_is_set_aside(bench: Bench) -> None:
    """Behaviour 28: a signed event of a repository that the App is not installed on does not stop the others."""
    body = json.dumps({"ref": "refs/heads/main", "after": "0" * 40, "repository": {"full_name": "no/body"}}).encode()
    assert send(bench, body).status_code == 202
    bench.idle()

    number = bench.open(COLUMN)
    bench.idle()
    assert bench.plan(number)


def test_health_readiness_and_metrics(bench: Bench) -> None:
    """Behaviour 42."""
    assert httpx.get(f"{bench.url}/healthz").status_code == 200
    assert httpx.get(f"{bench.url}/readyz").text == "ready\nisolation: required\nspark: confined\n"
    numbers = httpx.get(f"{bench.url}/metrics").text
    for name in ("mergeplan_queue", "mergeplan_queue_age_seconds", "mergeplan_runs_total", "mergeplan_github_budget"):
        assert name in numbers


def test_a_home_that_cannot_be_written_is_said(bench: Bench) -> None:
    """Behaviour 42: a full or missing disk is a reason not to be ready, in words."""
    away = bench.settings.home.rename(bench.folder / "away")
    answer = httpx.get(f"{bench.url}/readyz")
    away.rename(bench.settings.home)

    assert answer.status_code == 503
    assert answer.text.startswith("the home folder cannot be written: ")
    assert httpx.get(f"{bench.url}/readyz").status_code == 200


def test_numbers_are_shown_while_the_database_does_not_answer(bench: Bench) -> None:
    """Without them the alert on webhooks that were not stored stays silent, and another says that no service runs."""
    bench.worker.stop()
    bench.context.closing.clear()
    (bench.settings.home / "bot.db").write_bytes(b"no database" * 1000)
    answer, ready = httpx.get(f"{bench.url}/metrics"), httpx.get(f"{bench.url}/readyz")

    assert ready.status_code == 503 and "is damaged" in ready.text
    assert answer.status_code == 200
    assert 'mergeplan_deliveries_total{result="not_stored"}' in answer.text
    assert "mergeplan_queue NaN" in answer.text


def test_a_locked_database_loses_nothing(bench: Bench) -> None:
    """Behaviour 16: what is sent while somebody else holds the database is stored when it is free."""
    answers: list[int] = []
    sender = threading.Thread(target=lambda: answers.append(send(bench, push_payload("refs/heads/main")).status_code))
    with closing(sqlite3.connect(bench.settings.home / "bot.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        sender.start()
        assert httpx.get(f"{bench.url}/healthz").status_code == 200
        other.execute("ROLLBACK")
    sender.join()

    assert answers == [202]
    assert bench.context.inbox.deliveries.news(f"{SHOP}@prod", 0)[-1].kind == "push"
