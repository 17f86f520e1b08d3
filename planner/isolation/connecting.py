"""The connections of an isolated process: this process opens them instead.

The kernel notifies us of each `connect` of the process, and waits. We open a connection ourselves and put it in the
place of the socket that was to be connected. By default that is one to a Unix socket, whatever address was named.
"""

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

RECEIVE, ANSWER, ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103  # ioctl(2) of seccomp
QUESTION_BYTES = 80  # struct seccomp_notif
PROCESS, FIRST_ARGUMENT = 8, 32  # in it
IN_ITS_PLACE = 1  # SECCOMP_ADDFD_FLAG_SETFD


@dataclass(frozen=True)
class Question:
    """A `connect` that waits: its number, the calling thread, its descriptor, and the memory address of its address."""

    number: int
    thread: int
    descriptor: int
    address: int
    length: int


class ConnectionProxy:
    """A handler of the `connect` calls of a process and its children; `start` closes the launcher's `descriptor`."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._line, child_end = socket.socketpair()
        self._theirs: socket.socket | None = child_end
        self.descriptor = child_end.fileno()

    def start(self) -> None:
        """Start handling: the process has its end of the socket."""
        if self._theirs is not None:
            self._theirs.close()
        threading.Thread(target=self._serve_listener, name="connect-proxy", daemon=True).start()

    def _serve_listener(self) -> None:
        with self._line, suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._line, 1, 1)
            for listener in descriptors:  # none when it could not be isolated
                with os.fdopen(listener, "rb", buffering=0):
                    self._answer_all(listener)

    def _answer_all(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while any(event & select.POLLIN for _, event in poll.poll()):
            raw = ctypes.create_string_buffer(QUESTION_BYTES)
            with suppress(OSError):  # it ended while it waited
                fcntl.ioctl(listener, RECEIVE, raw)
                self._handle_question(listener, _parse_question(bytes(raw)))

    def _handle_question(self, listener: int, question: Question) -> None:
        self._answer_question(listener, question)

    def _answer_question(self, listener: int, question: Question) -> None:
        failed = 0
        try:
            with self._open_connection(question) as connection:
                place = (question.number, IN_ITS_PLACE, connection.fileno(), question.descriptor, os.O_CLOEXEC)
                fcntl.ioctl(listener, ADD_DESCRIPTOR, struct.pack("QIIII", *place))
        except OSError as error:  # also when we have no descriptor left
            failed = error.errno or errno.ECONNREFUSED
        fcntl.ioctl(listener, ANSWER, struct.pack("QqiI", question.number, 0, -failed, 0))

    def _open_connection(self, question: Question) -> socket.socket:
        """Return a connection for the waiting process; raise OSError if that fails."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            # an address holds about a hundred characters
            short_path = os.path.relpath(self._target) if len(os.fsencode(self._target)) > 100 else str(self._target)
            connection.connect(short_path)
        except OSError:
            connection.close()
            raise
        return connection


def _parse_question(raw: bytes) -> Question:
    (number,) = struct.unpack_from("Q", raw)
    (thread,) = struct.unpack_from("I", raw, PROCESS)
    descriptor, address, length = struct.unpack_from("ixxxxQI", raw, FIRST_ARGUMENT)
    return Question(number, thread, descriptor, address, length)
