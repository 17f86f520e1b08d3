"""Clients that open connections and say nothing: of the servers of `mergeplan ui` and `mergeplan mcp --http`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from mergeplan.planner.api.connections import ConnectionLimits, peer_of, server_config
from tests.planner.agents.sessions import serve_http
from tests.planner.api.test_floods import Server, start
from tests.planner.shop import write_shop
from tests.waiting import wait_for

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def flood(stack: ExitStack, port: int, count: int, source: str = "127.0.0.1") -> list[socket.socket]:
    """Connections that never finish their head."""
    clients = []
    for _ in range(count):
        clients.append(stack.enter_context(connect(port, source)))
    return clients


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
    client.sendall(HALF)
    return client


@contextmanager
def serve(limits: ConnectionLimits) -> Iterator[uvicorn.Server]:
    """A server in this process; its `port` is where it listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = server_config(PlainTextResponse("ok\n"), limits, lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_for("the server", lambda: server.started, 60)
        yield server
        server.should_exit = True
        thread.join(15)


def port_of(server: uvicorn.Server) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])


def test_620_heads_that_never_end_leave_the_pages_open(tmp_path: Path) -> None:
    with start(tmp_path, "pass") as server, ExitStack() as stack:
        flood(stack, server.port, 620)
        statuses = [httpx.get(f"{server.url}/api/v1/meta", timeout=60).status_code for _ in range(3)]

    assert statuses == [200] * 3


def test_620_heads_that_never_end_leave_the_tools_open(tmp_path: Path) -> None:
    write_shop(tmp_path)
    with serve_http(tmp_path) as address, ExitStack() as stack:
        flood(stack, httpx.URL(address).port or 0, 620)
        answer = httpx.post(address, json={}, timeout=60)

    assert answer.status_code == 401  # it has no token, and was heard


def test_a_head_that_does_not_end_is_cut_off() -> None:
    limits = ConnectionLimits(head_seconds=0.3, request_seconds=float("inf"))
    with serve(limits) as server, connect(port_of(server)) as client:
        answer = client.recv(1000)

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_peer_that_takes_all_places_gives_way_and_others_keep_theirs() -> None:
    limits = ConnectionLimits(connections=10, peer_connections=10)
    with serve(limits) as server, ExitStack() as stack:
        port = port_of(server)
        (slow,) = flood(stack, port, 1)
        flood(stack, port, 30, "127.0.0.2")
        wait_for("places", lambda: len(server.server_state.connections) <= 10, 60)
        slow.sendall(b"x\r\n\r\n")
        answer = slow.recv(1000)

    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_peer_has_no_more_than_its_share() -> None:
    limits = ConnectionLimits(connections=100, peer_connections=5)
    with serve(limits) as server, ExitStack() as stack:
        clients = flood(stack, port_of(server), 20)
        wait_for("fewer connections", lambda: len(server.server_state.connections) <= 5, 60)
        first, last = clients[0], clients[-1]
        last.sendall(b"x\r\n\r\n")
        answer = last.recv(1000)

        assert answer.startswith(b"HTTP/1.1 200 ")
        with pytest.raises((ConnectionError, AssertionError)):
            assert first.recv(1000)


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        (("192.0.2.7", 5), "192.0.2.7"),
        (("::ffff:192.0.2.7", 5, 0, 0), "192.0.2.7"),
        (("2001:db8:1:2:3:4:5:6", 5, 0, 0), "2001:0db8:0001:0002"),
        (("fe80::1%eth0", 5, 0, 2), "fe80:0000:0000:0000"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_peer_is_a_host_whatever_the_rest_of_its_address(address: object, peer: str) -> None:
    class Transport:
        def get_extra_info(self, _: str) -> object:
            return address

    assert peer_of(Transport()) == peer  # type: ignore[arg-type]


def test_a_chunked_body_over_the_limit_is_answered_413(door: Server) -> None:
    chunks = (b"x" * (1 << 16) for _ in range(40))
    answer = httpx.post(f"{door.url}/api/v1/tests", content=chunks, timeout=60)

    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with start(tmp_path_factory.mktemp("shop"), "pass") as server:
        yield server
