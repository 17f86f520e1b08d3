"""An installer reaches the operator's hub or index with the operator's credentials, and never sees one of them."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from mergeplan.bot.child.forwarder import TEXT_MAX, Forwarder, private_socket, serve_forwarder
from mergeplan.bot.fetching.origins import HUB, HUB_INSIDE, hub_origins

from .certificate import serve_tls
from .listener import BINARY, JSON, Answer, Listener, serve_answers

INDEX = f"{HUB_INSIDE}api/v1/index.json"


@dataclass(frozen=True)
class Client:
    """An installer's side of a forwarder."""

    forwarder: Forwarder
    proxy: str

    def get(self, url: str = INDEX, *, redirects: bool = True) -> requests.Response:
        session = requests.Session()
        session.trust_env = False
        return session.get(
            url, proxies={"http": self.proxy, "https": self.proxy}, allow_redirects=redirects, timeout=30
        )


@contextmanager
def forwarding(hub: str, environ: Mapping[str, str] | None = None, bytes_max: int = 1 << 30) -> Iterator[Client]:
    """A client of a forwarder to a hub."""
    environ = {HUB: hub, **(environ or {})}
    forwarder = Forwarder(hub_origins(environ), environ, bytes_max=bytes_max)
    with serve_forwarder(forwarder, None) as proxy:
        yield Client(forwarder, proxy)


def basic(user_info: str) -> str:
    return f"Basic {b64encode(user_info.encode()).decode()}"


def test_credentials_of_the_hub_and_of_the_proxy_are_added_on_the_way() -> None:
    with serve_answers(lambda path: Answer(b'["http://hub.corp/token-in-path/a.tgz"]')) as proxy:
        environ = {"http_proxy": f"http://ann:p%40ss@127.0.0.1:{proxy.port}"}
        with forwarding("http://bot:hub-token@hub.corp/token-in-path/", environ) as client:
            answer = client.get()

    path, headers = proxy.requests[0]
    assert path == "http://hub.corp/token-in-path/api/v1/index.json"
    assert headers["Proxy-Authorization"] == basic("ann:p@ss")
    assert headers["Authorization"] == basic("bot:hub-token")
    assert answer.json() == ["http://hub.mergeplan/a.tgz"]


def test_a_host_in_no_proxy_is_reached_without_it() -> None:
    with (
        serve_answers(lambda path: Answer(b"[]")) as hub,
        serve_answers(lambda path: Answer()) as proxy,
        forwarding(hub.url, {"http_proxy": proxy.url, "no_proxy": "127.0.0.1"}) as client,
    ):
        assert client.get().json() == []

    assert not proxy.requests


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/x", "https://127.0.0.1:{port}/x", "http://localhost:{port}/"])
def test_no_other_address_is_reached(url: str) -> None:
    with (
        serve_answers(lambda path: Answer()) as other,
        serve_answers(lambda path: Answer()) as hub,
        forwarding(hub.url) as client,
    ):
        refused = url.format(port=other.port)
        try:
            assert client.get(refused).status_code == 403
        except requests.exceptions.ProxyError as error:
            assert "403" in str(error)  # either is right
        assert f"packages may not come from `{refused.split('/')[2]}`" in client.forwarder.problem

    assert other.requests == hub.requests == []


@pytest.mark.parametrize("path", ["../up", "%2e%2e/up", "a/..%2fup", "..\\up", "\x7f"])
def test_no_address_above_the_hub_is_reached(path: str) -> None:
    with serve_answers(lambda path: Answer()) as hub, forwarding(f"{hub.url}/below/") as client:
        client.forwarder.token = ""
        line = f"GET {HUB_INSIDE}{path} HTTP/1.1\r\nHost: hub.mergeplan\r\n\r\n"
        with socket.create_connection(("127.0.0.1", int(client.proxy.rpartition(":")[2])), 30) as connection:
            connection.sendall(line.encode())
            assert b" 403 " in connection.recv(100)

    assert hub.requests == []


def test_a_redirect_leads_to_no_other_address() -> None:
    with serve_answers(lambda path: Answer()) as other:
        moved = Answer(headers={"Location": f"{other.url}/secret"}, status=302)
        with serve_answers(lambda path: moved) as hub, forwarding(hub.url) as client:
            assert client.get(redirects=False).headers["Location"] == f"{other.url}/secret"
            assert client.get().status_code == 403

    assert other.requests == []


def test_a_redirect_within_the_hub_is_followed() -> None:
    def answer(path: str) -> Answer:
        return Answer(b'"here"') if path == "/moved" else Answer(headers={"Location": "/moved"}, status=301)

    with serve_answers(answer) as hub, forwarding(hub.url) as client:
        assert client.get().json() == "here"


@pytest.mark.parametrize(
    ("answer", "bytes_max", "problem"),
    [
        (Answer(bytes(1 << 20), BINARY, times=400), 20 << 20, "they are larger than 20 MiB"),
        (Answer(bytes(1 << 20), JSON, times=400), 1 << 30, f"answered with more than {TEXT_MAX >> 20} MiB of text"),
    ],
    ids=["file", "text"],
)
def test_an_answer_without_end_is_cut_off(answer: Answer, bytes_max: int, problem: str) -> None:
    with serve_answers(lambda path: answer) as hub, forwarding(hub.url, bytes_max=bytes_max) as client:
        try:
            assert client.get().status_code == 502
        except requests.exceptions.RequestException as error:
            assert "ended prematurely" in str(error) or "IncompleteRead" in str(error)
        assert problem in client.forwarder.problem


def test_a_hub_that_does_not_answer_is_named_without_its_password() -> None:
    with serve_answers(lambda path: Answer()) as hub:
        gone = f"bot:hub-token@127.0.0.1:{hub.port}"
    with forwarding(f"http://{gone}/") as client:
        assert client.get().status_code == 502
        assert client.forwarder.problem == f"`127.0.0.1:{hub.port}` does not answer (it cannot be reached)"


def test_who_has_not_its_token_asks_in_vain() -> None:
    def ask(listener: Listener, proxy: str) -> int:
        return requests.get(INDEX, proxies={"http": proxy}, timeout=30).status_code

    with serve_answers(lambda path: Answer()) as hub, forwarding(hub.url) as client:
        assert ask(hub, f"http://{client.proxy.rpartition('@')[2]}") == 407
        assert ask(hub, client.proxy.replace("mergeplan:", "mergeplan:x")) == 407
        assert hub.requests == []
        assert ask(hub, client.proxy) == 200


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")  # of a host that is trusted as it is
def test_certificates_are_checked_by_the_forwarder(tmp_path: Path) -> None:
    with serve_tls(tmp_path, b'["https://localhost/x"]') as (port, certificate):
        url = f"https://bot:hub-token@localhost:{port}/"
        with forwarding(url) as client:
            assert client.get().status_code == 502
            assert client.forwarder.problem.endswith("(its certificate is not trusted)")
        for environ in ({"PIP_CERT": str(certificate)}, {"PIP_TRUSTED_HOST": "localhost"}):
            with forwarding(url, environ) as client:
                assert client.get().json() == ["https://localhost/x"]


def test_a_path_of_a_temporary_folder_may_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (long := tmp_path / ("x" * 120)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    forwarder = Forwarder(hub_origins({}), {})
    with private_socket() as path, serve_forwarder(forwarder, path), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(b"GET http://else.corp/ HTTP/1.1\r\n\r\n")
        assert b" 403 " in connection.recv(100)
