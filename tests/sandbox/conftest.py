"""A sandbox, somebody who listens to its webhooks, and PyGithub without its pauses between calls."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from github import Auth, Github, GithubIntegration

from mergeplan_sandbox.server import Sandbox

SHOP = "ann/shop"


@dataclass
class Receiver:
    """A bot that only listens; `status` is what it answers."""

    url: str = ""
    status: int = 202
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def events(self) -> list[str]:
        return [headers["X-GitHub-Event"] for headers, _ in self.heard]


@pytest.fixture(name="receiver")
def _receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.heard.append((dict(self.headers.items()), body))
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}/webhook"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()


@contextmanager
def a_shop() -> Iterator[Sandbox]:
    """A shop of ann's with the App; wim may write, rea may read; a branch `more` changes the one model."""
    with Sandbox() as sandbox:
        for login in ("ann", "wim", "rea"):
            sandbox.add_user(login)
        sandbox.create_repository(SHOP, {"models/orders.sql": "SELECT 1 AS id\n", "README.md": "# Shop\n"})
        sandbox.set_permission(SHOP, "wim", "write")
        sandbox.install_app(SHOP)
        sandbox.commit(SHOP, "more", {"models/orders.sql": "SELECT 2 AS id\n"}, "Another id", author="wim")
        yield sandbox


@pytest.fixture(name="sandbox")
def _sandbox() -> Iterator[Sandbox]:
    with a_shop() as sandbox:
        yield sandbox


@pytest.fixture(name="number")
def _number(sandbox: Sandbox) -> int:
    return sandbox.open_pull_request(SHOP, "more", "main", "Another id\n\nBecause.", author="wim")


@pytest.fixture(name="github")
def _github(sandbox: Sandbox) -> Iterator[Callable[[str], Github]]:
    """PyGithub with a token; closed at the end."""
    made: list[Github] = []

    def connect(token: str) -> Github:
        client = Github(
            base_url=sandbox.url,
            auth=Auth.Token(token),
            retry=None,
            seconds_between_requests=0,
            seconds_between_writes=0,
        )
        made.append(client)
        return client

    yield connect
    for client in made:
        client.close()


@pytest.fixture(name="bot")
def _bot(sandbox: Sandbox, github: Callable[[str], Github]) -> Github:
    """PyGithub as the App's installation on the shop."""
    return github(sandbox.installation_token(SHOP))


@pytest.fixture(name="app")
def _app(sandbox: Sandbox) -> Iterator[GithubIntegration]:
    """PyGithub as the App itself."""
    auth = Auth.AppAuth(sandbox.app_id, sandbox.app_private_key)
    client = GithubIntegration(
        auth=auth, base_url=sandbox.url, retry=None, seconds_between_requests=0, seconds_between_writes=0
    )
    yield client
    client.close()


@pytest.fixture(name="api")
def _api(sandbox: Sandbox) -> Iterator[httpx.Client]:
    """Bare HTTP as the App's installation on the shop."""
    headers = {"Authorization": f"Bearer {sandbox.installation_token(SHOP)}"}
    with httpx.Client(base_url=f"{sandbox.url}/repos/{SHOP}", headers=headers, follow_redirects=True) as client:
        yield client
