"""Webhooks that come together: one commit, an answer each, and no answer before the commit; also under `kill -9`."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from mergeplan.bot.forge.events import Event
from mergeplan.bot.github.events import sign_body
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.service.webhook import Intake
from tests.bot.conftest import SECRET, SHOP, read_guids
from tests.planner.conftest import empty_url, new_postgresql, postgresql  # noqa: F401 - fixtures

SERVER = """
import socket, sys
from pathlib import Path
import uvicorn
from pydantic import SecretStr
from mergeplan.bot.context import BotContext
from mergeplan.bot.github.gateway import GitHub
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.service.app import create_app
from mergeplan.bot.service.connections import server_config
from mergeplan.bot.settings import Settings
settings = Settings(webhook_secret=SecretStr(sys.argv[4]), home=Path(sys.argv[3]))
context = BotContext(settings, Inbox(sys.argv[2]), GitHub(settings), "nobody")
door = socket.socket(fileno=int(sys.argv[1]))
uvicorn.Server(server_config(create_app(context), "127.0.0.1", 0)).run(sockets=[door])
"""
SENDERS, ANSWERS = 8, 60
KILLS = min(int(os.environ.get("MERGEPLAN_KILLS", "1")), 3)  # `make prove`: 3


class Store:
    """Stores as told, and remembers the groups."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.free = threading.Event()

    def receive(self, events: Sequence[Event]) -> tuple[bool | Exception, ...]:
        self.groups.append([event.guid for event in events])
        self.free.wait(20)
        return tuple(ValueError(event.guid) if event.guid == "bad" else event.guid != "known" for event in events)


def take_together(store: Store, guids: Sequence[str], most: int = 10) -> list[bool | BaseException]:
    """What becomes of deliveries of which the first is being stored when the others come."""

    async def take() -> list[bool | BaseException]:
        intake = Intake(store.receive, most)
        tasks = [asyncio.create_task(intake.take(Event(guid, "push", SHOP))) for guid in guids]
        while not store.groups:
            await asyncio.sleep(0.001)
        assert not any(task.done() for task in tasks)
        store.free.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(take())


def test_what_comes_while_a_group_is_stored_is_the_next_group() -> None:
    """And nobody is answered before his group is stored."""
    store = Store()
    assert take_together(store, [f"g{n}" for n in range(8)], most=3) == [True] * 8

    assert [guid for group in store.groups for guid in group] == [f"g{n}" for n in range(8)]
    assert max(map(len, store.groups)) == 3


def test_each_of_a_group_is_told_its_own_end() -> None:
    stored, known, bad = take_together(Store(), ["g", "known", "bad"])

    assert (stored, known) == (True, False)
    assert isinstance(bad, ValueError)


def test_a_store_that_fails_is_told_to_all_and_the_next_is_stored() -> None:
    """As when no thread can be started."""
    calls: list[int] = []

    def receive(events: Sequence[Event]) -> tuple[bool, ...]:
        calls.append(len(events))
        if len(calls) == 1:
            raise OSError("no thread")
        return (True,) * len(events)

    async def take() -> list[bool | BaseException]:
        intake, event = Intake(receive, 10), Event("g", "push", SHOP)
        first = await asyncio.gather(intake.take(event), intake.take(event), return_exceptions=True)
        return [*first, await intake.take(event)]

    first, second, third = asyncio.run(take())
    assert isinstance(first, OSError)
    assert isinstance(second, OSError)
    assert third is True


class Sender(threading.Thread):
    """Sends deliveries over one kept connection, until the server is no more; remembers those answered 2xx."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.sent: list[str] = []
        self.answered: list[str] = []

    def run(self) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            while True:
                guid = str(uuid4())
                self.sent.append(guid)
                try:
                    if post(connection, guid, len(self.sent)) == 202:
                        self.answered.append(guid)
                except (OSError, http.client.HTTPException):
                    return


def post(connection: http.client.HTTPConnection, guid: str, number: int) -> int:
    head = {"ref": "main", "sha": "a" * 40}
    pull = {"number": number, "base": {"ref": "main"}, "head": head}
    body = json.dumps({"action": "synchronize", "repository": {"full_name": SHOP}, "pull_request": pull}).encode()
    headers = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": guid}
    connection.request("POST", "/webhook", body, {**headers, "X-Hub-Signature-256": sign_body(SECRET, body)})
    answer = connection.getresponse()
    answer.read()
    return answer.status


@contextmanager
def serving(url: str, folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A server of its own process, killed at the end at the latest."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        argv = [sys.executable, "-c", SERVER, str(door.fileno()), url, str(folder), SECRET]
        process = subprocess.Popen(argv, pass_fds=[door.fileno()], stdout=subprocess.DEVNULL, env=dict(os.environ))
        port = door.getsockname()[1]
    try:
        yield port, process
    finally:
        process.kill()
        process.wait(60)


def guids_in_store(url: str) -> list[str]:
    with closing(Inbox(url)) as inbox:
        return sorted(read_guids(inbox))


@pytest.mark.sampled
def test_what_was_answered_is_there_after_a_kill_9(empty_url: str, tmp_path: Path) -> None:  # noqa: F811
    """Behaviour 16: a server that takes hooks from many is killed in the midst, again and again."""
    answered: set[str] = set()
    for _ in range(KILLS):
        with serving(empty_url, tmp_path) as (port, process):
            senders = [Sender(port) for _ in range(SENDERS)]
            for sender in senders:
                sender.start()
            while sum(len(sender.answered) for sender in senders) < ANSWERS:
                assert process.poll() is None
            process.kill()
            for sender in senders:
                sender.join(60)
        answered |= {guid for sender in senders for guid in sender.answered}

        assert len(answered) >= ANSWERS
        assert not answered - set(guids_in_store(empty_url))


def test_a_delivery_that_comes_again_after_a_kill_9_is_there_once(empty_url: str, tmp_path: Path) -> None:  # noqa: F811
    """Behaviour 2: whether it had been answered or not."""
    with serving(empty_url, tmp_path) as (port, process):
        sender = Sender(port)
        sender.start()
        while len(sender.answered) < 5:
            assert process.poll() is None
        process.kill()
        sender.join(60)
    with serving(empty_url, tmp_path) as (port, _), closing(http.client.HTTPConnection("127.0.0.1", port)) as again:
        statuses = {post(again, guid, 1) for guid in sender.sent}

    assert statuses == {202}
    assert guids_in_store(empty_url) == sorted(sender.sent)
