"""Clients that mean harm, or die half-way, against the real server by raw sockets."""

from __future__ import annotations

import json
import logging
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from mergeplan.bot.context import BotContext
from mergeplan.bot.github.events import sign_body
from mergeplan.bot.github.gateway import GitHub
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.service.app import create_app
from mergeplan.bot.service.connections import Limits, server_config
from mergeplan.bot.settings import Settings
from mergeplan_sandbox.server import QuickServer
from tests.bot.conftest import SECRET, SHOP, until

FORGED = "sha256=" + "0" * 64
QUICK = Limits(
    head_seconds=0.3, body_seconds=0.3, request_seconds=5.0, rest_seconds=0.3, connections=8, bodies=600_000, small=1000
)
PATIENT = Limits(bodies=600_000, small=1000)
PUSH = json.dumps({"ref": "refs/heads/none", "after": "0" * 40, "repository": {"full_name": SHOP}}).encode()


class Door:
    """The server with an inbox behind it, and no GitHub."""

    def __init__(self, home: Path, limits: Limits) -> None:
        settings = Settings(webhook_secret=SecretStr(SECRET), home=home, github_token=SecretStr("none"))
        self.context = BotContext(settings, Inbox(settings.database_url), GitHub(settings), "nobody")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = self._listening.getsockname()
        self.url = "http://{}:{}".format(*self.address)
        self.server = QuickServer(server_config(create_app(self.context, limits), "127.0.0.1", 0, limits))
        self._thread = threading.Thread(target=self.server.run, args=([self._listening],), daemon=True)
        self._thread.start()
        until(lambda: self.server.started, what="the server")

    def stop(self) -> None:
        self.server.end()
        self._thread.join(15)
        self.context.inbox.close()

    def post(self, body: bytes = PUSH, **headers: str) -> httpx.Response:
        webhook_headers = {
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": "g",
            "X-Hub-Signature-256": sign_body(SECRET, body),
        }
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.post(f"{self.url}/webhook", content=body, headers={**webhook_headers, **fields})

    @contextmanager
    def raw(self) -> Iterator[socket.socket]:
        with socket.create_connection(self.address, timeout=20) as client:
            yield client


@pytest.fixture(name="door")
def _door(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Door]:
    made = Door(tmp_path, getattr(request, "param", QUICK))
    yield made
    made.stop()


def head(length: int | None, signature: str = FORGED) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    fields = (
        f"Host: x\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: g\r\nX-Hub-Signature-256: {signature}\r\n{size}\r\n"
    )
    return f"POST /webhook HTTP/1.1\r\n{fields}\r\n".encode()


def rest(client: socket.socket) -> bytes:
    """All that the server still says, until it ends the connection; fails when it never does."""
    said = b""
    with suppress(ConnectionError):
        while part := client.recv(65536):
            said += part
    return said


def drip(client: socket.socket, byte: bytes, most: int = 400) -> bool:
    """Sends a byte now and then; True when the server ended the connection before all were sent."""
    pause = threading.Event()
    client.settimeout(0.02)
    for _ in range(most):
        try:
            client.sendall(byte)
            if client.recv(65536) == b"":
                return True
        except TimeoutError:
            pause.wait(0.01)
        except ConnectionError:
            return True
    return False


def test_a_head_that_comes_a_byte_at_a_time_is_cut_off(door: Door) -> None:
    with door.raw() as client:
        client.sendall(b"POST /webhook HTTP/1.1\r\nX-Slow: ")
        assert drip(client, b"x")


def test_a_connection_that_says_nothing_is_ended(door: Door) -> None:
    with door.raw() as client:
        assert rest(client) == b""


def test_a_second_request_that_comes_slowly_is_cut_off_too(door: Door) -> None:
    with door.raw() as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in client.recv(65536)
        client.sendall(b"GET /heal")
        assert drip(client, b"x")


@pytest.mark.parametrize("length", [1_000_000, None])
def test_a_body_that_comes_a_byte_at_a_time_is_given_up(door: Door, length: int | None) -> None:
    with door.raw() as client:
        client.sendall(head(length))
        assert drip(client, b"1\r\nx\r\n" if length is None else b"x")


def test_a_body_that_never_comes_is_answered_408(door: Door) -> None:
    with door.raw() as client:
        client.sendall(head(1000) + b"only this")
        assert rest(client).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("signature", ["", "sha256=zz", "sha1=" + "0" * 40, "sha256=" + "0" * 63])
@pytest.mark.parametrize("door", [PATIENT], indirect=True)
def test_without_a_well_formed_signature_no_body_is_read(door: Door, signature: str) -> None:
    """The answer comes though not one byte of the body was sent."""
    with door.raw() as client:
        client.sendall(head(20_000_000, signature))
        assert client.recv(65536).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/healthz", "/webhook", "/nowhere"])
def test_what_is_sent_on_and_on_after_the_answer_is_cut_off(door: Door, path: str) -> None:
    with door.raw() as client:
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        assert b"HTTP/1.1 40" in client.recv(65536)
        assert drip(client, b"1\r\nx\r\n")


@pytest.mark.parametrize("door", [PATIENT], indirect=True)
def test_bodies_in_flight_take_no_more_than_their_room(door: Door) -> None:
    """A large body that finds no room is asked to come again, a small one is taken in, and the room is given back."""
    with door.raw() as first, door.raw() as second:
        first.sendall(head(700_000) + b"x" * 590_000)
        second.sendall(head(700_000) + b"x" * 590_000)
        client = first if _first_answer(first, second) is first else second
        assert rest_of_one(client).startswith(b"HTTP/1.1 503 ")
        assert door.post().status_code == 202
    large = PUSH[:-1] + b', "more": "' + b"x" * 500_000 + b'"}'
    until(lambda: door.post(large, X_GitHub_Delivery="later").status_code == 202, what="room for another")


def _first_answer(*clients: socket.socket) -> socket.socket:
    with selectors.DefaultSelector() as selector:  # not select(), which takes no descriptor from 1,024 on
        for client in clients:
            selector.register(client, selectors.EVENT_READ)
        ready = selector.select(20)
    assert ready, "nobody was refused"
    return next(client for client in clients if client is ready[0][0].fileobj)


def rest_of_one(client: socket.socket) -> bytes:
    return client.recv(65536)


@pytest.mark.parametrize("door", [Limits(connections=8)], indirect=True)
def test_when_too_many_are_open_the_longest_waiting_gives_way(door: Door) -> None:
    clients = [socket.create_connection(door.address, timeout=20) for _ in range(8)]
    until(lambda: len(door.server.server_state.connections) == 8, what="eight connections")

    assert door.post().status_code == 202
    assert rest(clients[0]) == b""
    for client in clients:
        client.close()


@pytest.mark.parametrize("sent", [b"", b"half of it"])
@pytest.mark.parametrize("half", [True, False])
def test_a_client_that_leaves_in_mid_body_leaves_no_trace(
    door: Door, sent: bytes, half: bool, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), door.raw() as client:
        client.sendall(head(1000) + sent)
        if half:
            client.shutdown(socket.SHUT_WR)
            rest(client)
    until(lambda: not door.server.server_state.connections, what="the connection to end")
    until(lambda: not door.server.server_state.tasks, what="the request to end")

    told = capsys.readouterr()
    assert "Traceback" not in told.err + told.out
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


def comment(**said: object) -> bytes:
    """A comment's webhook; texts in `said` are JSON as it is sent, so that they may be what no dump writes."""
    fields = {
        "number": "7",
        "id": "5",
        "login": '"wim"',
        "body": '"/plan"',
        "at": '"2026-01-01T00:00:00Z"',
        **said,
    }
    return (
        '{{"action": "created", "repository": {{"full_name": "ann/shop"}}, '
        '"issue": {{"number": {number}, "pull_request": {{"url": "x"}}}}, "comment": {{"id": {id}, '
        '"user": {{"login": {login}, "type": "User"}}, "body": {body}, "created_at": {at}}}}}'
    ).format(**fields).encode()  # fmt: skip


POISON = {
    "half of a surrogate pair in a body": comment(body=r'"/plan \ud83d"'),
    "half of a surrogate pair in a login": comment(login=r'"\udc00"'),
    "half of a surrogate pair in a branch": PUSH.replace(b"heads/none", rb"heads/\ud800"),
    "NUL in a body": comment(body=r'"/plan \u0000"'),
    "a number of 2^63": comment(number=str(2**63)),
    "a number of 2^31": comment(number=str(2**31)),
    "an id of 2^63": comment(id=str(2**63)),
    "a negative id": comment(id="-5"),
    "1e999 as number": comment(number="1e999"),
    "1e999 as id": comment(id="1e999"),
    "NaN": comment(id="NaN"),
    "-Infinity": comment(number="-Infinity"),
    "a number of 5000 digits": comment(number="9" * 5000),
    "true as number": comment(number="true"),
    "a number as text": comment(number='"7"'),
    "a time without zone": comment(at='"2026-01-01T00:00:00"'),
    "a day that is none": comment(at='"2026-02-31T00:00:00Z"'),
    "a body that is a number": comment(body="7"),
    "a body that is a list": comment(body='["/plan"]'),
    "deep nesting": b'{"action": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep nesting of objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "bytes that are no text": b'{"action": "\xff\xfe"}',
    "nothing": b"",
}


@pytest.mark.parametrize("body", POISON.values(), ids=POISON.keys())
def test_json_that_no_database_takes_is_answered_400(
    door: Door, body: bytes, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    event = "push" if b"heads" in body else "issue_comment"

    assert door.post(body, X_GitHub_Event=event).status_code == 400
    told = capsys.readouterr()
    assert "Traceback" not in told.err + told.out + caplog.text
    assert door.context.inbox.queue.is_idle()


def test_the_same_webhook_without_poison_is_taken_in(door: Door) -> None:
    assert door.post(comment(), X_GitHub_Event="issue_comment").status_code == 202
    assert [row.body for row in door.context.inbox.commands.open(SHOP, 7)] == ["/plan"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_webhook_that_sends_a_form_is_told_what_to_set(door: Door, kind: str) -> None:
    """GitHub's own default when a webhook is made by hand; the signature counts first."""
    body = b"payload=%7B%22zen%22%3A%22x%22%7D"
    answer = door.post(body, Content_Type=kind)

    assert answer.status_code == 415
    assert "set its content type to application/json" in answer.text
    assert door.post(body, Content_Type=kind, X_Hub_Signature_256=FORGED).status_code == 401
