"""A forwarder between an installer and the addresses that packages come from. It lives as long as the installer.

The installer is denied every other connection, and holds no credential: those of the operator's proxy, hub and index
are added here. What is asked of another address, or leads to one, is refused.
"""

import os
import socket
import ssl
import sys
import tempfile
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from secrets import token_urlsafe
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, cast
from urllib.parse import unquote, urljoin, urlsplit

import certifi
import structlog
import urllib3
from requests.utils import should_bypass_proxies

from mergeplan.bot.fetching.origins import HOSTS, Origin, find_origin, name_inside

log = structlog.get_logger(__name__)
TIMEOUT = urllib3.Timeout(connect=20.0, read=30.0)
TEXT_MAX, BYTES_MAX = 64 << 20, 4 << 30  # of one text, of everything
BLOCK = 64 << 10
PASSED = ("Content-Type", "ETag", "Last-Modified")
NOWHERE = "http://127.0.0.1:9"  # every connection of an isolated installer is one to us, whatever it names


@dataclass
class Forwarder:
    """Fetches from origins for one installer; `problem` is the first thing that went wrong, as half a sentence."""

    origins: Sequence[Origin]
    environ: Mapping[str, str]
    token: str = ""  # who knows it may ask; '' where nobody else can reach us
    bytes_max: int = BYTES_MAX
    problem: str = ""
    closed: threading.Event = field(default_factory=threading.Event)
    _fetched: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, problem: str) -> None:
        self.problem = self.problem or problem
        log.warning("package_not_fetched", why=problem)

    def take(self, size: int) -> bool:
        """Return False when more was fetched than is allowed."""
        with self._lock:
            self._fetched += size
        if self._fetched > self.bytes_max:
            self.report(f"they are larger than {self.bytes_max >> 20:,} MiB")
        return self._fetched <= self.bytes_max and not self.closed.is_set()

    def open(self, method: str, origin: Origin, url: str, accept: str) -> urllib3.BaseHTTPResponse:
        """Ask an origin; no redirect is followed. HTTPError, OSError."""
        headers = {"User-Agent": "mergeplan", "Accept": accept, "Accept-Encoding": "identity"}
        if origin.authorization:
            headers["Authorization"] = origin.authorization
        return self._open_pool(url).request(
            method, url, headers=headers, redirect=False, retries=False, preload_content=False, timeout=TIMEOUT
        )

    def _open_pool(self, url: str) -> urllib3.PoolManager:
        context = self._make_ssl_context(urlsplit(url).netloc)
        scheme = urlsplit(url).scheme
        proxy = self._get_variable(f"{scheme}_proxy")
        no_proxy = self._get_variable("no_proxy")
        if not proxy or should_bypass_proxies(url, no_proxy or None):
            return urllib3.PoolManager(ssl_context=context)
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        user_info, _, host = parts.netloc.rpartition("@")
        basic = b64encode(unquote(user_info).encode()).decode()
        headers = {"Proxy-Authorization": f"Basic {basic}"} if user_info else {}
        return urllib3.ProxyManager(f"{parts.scheme}://{host}", proxy_headers=headers, ssl_context=context)

    def _make_ssl_context(self, netloc: str) -> ssl.SSLContext:
        ca_file = self.environ.get("PIP_CERT") or None
        context = ssl.create_default_context(cafile=ca_file)
        if ca_file is None:
            context.load_verify_locations(certifi.where())
        trusted = self.environ.get("PIP_TRUSTED_HOST", "").split()
        if {netloc, netloc.rpartition(":")[0] or netloc} & set(trusted):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def _get_variable(self, name: str) -> str:
        return self.environ.get(name) or self.environ.get(name.upper(), "")


class _Server(ThreadingMixIn, TCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    forwarder: Forwarder

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write the kind of error to the log: most often the installer went away."""
        log.info("forwarder_interrupted", error=type(sys.exception()).__name__)


class _UnixServer(_Server):
    address_family = socket.AF_UNIX


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    @property
    def _server_forwarder(self) -> Forwarder:
        return cast("_Server", self.server).forwarder

    def do_GET(self) -> None:
        forwarder = self._server_forwarder
        expected = f"Basic {b64encode(f'mergeplan:{forwarder.token}'.encode()).decode()}"
        if forwarder.token and self.headers.get("Proxy-Authorization") != expected:
            self.send_error(407)
            return
        place = find_origin(forwarder.origins, self.path)
        if place is None:
            self._refuse_request()
            return
        origin, url = place
        try:
            response = forwarder.open(self.command, origin, url, self.headers.get("Accept", "*/*"))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            forwarder.report(f"`{origin.host}` does not answer ({_describe_cause(error)})")
            self.send_error(502)
            return
        try:
            self._send_answer(response, url)
        except (urllib3.exceptions.HTTPError, OSError):  # either side went away
            self.close_connection = True
        finally:
            response.close()

    do_HEAD = do_GET  # its name is the library's

    def do_CONNECT(self) -> None:
        self._refuse_request()

    def _refuse_request(self) -> None:
        with suppress(ValueError):
            host = (urlsplit(self.path).netloc if "://" in self.path else self.path).rpartition("@")[2]
            hint = f"its operator may add it to {HOSTS}"
            self._server_forwarder.report(f"packages may not come from `{host[:100]}` ({hint})")
        self.send_error(403)

    def _send_answer(self, response: urllib3.BaseHTTPResponse, url: str) -> None:
        headers = {name: response.headers[name] for name in PASSED if name in response.headers}
        if location := response.headers.get("Location"):
            moved = name_inside(self._server_forwarder.origins, urljoin(url, location).encode())
            headers["Location"] = "".join(char for char in moved.decode() if " " < char < "\x7f")
        if self.command == "HEAD" or not _is_text(headers.get("Content-Type", "")):
            self._send_headers(response.status, {**headers, "Transfer-Encoding": "chunked"})
            if self.command != "HEAD":
                for block in self._read_blocks(response, self._server_forwarder.bytes_max):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
                if not self._server_forwarder.problem:  # what is cut off has no end, and is not taken for whole
                    self.wfile.write(b"0\r\n\r\n")
            return
        content = b"".join(self._read_blocks(response, TEXT_MAX))
        if len(content) > TEXT_MAX:
            self._server_forwarder.report(
                f"`{urlsplit(url).netloc}` answered with more than {TEXT_MAX >> 20} MiB of text"
            )
        if self._server_forwarder.problem:
            self.send_error(502)
            return
        content = name_inside(self._server_forwarder.origins, content)
        self._send_headers(response.status, {**headers, "Content-Length": str(len(content))})
        self.wfile.write(content)

    def _read_blocks(self, response: urllib3.BaseHTTPResponse, size_max: int) -> Iterator[bytes]:
        """Yield what comes, to the first block beyond the size; nothing more when all together is too large."""
        size = 0
        while size <= size_max and (block := response.read1(BLOCK)):
            if not self._server_forwarder.take(len(block)):
                return
            size += len(block)
            yield block

    def _send_headers(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serve_forwarder(forwarder: Forwarder, socket_path: Path | None) -> Iterator[str]:
    """Run a forwarder; yield the address of the proxy that the installer is to use.

    It answers on a Unix socket where an installer is isolated, else on a port of this machine, for who has its token.
    """
    if socket_path is None:
        forwarder.token = token_urlsafe(24)
    server = (
        _UnixServer(cast("Any", str(socket_path)), _Handler) if socket_path else _Server(("127.0.0.1", 0), _Handler)
    )
    server.forwarder = forwarder
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="forwarder", daemon=True)
    thread.start()
    try:
        yield NOWHERE if socket_path else f"http://mergeplan:{forwarder.token}@127.0.0.1:{server.server_address[1]}"
    finally:
        forwarder.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def private_socket() -> Iterator[Path]:
    """Yield a path for a socket that only this process can reach; it is short, since addresses of sockets must be."""
    with tempfile.TemporaryDirectory(prefix="mergeplan-") as folder:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield Path(f"/proc/self/fd/{descriptor}/forwarder")
        finally:
            os.close(descriptor)


def _is_text(content_type: str) -> bool:
    """Return True for the pages and answers in which origins name addresses."""
    return not content_type or "html" in content_type or "json" in content_type


def _describe_cause(error: BaseException) -> str:
    """Return the cause in fixed words, because a library's message may quote an address with its password."""
    if isinstance(error, urllib3.exceptions.SSLError):
        return "its certificate is not trusted"
    if isinstance(error, urllib3.exceptions.ProxyError):
        return "the proxy does not lead there"
    unreached = isinstance(error, urllib3.exceptions.NewConnectionError | OSError)
    timed_out = isinstance(error, urllib3.exceptions.TimeoutError) and not unreached
    return "it took too long" if timed_out else "it cannot be reached"
