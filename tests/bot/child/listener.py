"""A server on this machine that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

JSON, BINARY = {"Content-Type": "application/json"}, {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True)
class Answer:
    """What is answered: a text that is repeated, after a status and headers."""

    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    status: int = 200
    times: int = 1


@dataclass
class Listener:
    """A server: its port, and the requests that came as paths and headers."""

    port: int
    requests: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serve_answers(answer: Callable[[str], Answer]) -> Iterator[Listener]:
    """A server that answers each path; as a proxy it is asked for whole addresses."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listener.requests.append((self.path, dict(self.headers)))
            response = answer(self.path)
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for _ in range(response.times):
                self.wfile.write(response.content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing: who asked went away."""

    with Server(("127.0.0.1", 0), Handler) as server:
        listener = Listener(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield listener
        finally:
            server.shutdown()
            thread.join()
