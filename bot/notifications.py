"""What became of prod, for a chat: sentences posted to an incoming webhook of Slack, or of a chat that takes its JSON.

Best effort: a post that fails three times is logged and lost, and holds nothing up. Comments and checks are the record.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from queue import Full, Queue

import requests
import structlog
import tenacity

log = structlog.get_logger(__name__)
TIMEOUT_SECONDS = 10
TRIES = 3
WAITING = 200  # posts; more than these are dropped


class Notifications:
    """Posts sentences, one after the other, in a thread of its own; without a URL it does nothing."""

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._posts: Queue[str | None] = Queue(WAITING)
        self._thread = threading.Thread(target=self._work, name="notifications", daemon=True)
        if url:
            self._thread.start()

    def send(self, text: str) -> None:
        """Take a sentence to be posted; it returns at once and raises nothing."""
        if not self._url:
            return
        try:
            self._posts.put_nowait(text)
        except Full:
            log.warning("notification_dropped", why="too many wait")

    def close(self, seconds: float = 15.0) -> None:
        """Post what waits, for so long."""
        if self._url:
            until = time.monotonic() + seconds
            with suppress(Full):  # the chat does not answer: what waits is lost
                self._posts.put(None, timeout=seconds)
            self._thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while (text := self._posts.get()) is not None:
            try:
                self._post(text)
            except requests.RequestException as error:  # its text holds the URL, which is a secret
                log.warning("notification_failed", why=type(error).__name__)

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(TRIES),
        wait=tenacity.wait_exponential(multiplier=0.2, max=2),
        retry=tenacity.retry_if_exception_type(requests.RequestException),
        reraise=True,
    )
    def _post(self, text: str) -> None:
        answer = requests.post(
            self._url, json={"text": escape_slack(text)}, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
        answer.raise_for_status()


def escape_slack(text: str) -> str:
    """Text in which nothing is a link or a mention, by Slack's rule: a model's name must not call a whole channel.

    >>> escaped("a <!channel> & b")
    'a &lt;!channel&gt; &amp; b'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
