"""The HTTP server of the service, and what its clients may take."""

import socket
from dataclasses import dataclass
from typing import Any

import uvicorn

from mergeplan.planner.api import connections
from mergeplan.planner.errors import RequestError


@dataclass(frozen=True)
class Limits(connections.ConnectionLimits):
    """What a client may take: seconds, connections, bytes."""

    bodies: int = 128 * 1024 * 1024  # all bodies together that are being read or handled
    small: int = 64 * 1024  # of each body, which is not counted: a small webhook always finds room
    group: int = 200  # deliveries that are stored with one commit, at most


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise RequestError if the address cannot be used."""
    try:
        door = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does so for its own sockets alone
        return door
    except OSError as error:
        reason = (error.strerror or type(error).__name__).partition(" (")[0].lower()
        raise RequestError(
            f"The service cannot listen on {host}, port {port}: {reason}.",
            hint="Set another MERGEPLAN_PORT or MERGEPLAN_HOST, or end the process that has it.",
        ) from None


def server_config(app: Any, host: str, port: int, limits: Limits | None = None) -> uvicorn.Config:
    """Return uvicorn's configuration for the app, without lifespan events and without its own logs."""
    return connections.server_config(
        app,
        limits or Limits(),
        host=host,
        port=port,
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=10,
    )
