"""The sandbox's server ends with every connection closed, whoever still holds one."""

from __future__ import annotations

import gc
import socket
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

from mergeplan_sandbox import server
from mergeplan_sandbox.server import Sandbox

HALF = b"POST /app/installations HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"


def test_connections_that_were_just_accepted_are_closed(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as warned, ExitStack() as clients:
        warnings.simplefilter("always")
        for number in range(5):
            sandbox = Sandbox(tmp_path / str(number)).start()
            port = int(sandbox.url.rpartition(":")[2])
            for _ in range(3):
                clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            sandbox.stop()
            gc.collect()

    assert [str(one.message) for one in warned if one.category is ResourceWarning] == []


def test_a_request_that_never_ends_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 0.2)
    with warnings.catch_warnings(record=True) as warned, ExitStack() as clients:
        warnings.simplefilter("always")
        with Sandbox(tmp_path) as sandbox:
            address = ("127.0.0.1", int(sandbox.url.rpartition(":")[2]))
            client = clients.enter_context(socket.create_connection(address, timeout=20))
            client.sendall(HALF)
        while not ended(client):
            pass
        gc.collect()

    assert [str(one.message) for one in warned if one.category is ResourceWarning] == []


def ended(client: socket.socket) -> bool:
    """True once the server has closed the connection; TimeoutError while it keeps it open."""
    try:
        return not client.recv(1000)
    except ConnectionResetError:
        return True
