"""The server's process: uvicorn over the application, until it is stopped; jobs go on without it."""

import signal
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from mergeplan.planner.api.connections import ConnectionLimits, server_config
from mergeplan.planner.errors import RequestError

# A process has 1,024 open files in most places. An event stream is an answer that does not end.
LIMITS = ConnectionLimits(request_seconds=float("inf"), connections=600, peer_connections=400)
GRACE = 5  # seconds that open answers have when the server is stopped: event streams do not end by themselves


def open_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket; raise RequestError if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only where it sees the protocol: without it each answer in two parts takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise RequestError(
            f"The server cannot listen on {host}:{port}: {error.strerror}.", hint="Choose another one with `--port`."
        ) from None
    return listener


def serve_app(app: ASGIApp, listener: socket.socket) -> None:
    """Answer on the socket until SIGINT or SIGTERM."""
    config = server_config(
        app, LIMITS, log_level="warning", timeout_graceful_shutdown=GRACE, h11_max_incomplete_event_size=32 << 10
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, _ignore_signal
        )  # uvicorn ends by one of them, and sends it once more to the handler before it
    uvicorn.Server(config).run(sockets=[listener])


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the server has ended, and so does the verb."""
