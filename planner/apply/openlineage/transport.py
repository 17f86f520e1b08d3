"""Transports of OpenLineage events: a file, or a server over HTTP, on a separate thread. They never fail a plan."""

import json
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from mergeplan.planner.apply.openlineage.facets import Json

MOST = 10_000  # events that wait to be sent; more are counted as lost
LAST_WORDS = 10.0  # seconds that the end of a plan waits for events that are not sent yet
Deliver = Callable[[Json], None]


@dataclass(frozen=True)
class Undelivered:
    """The number of lost events, and the first reason."""

    count: int
    reason: str


class Sender:
    """A sender of events in their order, each once, while the plan goes on."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._waiting: queue.Queue[Json | None] = queue.Queue(MOST)
        self._lost, self._reason = 0, ""
        self._sent, self._given = 0, 0
        self._thread = threading.Thread(target=self._deliver_events, name="openlineage", daemon=True)
        self._thread.start()

    def send(self, event: Json) -> None:
        self._given += 1
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._count_lost("too many events wait to be sent")

    def close(self, wait: float = LAST_WORDS) -> Undelivered | None:
        deadline = time.monotonic() + wait
        with suppress(queue.Full):
            self._waiting.put(None, timeout=wait)
        self._thread.join(max(deadline - time.monotonic(), 0.0))
        unsent = self._given - self._sent - self._lost
        if unsent > 0:
            self._lost, self._reason = self._lost + unsent, self._reason or f"not sent within {wait:.0f} seconds"
        return Undelivered(self._lost, self._reason) if self._lost else None

    def _deliver_events(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._deliver(event)
                self._sent += 1
            except (OSError, HTTPException, ValueError) as error:
                self._count_lost(_failure_reason(error))

    def _count_lost(self, reason: str) -> None:
        self._lost, self._reason = self._lost + 1, self._reason or reason


def file_transport(path: Path) -> Deliver:
    def deliver(event: Json) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    return deliver


def http_transport(url: str, api_key: str, timeout: float) -> Deliver:
    """Return a transport by POST that follows no redirects, so that the key goes to this server only."""
    opener = urllib.request.build_opener(_NoRedirect)
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {api_key}"} if api_key else {})}

    def deliver(event: Json) -> None:
        body = json.dumps(event).encode()
        request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  # config.yaml's must be http(s)
        with opener.open(request, timeout=timeout) as answer:
            answer.read(1024)

    return deliver


def server_name(url: str) -> str:
    """Return a server's name without user, password and path, so that it may be shown."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _failure_reason(error: Exception) -> str:
    """Return the reason of an error without the address, which may hold secrets."""
    if isinstance(error, urllib.error.HTTPError):
        return f"it answered {error.code}"
    if isinstance(error, urllib.error.URLError):
        return f"it cannot be reached ({error.reason})"
    return str(getattr(error, "strerror", "") or type(error).__name__)
