"""The connections of a confined process: to its own listeners, and to the addresses that its operator allows.

Our process reads the address, checks it, and opens the connection itself: a change of it by the caller meanwhile has no
effect. Names are looked up here, when they are connected to.
"""

import errno
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from mergeplan.planner.isolation.addresses import AllowedAddress, IpAddress, StandIns, unwrap_ipv4
from mergeplan.planner.isolation.connecting import ConnectionProxy, Question

TIMEOUT = 30.0  # seconds for a connection
LONGEST = 128  # bytes of an address
LISTENS = "0A"  # the state of a socket in /proc/net/tcp
REFUSED = errno.EACCES


class ConnectionGate(ConnectionProxy):
    """A gate that opens the allowed connections of one process and its children, and refuses all others.

    `folders` are those whose Unix sockets it may connect to. `report_refusal` is called with each address that is
    refused. Addresses `at_start` are allowed until `close_start`.
    """

    def __init__(
        self,
        addresses: tuple[AllowedAddress, ...],
        folders: tuple[Path, ...],
        report_refusal: Callable[[str], None],
        at_start: tuple[AllowedAddress, ...] = (),
    ) -> None:
        super().__init__(Path(os.devnull))
        self.stand_ins = StandIns.build((*addresses, *at_start))
        self._addresses = (*addresses, *at_start)
        self._later = addresses
        self._folders = tuple(folder.resolve() for folder in folders)
        self._refused = report_refusal
        self.process = 0  # whose own ports are allowed

    def close_start(self) -> None:
        """Refuse, from now on, the addresses that were allowed for the start only."""
        self._addresses = self._later

    def _handle_question(self, listener: int, question: Question) -> None:
        threading.Thread(target=self._answer_late, args=(listener, question), name="gate", daemon=True).start()

    def _answer_late(self, listener: int, question: Question) -> None:
        with suppress(OSError):  # it ended while it waited
            self._answer_question(listener, question)

    def _open_connection(self, question: Question) -> socket.socket:
        address = _read_memory(question.thread, question.address, min(question.length, LONGEST))
        connection = self._open_address(address)
        lines = Path(f"/proc/{question.thread}/fdinfo/{question.descriptor}").read_text().splitlines()
        flags = next(line.split()[1] for line in lines if line.startswith("flags:"))
        connection.setblocking(not int(flags, 8) & os.O_NONBLOCK)
        return connection

    def _open_address(self, address: bytes) -> socket.socket:
        (family,) = struct.unpack_from("H", address.ljust(2, b"\0"))
        if family == socket.AF_UNIX:
            return self._open_unix(os.fsdecode(address[2:].partition(b"\0")[0]))
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise OSError(errno.EAFNOSUPPORT, "family")
        start, length = (4, 4) if family == socket.AF_INET else (8, 16)
        text = socket.inet_ntop(family, address[start : start + length].ljust(length, b"\0"))
        (port,) = struct.unpack_from("!H", address.ljust(4, b"\0"), 2)
        return self._open_tcp(socket.AddressFamily(family), unwrap_ipv4(text), port)

    def _open_tcp(self, family: socket.AddressFamily, address: IpAddress, port: int) -> socket.socket:
        places = list(self._find_places(address, port))
        if not places:
            self._refused(f"{self.stand_ins.name(address) or address}:{port}")
            raise OSError(REFUSED, "not allowed")
        failed: OSError = OSError(errno.EHOSTUNREACH, "no address")
        for place in places:
            try:
                return _dial_place(family, place, port)
            except OSError as error:
                failed = error
        raise failed

    def _find_places(self, address: IpAddress, port: int) -> Iterator[IpAddress]:
        """Yield the addresses to try for one that was named; none if it is not allowed."""
        if address.is_loopback and is_listening(self.process, port):
            yield address
        elif name := self.stand_ins.name(address):
            if any(rule.host == name and rule.port in (0, port) for rule in self._addresses):
                try:
                    entries = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
                except OSError:
                    raise OSError(errno.EHOSTUNREACH, name) from None
                yield from dict.fromkeys(unwrap_ipv4(str(entry[4][0])) for entry in entries)
        elif any(rule.includes(address, port) for rule in self._addresses):
            yield address

    def _open_unix(self, path: str) -> socket.socket:
        """Open a connection to a socket in one of the folders; follow no links."""
        place = -1
        try:
            place = os.open(path or os.devnull, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            real = Path(os.readlink(f"/proc/self/fd/{place}"))
            if not stat.S_ISSOCK(os.fstat(place).st_mode) or not any(map(real.is_relative_to, self._folders)):
                self._refused(path or "a Unix socket without a name")
                raise OSError(REFUSED, "not allowed")
            return _dial_place(socket.AF_UNIX, f"/proc/self/fd/{place}", 0)
        finally:
            if place >= 0:
                os.close(place)


def is_listening(process: int, port: int) -> bool:
    inodes = {f"socket:[{inode}]" for inode in _listener_inodes(port)}
    return bool(inodes) and any(inodes & _open_files(member) for member in _process_family(process))


def _listener_inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _open_files(process: int) -> set[str]:
    paths = set()
    with suppress(OSError):  # it has ended
        for entry in os.scandir(f"/proc/{process}/fd"):
            with suppress(OSError):
                paths.add(os.readlink(entry.path))
    return paths


def _process_family(process: int) -> Iterator[int]:
    yield process
    with suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            for child in Path(f"/proc/{process}/task/{task}/children").read_text().split():
                yield from _process_family(int(child))


def _dial_place(family: socket.AddressFamily, place: IpAddress | str, port: int) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(TIMEOUT)
        if isinstance(place, str):
            connection.connect(place)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what the caller had set is lost
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            mapped = family == socket.AF_INET6 and place.version == 4
            connection.connect((f"::ffff:{place}" if mapped else str(place), port))
    except OSError as error:
        connection.close()
        raise OSError(error.errno or errno.ETIMEDOUT, "connect") from None
    return connection


def _read_memory(thread: int, address: int, length: int) -> bytes:
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(length)
