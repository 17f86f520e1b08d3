"""The doors: what is let in, what is stored, what is answered."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import httpx
import pytest

from bot.events import signature
from bot.records import State
from tests.bot.conftest import COLUMN, SECRET, SHOP, Bench, until


def send(
    bench: Bench, body: bytes, event: str = "push", guid: str = "g-1", secret: str | None = SECRET
) -> httpx.Response:
    headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": guid}
    if secret is not None:
        headers["X-Hub-Signature-256"] = signature(secret, body)
    return httpx.post(f"{bench.url}/webhook", content=body, headers=headers)


def pushed(ref: str = "refs/heads/none") -> bytes:
    return json.dumps({"ref": ref, "after": "0" * 40, "repository": {"full_name": SHOP}}).encode()


@pytest.mark.parametrize("secret", [None, "another", ""])
def test_a_missing_or_wrong_signature_gets_401_and_leaves_nothing(
    bench: Bench, secret: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 1: nothing of the body is parsed, stored or logged."""
    body = b'{"planted": "do-not-log-me"}'
    headers = {} if secret is None else {"X-Hub-Signature-256": signature(secret, body) if secret else "sha256=zz"}
    answer = httpx.post(
        f"{bench.url}/webhook", content=body, headers={"X-GitHub-Delivery": "g", "X-GitHub-Event": "push", **headers}
    )

    assert answer.status_code == 401
    assert "do-not-log-me" not in capsys.readouterr().out
    assert bench.desk.inbox.news(f"{SHOP}@prod", 0)[-1].kind != "push"


def test_the_same_delivery_twice_runs_once(bench: Bench) -> None:
    """Behaviour 2: also at once; both get 2xx."""
    answers: list[int] = []
    body = pushed("refs/heads/main")
    threads = [threading.Thread(target=lambda: answers.append(send(bench, body).status_code)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [202] * 5
    assert len([each for each in bench.desk.inbox.news(f"{SHOP}@prod", 0) if each.kind == "push"]) == 1


def test_the_answer_does_not_wait_for_the_work(bench: Bench) -> None:
    """Behaviour 16: the job is recorded when the answer comes, and the answer comes while a run goes on."""
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    until(lambda: bench.calls("plan", "pr_1"), what="the run")
    answer = send(bench, pushed("refs/heads/main"))

    assert answer.status_code == 202
    assert bench.record(number).state is State.PLANNING
    assert bench.desk.inbox.news(f"{SHOP}@prod", 0)[-1].kind == "push"
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
    assert send(bench, body, event).status_code == status
    assert send(bench, pushed(), guid="g-2").status_code == 202


def test_a_body_larger_than_github_sends_is_refused_unread(bench: Bench) -> None:
    """Behaviour 28: 25 MB is GitHub's limit."""
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "g"}

    def parts() -> Iterator[bytes]:
        for _ in range(27):
            yield b"x" * 1024 * 1024

    try:
        status = httpx.post(f"{bench.url}/webhook", content=parts(), headers=headers, timeout=20).status_code
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
    assert httpx.get(f"{bench.url}/readyz").text == "ready\n"
    numbers = httpx.get(f"{bench.url}/metrics").text
    for name in ("mergeplan_queue", "mergeplan_queue_age_seconds", "mergeplan_runs_total", "mergeplan_github_budget"):
        assert name in numbers
