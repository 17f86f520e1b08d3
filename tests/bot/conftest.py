"""A bot at work on a sandbox: webhook in, comment out. The planner is a scripted child unless a test needs it real."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import structlog
from pydantic import SecretStr

from mergeplan.bot.child.reader import RepositoryReader
from mergeplan.bot.child.warm import Warmth
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.tables import DELIVERIES
from mergeplan.bot.records import PullRecord
from mergeplan.bot.service.app import create_app
from mergeplan.bot.service.connections import server_config
from mergeplan.bot.service.serve import build_context
from mergeplan.bot.service.worker import Worker
from mergeplan.bot.settings import Settings
from mergeplan.planner.contract.wire import Line, read_line
from mergeplan_sandbox.server import QuickServer, Sandbox
from mergeplan_sandbox.state import CheckRun, Comment, ReviewState
from tests.bot.built_prod import BuiltProd
from tests.wire import check_line

SHOP = "ann/shop"
SECRET = "a-webhook-secret"  # noqa: S105 - of the sandbox
SCRIPT = Path(__file__).parent / "scripted_planner.py"
READER = RepositoryReader()  # of all benches: it starts a child for each text that is new to it
PATIENCE = 300.0  # for a machine that does other things too
PROJECT = {
    "config.yaml": "gateways: {}\n",
    "models/orders.sql": "SELECT 1 AS id\n",
    "models/totals.sql": "SELECT count(*) AS n FROM shop.orders\n",
    "README.md": "# Shop\n",
}
COLUMN = {"models/orders.sql": "SELECT 1 AS id, 2 AS more\n"}
FILTER = {"models/orders.sql": "SELECT 1 AS id WHERE true\n"}


@pytest.fixture(autouse=True)
def _plain_logs() -> None:
    """Log lines that can be read when a test fails, whatever the test before it made of them."""
    processors: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(key_order=["event"]),
    ]
    structlog.reset_defaults()
    structlog.configure(processors=processors)


class Bench:
    """The sandbox, the bot, and the questions that tests ask of both; with a `built` prod both know it already."""

    def __init__(self, folder: Path, built: BuiltProd | None = None, **changes: Any) -> None:
        self.folder = folder
        self.patience: float = changes.pop("patience", PATIENCE)
        self._door = socket.create_server(("127.0.0.1", 0))
        self._door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as uvicorn's own sockets have it
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self.github = Sandbox(folder / "github", webhook_url=f"{self.url}/webhook", secret=SECRET)
        if built:
            built.copy_to(folder, self.github.state)
        self.github.start()
        self.settings = settings_for(self.github, folder / "home", **changes)
        self.context = build_context(self.settings)
        self.context.reader = READER
        self.worker = Worker(self.context)
        self._server = QuickServer(server_config(create_app(self.context), "127.0.0.1", 0))
        self._thread = threading.Thread(target=self._server.run, args=([self._door],), daemon=True)
        self._thread.start()
        self.warmth = Warmth(self.settings, self.context.inbox, self.context.worker) if self.settings.warm else None
        if self.warmth:
            self.context.before_plan = self.warmth.ensure
        calls = len(self.github.calls)
        self.worker.start()
        if built:
            until(lambda: self._has_looked(calls), self.patience, "the bot's first look")
            self.idle()

    def stop(self) -> None:
        self._server.end()  # the worker ends meanwhile
        self.worker.stop()
        if self.warmth:
            self.warmth.stop()
        self._thread.join(10)
        self.github.stop()
        self.context.inbox.close()

    def _has_looked(self, calls: int) -> bool:
        """After so many calls pull requests were listed, and who listed them has ended."""
        is_listed = any(call.path == f"/repos/{SHOP}/pulls" for call in self.github.calls[calls:])
        return is_listed and not any("'sweep'" in thread.name for thread in threading.enumerate())

    # --- the scene ---

    def populate(self, project: dict[str, str]) -> None:
        """ann owns the shop, wim may write, rea may read; prod stands."""
        for login in ("ann", "wim", "rea"):
            self.github.add_user(login)
        self.github.create_repository(SHOP, project)
        self.github.set_permission(SHOP, "wim", "write")
        self.github.set_permission(SHOP, "rea", "read")
        self.github.install_app(SHOP)
        self.idle()

    def open(self, files: Mapping[str, str | None], branch: str = "change", title: str = "A change") -> int:
        """A pull request of wim's with those files, planned."""
        self.github.commit(SHOP, branch, files, title, author="wim")
        return self.github.open_pull_request(SHOP, branch, "main", title, author="wim")

    def say(self, number: int, text: str, author: str = "wim") -> int:
        """A comment, answered when this returns."""
        comment = self.github.comment(SHOP, number, text, author=author)
        self.idle()
        return comment

    def review(self, number: int, state: ReviewState = "APPROVED", author: str = "ann") -> int:
        """A review in a later second than the plan before it: in the same one it would be of no plan."""
        time.sleep(1.01 - time.time() % 1)
        return self.github.review(SHOP, number, state, author=author)

    def knobs(self, **turned: object) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        fresh = self.home / "knobs.fresh"
        fresh.write_text(json.dumps(turned))
        fresh.replace(self.home / "knobs.json")

    # --- what is ---

    @property
    def home(self) -> Path:
        return self.folder / "home" / SHOP

    def idle(self) -> None:
        """Returns when every webhook is delivered and every job is done."""

        def quiet() -> bool:
            if self.worker._held:
                return False  # without a question to the database
            self.github.wait_idle(self.patience)
            return self.context.inbox.queue.is_idle() and not self.context.inbox.commands.unseen()

        until(lambda: quiet() and quiet(), self.patience, "the bot to be idle")

    def record(self, number: int) -> PullRecord:
        return self.context.inbox.pulls.get(SHOP, number)

    def bot_comments(self, number: int) -> list[Comment]:
        return [comment for comment in self.github.comments(SHOP, number) if comment.author == self.github.bot_login]

    def plan(self, number: int) -> str:
        """The plan comment's text, '' when there is none."""
        return next((comment.body for comment in self.bot_comments(number) if "mergeplan:plan" in comment.body), "")

    def replies(self, number: int) -> list[str]:
        return [comment.body for comment in self.bot_comments(number) if "mergeplan:reply" in comment.body]

    def reactions(self, number: int, comment_id: int) -> list[str]:
        reply = next(comment for comment in self.github.comments(SHOP, number) if comment.id == comment_id)
        return [reaction.content for reaction in reply.reactions]

    def checks(self, sha: str) -> dict[str, CheckRun]:
        return {name.removeprefix("mergeplan / "): run for name, run in self.github.checks(SHOP, sha).items()}

    def conclusions(self, sha: str) -> dict[str, str | None]:
        return {name: run.conclusion for name, run in self.checks(sha).items()}

    def head(self, number: int) -> str:
        return self.github.pull_request(SHOP, number).head_sha

    def calls(self, verb: str = "", environment: str = "") -> list[dict[str, Any]]:
        """How the scripted planner was called."""
        path = self.home / "calls.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        every = [json.loads(line) for line in lines if line.endswith("\n")]  # the last may be on its way
        fits = [call for call in every if not verb or call["argv"][0] == verb]
        return [fit for fit in fits if not environment or environment in fit["argv"][1:2]]

    def planner_state(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.home / "scripted.json").read_text())
        return loaded


def settings_for(github: Sandbox, home: Path, *, person: str = "", **changes: Any) -> Settings:
    """Settings of the App, or of a service with a person's token instead."""
    fields: dict[str, Any] = {
        "webhook_secret": SecretStr(SECRET),
        "github_api_url": github.url,
        "github_app_id": github.app_id,
        "github_private_key": SecretStr(github.app_private_key),
        "home": home,
        "planner_command": (sys.executable, "-P", "-S", str(SCRIPT)),
        "write_spacing_seconds": 0.0,
        "settle_seconds": 0.3,
        "sweep_seconds": 3600.0,
        "progress_seconds": 0.2,
        "grace_seconds": 2.0,
        "warm": False,
    }
    if person:
        fields |= {"github_app_id": 0, "github_private_key": "", "github_token": github.add_user(person)}
    return Settings(**{**fields, **changes})


def until(holds: Callable[[], object], seconds: float = PATIENCE, what: str = "it") -> None:
    """Waits for something to hold; fails when it does not in time."""
    deadline = time.monotonic() + seconds
    pause, wait = threading.Event(), 0.01
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        pause.wait(wait)
        wait = min(1.3 * wait, 0.1)  # who asks often takes the time of what it waits for


def read_guids(inbox: Inbox) -> frozenset[str]:
    with inbox.database.reading() as connection:
        return frozenset(connection.execute(sa.select(DELIVERIES.c.guid)).scalars())


@pytest.fixture(name="wire")
def _wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every line that a planner child prints, real or scripted, is as docs/schema/plan.json publishes it."""
    wrong: list[str] = []

    def watch_line(text: str) -> Line | None:
        try:
            _ = check_line(text) if text.startswith("{") else None
        except ValueError as error:  # of either validator
            wrong.append(f"{error}: {text[:500]}")
        return read_line(text)

    monkeypatch.setattr("mergeplan.bot.child.planner_process.read_line", watch_line)
    yield
    assert not wrong


@pytest.fixture(name="open_bench")
def _open_bench(tmp_path: Path, wire: None) -> Iterator[Callable[..., Bench]]:
    """Benches that know what they are given, and no more."""
    made: list[Bench] = []

    def open_bench(**changes: Any) -> Bench:
        made.append(Bench(tmp_path / f"bench{len(made)}", **changes))
        return made[-1]

    yield open_bench
    for bench in made:
        bench.stop()


@pytest.fixture(name="make_bench")
def _make_bench(open_bench: Callable[..., Bench]) -> Callable[..., Bench]:
    """Benches with settings of their own, which build their prod."""

    def make(project: dict[str, str] = PROJECT, **changes: Any) -> Bench:
        bench = open_bench(**changes)
        bench.populate(project)
        return bench

    return make


@pytest.fixture(scope="session")
def built_prods() -> dict[str, BuiltProd]:
    """The prods that benches of this process built, by project and settings."""
    return {}


@pytest.fixture(name="copy_bench")
def _copy_bench(
    open_bench: Callable[..., Bench], built_prods: dict[str, BuiltProd], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Bench]:
    """Benches as `make_bench` makes them; of each project and settings one builds its prod, and others copy it."""

    def make(project: dict[str, str] = PROJECT, **changes: Any) -> Bench:
        key = repr((sorted(project.items()), sorted(changes.items())))
        if key not in built_prods:
            first = Bench(tmp_path_factory.mktemp("prod"), **changes)
            try:
                first.populate(project)
            finally:
                first.stop()
            built_prods[key] = BuiltProd.keep(first.folder, first.github.state)
        return open_bench(built=built_prods[key], **changes)

    return make


@pytest.fixture(name="bench")
def _bench(copy_bench: Callable[..., Bench]) -> Bench:
    """A bench whose prod is built."""
    return copy_bench()
