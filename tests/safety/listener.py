"""A listener on this machine that counts what it is sent: where rows would arrive if they left."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class Listener:
    """A server of HTTP on 127.0.0.1 that answers each request with an empty DTD and counts the bytes of all."""

    def __init__(self) -> None:
        self.received = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.received += len(connection.recv(65536)) or 1
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
