"""A chat is told what became of prod; one that does not answer holds nothing up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr

from mergeplan.bot.notifications.notifications import NotDelivered, Notifications, Target
from mergeplan.bot.notifications.slack import SlackWebhook
from mergeplan.bot.notifications.targets import open_notifications
from mergeplan.bot.report.notices import Notice, announce_deploy
from mergeplan.bot.settings import load_settings
from mergeplan.planner.errors import RequestError
from tests.bot.conftest import COLUMN, SHOP, Bench, until

DEPLOYED = announce_deploy(SHOP, 7, "ann")


class Mailbox:
    """A target that keeps what it is given, or refuses it."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.notices: list[Notice] = []
        self.refuses = refuses

    def deliver(self, notice: Notice) -> None:
        if self.refuses:
            raise NotDelivered("full")
        self.notices.append(notice)


class Chat:
    """An incoming webhook; it answers with `status`."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.asked, self.status = 0, 200
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                chat.asked += 1
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if chat.status == 200:
                    chat.texts.append(body["text"])
                self.send_response(chat.status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def chat() -> Iterator[Chat]:
    made = Chat()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_merge_and_its_failure_are_told(make_bench: Callable[..., Bench], chat: Chat) -> None:
    bench = make_bench(notify_url=SecretStr(chat.url))
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.github.commit(SHOP, "main", {"models/orders.sql": "BROKEN"}, "Straight to main", author="ann")
    bench.idle()
    until(lambda: len(chat.texts) == 3, what="three posts")

    assert [text.partition(" view")[0] for text in chat.texts[:2]] == [
        f"{SHOP}: Prod was built for the first time. 2",
        f"{SHOP}: #{number} is in prod. 2",
    ]
    assert "was pushed and is not in prod: `BROKEN` is no SQL." in chat.texts[2]


def test_what_is_posted_is_text_and_calls_nobody(chat: Chat) -> None:
    notifications = Notifications([SlackWebhook(chat.url)])

    notifications.send(announce_deploy(SHOP, 7, "<!channel> & <https://evil.example|click>"))
    notifications.close()

    assert chat.texts == [
        f"{SHOP}: &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt; deployed #7. It is merged and in prod."
    ]


def test_a_chat_that_fails_is_tried_three_times_and_holds_nothing_up(
    chat: Chat, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.status = 500
    notifications = Notifications([SlackWebhook(chat.url)])

    notifications.send(DEPLOYED)
    notifications.close()

    assert chat.asked == 3
    assert chat.url not in capsys.readouterr().out + caplog.text


def test_a_target_that_takes_nothing_keeps_no_other_from_its_notices() -> None:
    mailbox = Mailbox()
    targets: list[Target] = [Mailbox(refuses=True), mailbox]
    notifications = Notifications(targets)

    notifications.send(DEPLOYED)
    notifications.close()

    assert mailbox.notices == [DEPLOYED]


def test_a_service_without_a_target_sends_nothing() -> None:
    notifications = open_notifications(load_settings())

    notifications.send(DEPLOYED)
    notifications.close()


def test_an_address_that_anybody_could_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_NOTIFY_URL", "http://chat.example/secret")

    with pytest.raises(RequestError, match="MERGEPLAN_NOTIFY_URL is not usable") as refused:
        load_settings()

    assert "secret" not in str(refused.value)
