"""A document is fetched from the operator's address and nowhere else, within its limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mergeplan.bot.fetching.documents import NotFetched, fetch_document


class Site(BaseHTTPRequestHandler):
    """`/document` has 1,000 bytes, `/moved` leads there, `/trickle` sends a byte now and then for ever."""

    def do_GET(self) -> None:
        self.send_response({"/moved": 302, "/gone": 404}.get(self.path, 200))
        if self.path == "/moved":
            self.send_header("Location", "/document")
        self.end_headers()
        try:
            while self.path == "/trickle":
                self.wfile.write(b"x")
                time.sleep(0.05)
            self.wfile.write(b"x" * 1_000)
        except ConnectionError:
            pass  # it was given up

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(name="site")
def _site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_an_address_and_a_file_give_the_document(site: str, tmp_path: Path) -> None:
    (tmp_path / "catalog.json").write_bytes(b"y")
    assert fetch_document(f"{site}/document") == b"x" * 1_000
    assert fetch_document(str(tmp_path / "catalog.json")) == b"y"


@pytest.mark.parametrize("path", ["moved", "gone"])
def test_no_redirect_is_followed_and_no_error_is_a_document(site: str, path: str) -> None:
    with pytest.raises(NotFetched, match="the answer is"):
        fetch_document(f"{site}/{path}")


def test_what_is_too_large_or_too_slow_is_given_up(site: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1_000)
    late: tuple[Callable[[], bytes], ...] = (
        lambda: fetch_document(f"{site}/document", largest=999),
        lambda: fetch_document(str(tmp_path / "large"), largest=999),
        lambda: fetch_document(f"{site}/document", longest_seconds=-1.0),
        lambda: fetch_document(f"{site}/trickle", longest_seconds=0.3),
    )
    for fetch in late:
        with pytest.raises(NotFetched):
            fetch()


def test_no_error_tells_the_address() -> None:
    with pytest.raises(NotFetched) as caught:
        fetch_document("http://127.0.0.1:9/catalog?token=s3cret")
    assert "s3cret" not in str(caught.value)
