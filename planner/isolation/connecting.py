"""The only connection of an isolated process: whatever address it connects to, it gets a connection to one Unix socket.

The kernel notifies us of each `connect` of the process, and waits. We open the connection ourselves and put it in
the place of the socket that was to be connected, so that no address that the process names is ever looked at.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

RECEIVE, ANSWER, ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103  # ioctl(2) of seccomp
QUESTION_BYTES = 80  # struct seccomp_notif
FIRST_ARGUMENT = 32  # in it
IN_ITS_PLACE = 1  # SECCOMP_ADDFD_FLAG_SETFD


class ConnectionProxy:
    """Handles the `connect` calls of one process and of its children, until they have ended.

    `descriptor` is for the launcher; close it with `started` once the process has it.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._line, theirs = socket.socketpair()
        self._theirs: socket.socket | None = theirs
        self.descriptor = theirs.fileno()

    def started(self) -> None:
        """Start handling: the process has its end of the socket."""
        if self._theirs is not None:
            self._theirs.close()
        threading.Thread(target=self._serve, name="way-out", daemon=True).start()

    def _serve(self) -> None:
        with self._line, suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._line, 1, 1)
            for listener in descriptors:  # none when it could not be isolated
                with os.fdopen(listener, "rb", buffering=0):
                    self._answer_all(listener)

    def _answer_all(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while any(event & select.POLLIN for _, event in poll.poll()):
            question = ctypes.create_string_buffer(QUESTION_BYTES)
            with suppress(OSError):  # it ended while it waited
                fcntl.ioctl(listener, RECEIVE, question)
                self._answer(listener, bytes(question))

    def _answer(self, listener: int, question: bytes) -> None:
        (number,) = struct.unpack_from("Q", question)
        (descriptor,) = struct.unpack_from("i", question, FIRST_ARGUMENT)
        failed = 0
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as ours:
                ours.setblocking(False)
                ours.connect(_short(self._target))
                given = struct.pack("QIIII", number, IN_ITS_PLACE, ours.fileno(), descriptor, os.O_CLOEXEC)
                fcntl.ioctl(listener, ADD_DESCRIPTOR, given)
        except OSError as error:  # also when we have no descriptor left
            failed = error.errno or errno.ECONNREFUSED
        fcntl.ioctl(listener, ANSWER, struct.pack("QqiI", number, 0, -failed, 0))


def _short(path: Path) -> str:
    """The path in a form that fits into an address, which holds about a hundred characters."""
    return os.path.relpath(path) if len(os.fsencode(path)) > 100 else str(path)
