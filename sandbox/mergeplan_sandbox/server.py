"""A GitHub that runs on a laptop: start it, act in it as a person would, and point a bot at its address.

    with Sandbox(webhook_url="http://127.0.0.1:8000/webhook", secret="s3cret") as github:
        github.create_repository("ann/shop", {"models/orders.sql": "SELECT 1 AS id"})
        github.install_app("ann/shop")
        github.commit("ann/shop", "more", {"models/orders.sql": "SELECT 2 AS id"}, "Another id", author="ann")
        number = github.open_pull_request("ann/shop", "more", "main", "Another id", author="ann")
        github.comment("ann/shop", number, "/plan", author="ann")

PyGithub talks to `github.url` unchanged; git clones `github.clone_url("ann/shop")` over HTTP.
What a person can do is in `stage.py`, what can be broken on purpose in `faults.py`.
"""

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mergeplan_sandbox import admin
from mergeplan_sandbox.api import api_app, api_checks, api_graphql, api_issues, api_pulls
from mergeplan_sandbox.api.limits import ApiError, not_found
from mergeplan_sandbox.courier import Courier
from mergeplan_sandbox.faults import Faults
from mergeplan_sandbox.gate import App as Application
from mergeplan_sandbox.gate import Gate, Receive, Scope, Send
from mergeplan_sandbox.git import git_http
from mergeplan_sandbox.pages import routes
from mergeplan_sandbox.stage import Stage
from mergeplan_sandbox.state import App, Hook, State, now
from mergeplan_sandbox.webhooks import Site, send_ping

APP_ID = 1001
APP_SLUG = "mergeplan"
KEY_FILE = "app.private-key.pem"
STOP_SECONDS = 5
# An accepted connection is a task of asyncio's in the loop's first round and known to uvicorn in its second.
ACCEPT_ROUNDS = 4
# The first parts of the paths that are the API's; all other paths are pages or git.
ROOTS = frozenset(
    ["repos", "repositories", "user", "users", "app", "app-manifests", "installation", "rate_limit", "graphql", "orgs"]
)


class QuickServer(uvicorn.Server):
    """A uvicorn that ends at once; its own loop looks ten times a second, and tests start many servers."""

    def end(self) -> None:
        self.should_exit = True
        if self.started:
            self._loop.call_soon_threadsafe(self._ending.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 10
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what listens, then idle connections; open requests have STOP_SECONDS, and no connection stays open."""
        await self._stop_accepting()
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        state, deadline = self.server_state, self._loop.time() + STOP_SECONDS
        for connection in list(state.connections):
            connection.shutdown()
        while (state.connections or state.tasks) and self._loop.time() < deadline:
            await asyncio.sleep(0.002)
        for task in state.tasks:
            task.cancel()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.sleep(0.002)
        await self.lifespan.shutdown()

    async def _stop_accepting(self) -> None:
        # asyncio loses an accepted connection whose transport is made after its server was closed.
        for listening in (one for server in self.servers for one in server.sockets):
            self._loop.remove_reader(listening.fileno())
        for _ in range(ACCEPT_ROUNDS):
            await asyncio.sleep(0)


class Sandbox(Stage):
    """The server; everything that a person can do on it comes from `Stage`."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        webhook_url: str | None = None,
        secret: str = "sandbox-secret",  # noqa: S107 - a laptop's default, shown to whoever asks
    ) -> None:
        """Create a server with git repositories under `folder`, or in a temporary one that ends with the sandbox."""
        self._temporary = folder is None
        self._host, self._port = host, port
        self.app_private_key, public_key = _make_keys()
        root = folder or Path(tempfile.mkdtemp(prefix="sandbox-"))
        state = State(
            root, "", App(APP_ID, APP_SLUG, public_key, now(), self.app_private_key), Hook(1, webhook_url, secret)
        )
        faults = Faults()
        super().__init__(Site(state, faults, Courier(state, faults)))
        self._server: QuickServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The API's base address, also of the pages and of git."""
        return self.state.base_url

    @property
    def app_id(self) -> int:
        """The App's id, for PyGithub's `Auth.AppAuth(app_id, app_private_key)`."""
        return self.state.app.id

    @property
    def bot_login(self) -> str:
        """The login under which the App comments."""
        return self.state.app.bot_login

    @property
    def webhook_secret(self) -> str:
        """What webhooks are signed with."""
        return self.state.hook.secret

    def start(self) -> Self:
        """Serve on `url` from a thread; port 0 takes a free one."""
        listening = socket.create_server((self._host, self._port))
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or each answer in two parts takes 40 ms
        port = listening.getsockname()[1]
        shown = "127.0.0.1" if self._host in ("0.0.0.0", "") else self._host  # noqa: S104 - compared, not bound
        self.state.base_url = f"http://{shown}:{port}"
        config = uvicorn.Config(
            _build_application(self),
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
        )
        self._server = QuickServer(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="sandbox-server", daemon=True
        )
        self._thread.start()
        self.site.courier.start()
        if self.state.hook.url:
            send_ping(self.site)
        return self

    def stop(self) -> None:
        self.site.courier.stop()
        if self._server and self._thread:
            self._server.end()
            self._thread.join(STOP_SECONDS + 1)
        if self._temporary:
            shutil.rmtree(self.state.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@functools.cache
def _make_keys() -> tuple[str, str]:
    # One pair a process: making a key takes longer than most tests.
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def _build_api(site: Site) -> Gate:
    def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return JSONResponse(error.body(site.state.base_url), error.status)

    def unknown(request: Request, error: Exception) -> Response:
        return JSONResponse(not_found().body(site.state.base_url), 404)

    parts = (api_app, api_graphql, api_issues, api_pulls, api_checks)
    routes = [route for part in parts for route in part.router.routes]
    app = Starlette(routes=routes, exception_handlers={ApiError: refuse, HTTPException: unknown})
    app.state.site = site
    return Gate(site, app)


def _build_application(sandbox: Sandbox) -> Application:
    """Return the API for its first path parts, and git, pages and the admin API for all others."""
    site = FastAPI(title="Sandbox", docs_url=None, redoc_url=None, openapi_url=None)
    site.state.site, site.state.stage = sandbox.site, sandbox
    for part in (admin, git_http, routes):
        site.include_router(part.router)
    rest = _build_api(sandbox.site)

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("path", "/").split("/")[1]
        await (rest if root in ROOTS else site)(scope, receive, send)

    return choose


def run_sandbox(
    host: str,
    port: int,
    folder: Path,
    webhook_url: str | None,
    secret: str,
    *,
    on_start: Callable[[Sandbox], None] | None = None,
) -> None:
    """Serve a sandbox until SIGINT or SIGTERM, as `mergeplan sandbox` does; `on_start` may print its address.

    The App's private key is written beside the repositories, for the bot to read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    old_handlers = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Sandbox(folder, host=host, port=port, webhook_url=webhook_url, secret=secret) as sandbox:
            _write_private(folder / KEY_FILE, sandbox.app_private_key)
            sandbox.adopt_repositories()
            if on_start:
                on_start(sandbox)
            ended.wait()
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
