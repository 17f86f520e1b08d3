"""HTTP connections with deadlines, and with room for everybody: of the bot's service, `mergeplan ui`, `mergeplan mcp`.

uvicorn ends idle connections only. Here a head, a request and what a client still sends after its answer have to come
to their end in time. No peer holds more connections than its share; where a new one finds no place, the one that has
waited longest for its head gives way, of the peer that holds most.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any, ClassVar, Literal

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

Stage = Literal["head", "request", "rest", "idle"]
IPV6_HOST = 64  # bits by which a host is told from others: it chooses the rest of its address itself
TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 9\r\n\r\ntoo slow\n"
)


@dataclass(frozen=True)
class ConnectionLimits:
    """What clients may take: seconds and connections."""

    head_seconds: float = 10.0  # from the first moment to the end of the head
    body_seconds: float = 20.0  # from the end of the head to the end of the body; the application measures it
    request_seconds: float = 75.0  # from the end of the head to the end of the answer; the database may wait for 30
    rest_seconds: float = 3.0  # for what is still sent after the answer
    connections: int = 400
    peer_connections: int = 200  # of one address; a proxy in front is one


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on one connection, with deadlines."""

    limits: ClassVar[ConnectionLimits] = ConnectionLimits()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._timer: asyncio.TimerHandle | None = None
        self._timed: tuple[Stage, object] = ("idle", None)
        self.since = self.loop.time()  # when the stage began
        self.peer = ""

    @property
    def stage(self) -> Stage:
        return self._timed[0]

    @property
    def is_waiting(self) -> bool:
        """True while it holds no request that has come whole."""
        return self.stage in ("head", "idle")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = peer_of(transport)
        self._enter_stage("head")
        give_way(self, (connection for connection in self.connections if isinstance(connection, TimedProtocol)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter_stage("idle")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_stage()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_stage()

    def _update_stage(self) -> None:
        """Find out which stage the connection is in; a stage's deadline stays while the stage does."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._enter_stage("request")
        elif self.conn.their_state is not h11.IDLE:
            self._enter_stage("rest")
        elif self.cycle is None or self.conn.trailing_data[0]:
            self._enter_stage("head")
        else:
            self._enter_stage("idle")  # between two requests: uvicorn's own deadline runs

    def _enter_stage(self, stage: Stage) -> None:
        if self._timed == (stage, self.cycle):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timed, self.since = None, (stage, self.cycle), self.loop.time()
        if stage != "idle" and (seconds := getattr(self.limits, f"{stage}_seconds")) != float("inf"):
            self._timer = self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self.stage == "head" and self.conn.trailing_data[0]:
            self.transport.write(TOO_SLOW)
            self.transport.close()
            self.loop.call_later(self.limits.rest_seconds, self.transport.abort)
        else:
            self.transport.abort()


def give_way(new: TimedProtocol, connections: Iterable[TimedProtocol]) -> None:
    """End one connection where a new one is too many, of all or of its peer; the new one, if no other can go."""
    open_connections = [
        connection for connection in connections if connection is not new and not connection.transport.is_closing()
    ]
    counts = Counter(connection.peer for connection in open_connections)
    limits = new.limits
    if counts[new.peer] >= limits.peer_connections:
        waiting = [
            connection for connection in open_connections if connection.is_waiting and connection.peer == new.peer
        ]
    elif len(open_connections) >= limits.connections:
        waiting = [connection for connection in open_connections if connection.is_waiting]
    else:
        return
    highest_count = max((counts[connection.peer] for connection in waiting), default=0)
    of_most = (connection for connection in waiting if counts[connection.peer] == highest_count)
    min(of_most, key=lambda other: other.since, default=new).transport.abort()


def peer_of(transport: asyncio.BaseTransport) -> str:
    """Return the host at the other end, or its network for IPv6; '' for a socket without addresses."""
    name = transport.get_extra_info("peername")
    try:
        address = ip_address(name[0].partition("%")[0])
    except (TypeError, ValueError, IndexError, AttributeError):
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.exploded[: IPV6_HOST // 4 + IPV6_HOST // 16 - 1]
    return str(getattr(address, "ipv4_mapped", None) or address)


def server_config(app: Any, limits: ConnectionLimits, **more: Any) -> uvicorn.Config:
    """Return the configuration of a server with this protocol; `more` is uvicorn's own."""
    protocol = type("Protocol", (TimedProtocol,), {"limits": limits})
    return uvicorn.Config(app, http=protocol, ws="none", access_log=False, server_header=False, **more)
