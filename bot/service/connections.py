"""The HTTP server of the service: each connection has deadlines, and there are no more of them than fit.

uvicorn ends idle connections only. Here a head, a request and what a client still sends after its answer have to come
to their end in time; when too many connections are open, the one that has waited longest for its head is ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

Stage = Literal["head", "request", "rest", "idle"]
TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 9\r\n\r\ntoo slow\n"
)


@dataclass(frozen=True)
class Limits:
    """What a client may take: seconds, connections, bytes."""

    head_seconds: float = 10.0  # from the first moment to the end of the head
    body_seconds: float = 20.0  # from the end of the head to the end of the body
    request_seconds: float = 75.0  # from the end of the head to the end of the answer; the database may wait for 30
    rest_seconds: float = 3.0  # for what is still sent after the answer
    connections: int = 400
    bodies: int = 128 * 1024 * 1024  # all bodies together that are being read or handled
    small: int = 64 * 1024  # of each body, which is not counted: a small webhook always finds room
    group: int = 200  # deliveries that are stored with one commit, at most


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on one connection, with deadlines."""

    limits: ClassVar[Limits] = Limits()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._timer: asyncio.TimerHandle | None = None
        self._timed: tuple[Stage, object] = ("idle", None)
        self.since = self.loop.time()  # when the stage began

    @property
    def stage(self) -> Stage:
        return self._timed[0]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._enter("head")
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter("idle")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Finds out which stage the connection is in; a stage's deadline stays while the stage does."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._enter("request")
        elif self.conn.their_state is not h11.IDLE:
            self._enter("rest")
        elif self.cycle is None or self.conn.trailing_data[0]:
            self._enter("head")
        else:
            self._enter("idle")  # between two requests: uvicorn's own deadline runs

    def _enter(self, stage: Stage) -> None:
        if self._timed == (stage, self.cycle):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timed, self.since = None, (stage, self.cycle), self.loop.time()
        if stage != "idle":
            self._timer = self.loop.call_later(getattr(self.limits, f"{stage}_seconds"), self._too_late)

    def _too_late(self) -> None:
        if self.stage == "head" and self.conn.trailing_data[0]:
            self.transport.write(TOO_SLOW)
            self.transport.close()
            self.loop.call_later(self.limits.rest_seconds, self.transport.abort)
        else:
            self.transport.abort()

    def _make_room(self) -> None:
        """Ends the connection that has been open longest without a whole request; this one when there is none."""
        others = (
            connection
            for connection in self.connections
            if isinstance(connection, TimedProtocol) and connection is not self
        )
        waiting = [
            connection
            for connection in others
            if connection.stage in ("head", "idle") and not connection.transport.is_closing()
        ]
        min(waiting, key=lambda connection: connection.since, default=self).transport.abort()


def server_config(app: Any, host: str, port: int, limits: Limits | None = None) -> uvicorn.Config:
    """How uvicorn serves the app: this protocol, no web sockets, logs by ours alone."""
    protocol = type("Protocol", (TimedProtocol,), {"limits": limits or Limits()})
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=10,
    )
