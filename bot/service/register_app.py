"""Registers the GitHub App in a browser: a page of this machine sends the manifest, GitHub sends a code back.

The code is exchanged once, for the App's private key and its webhook's secret. Both go into files that their owner
alone may read; neither is printed.
"""

import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests

from mergeplan.bot.github import manifest
from mergeplan.bot.pages.render import headers, register_done, register_form, render_refusal
from mergeplan.bot.settings import API_VERSION
from mergeplan.planner.errors import RequestError

EXCHANGE_SECONDS = 30


@dataclass(frozen=True)
class Registration:
    name: str
    webhook_url: str
    api_url: str
    organization: str
    public: bool
    key_file: Path
    variables_file: Path
    api_version: str = API_VERSION
    start: str = field(default_factory=lambda: secrets.token_urlsafe(18))  # in the first page's address: nobody else's
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))  # comes back from GitHub

    def build_manifest(self, redirect_url: str) -> dict[str, Any]:
        return manifest.build_manifest(self.name, self.webhook_url, redirect_url, public=self.public)


def register_app(
    registration: Registration, port: int, open_page: Callable[[str], None], seconds: float
) -> manifest.Registered:
    """Serve the page until GitHub sent the code and the App is stored; raise RequestError if that takes too long."""
    for file in (registration.key_file, registration.variables_file):
        if file.exists():
            raise RequestError(f"`{file}` exists.", hint="Move it away, or name another: a key is never written over.")
    # raises for a wrong address before a page is opened
    manifest.form_address(registration.api_url, registration.organization, "")
    server = _Server(registration, port)
    thread = threading.Thread(target=server.serve_forever, name="register-app", daemon=True)
    thread.start()
    try:
        open_page(f"{server.address}/{registration.start}")
        if not server.ended.wait(seconds):
            raise RequestError(f"The App was not registered within {seconds:.0f} s.", hint="Run this again.")
    finally:
        server.shutdown()
        server.server_close()
    if isinstance(server.outcome, manifest.Registered):
        return server.outcome
    raise server.outcome or RequestError("The App was not registered.")


class _Server(ThreadingHTTPServer):
    """This machine's page and callback; it takes one code."""

    daemon_threads = True

    def __init__(self, registration: Registration, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.registration = registration
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.ended = threading.Event()
        self.outcome: manifest.Registered | RequestError | None = None
        self._taking = threading.Lock()

    def form(self) -> str:
        registration = self.registration
        target = manifest.form_address(registration.api_url, registration.organization, registration.state)
        made = registration.build_manifest(f"{self.address}/callback")
        return register_form(target, json.dumps(made, indent=2), manifest.web_address(registration.api_url))

    def take(self, code: str) -> tuple[int, str]:
        """Exchange the code, only the first one, and return the status and the page for the browser."""
        with self._taking:
            if self.outcome is None:
                try:
                    self.outcome = exchange_code(self.registration, code)
                except RequestError as error:
                    self.outcome = error
        if isinstance(self.outcome, RequestError):
            return 502, render_refusal("The App was not registered", self.outcome.message)
        return 200, register_done(self.outcome.slug, f"{self.outcome.page}/installations/new")


class _Handler(BaseHTTPRequestHandler):
    """A handler of two addresses: a page that cannot be guessed, and the callback that only GitHub's answer opens."""

    server: _Server

    def do_GET(self) -> None:
        registration, url = self.server.registration, urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self.headers.get("Host") != urlsplit(self.server.address).netloc:
            self._send_page(403, render_refusal("Not this way", "This page is of this machine alone."))
        elif hmac.compare_digest(url.path.encode(), f"/{registration.start}".encode()):
            self._send_page(200, self.server.form())
        elif url.path != "/callback" or not hmac.compare_digest(
            query.get("state", "").encode(), registration.state.encode()
        ):
            self._send_page(403, render_refusal("Not this way", "Begin with the address that the terminal shows."))
        elif not manifest.CODE.fullmatch(query.get("code", "")):
            self._send_page(400, render_refusal("GitHub sent no code", "Go back, and let GitHub make the App."))
        else:
            self._send_page(*self.server.take(query["code"]))
            self.server.ended.set()

    def _send_page(self, status: int, text: str) -> None:
        body = text.encode()
        aim = urlsplit(manifest.web_address(self.server.registration.api_url))
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers(f"'self' {aim.scheme}://{aim.netloc}").items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the addresses are secrets."""


def exchange_code(registration: Registration, code: str) -> manifest.Registered:
    """Exchange a code for the App and write files of mode 0600; create them before the code is spent."""
    made: list[Path] = []
    try:
        for file in (registration.key_file, registration.variables_file):
            try:
                os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except OSError as error:
                raise RequestError(f"`{file}` cannot be made: {error.strerror}.") from None
            made.append(file)
        app = manifest.parse_registration(_convert_code(registration, code))
    except BaseException:
        for file in made:
            file.unlink(missing_ok=True)
        raise
    registration.key_file.write_text(app.key)
    settings = {
        "MERGEPLAN_GITHUB_APP_ID": str(app.app_id),
        "MERGEPLAN_GITHUB_PRIVATE_KEY_PATH": str(registration.key_file.resolve()),
        "MERGEPLAN_WEBHOOK_SECRET": app.webhook_secret,
        **({"MERGEPLAN_GITHUB_API_URL": registration.api_url} if registration.api_url else {}),
    }
    registration.variables_file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return app


def _convert_code(registration: Registration, code: str) -> Mapping[str, Any]:
    """Return GitHub's answer to the code; raise RequestError, without the code, if it gives none."""
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": registration.api_version}
    address = manifest.conversion_address(registration.api_url, code)
    try:
        answer = requests.post(address, headers=headers, timeout=EXCHANGE_SECONDS, allow_redirects=False)
        read = answer.json() if answer.status_code == 201 else None
    except requests.RequestException as error:
        raise RequestError(f"GitHub did not answer: {type(error).__name__}.", hint="Run this again.") from None
    if not isinstance(read, dict):
        raise RequestError(
            f"GitHub refused the code with {answer.status_code}.", hint="A code lasts an hour and is good once."
        )
    return read
