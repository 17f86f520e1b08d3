"""`kill -9` of the service, and its next start: nothing is lost, nothing is left half-done."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.records import Prod, ProdRecord, PullRecord, PullState
from mergeplan.planner.isolation.processes import birth
from mergeplan_sandbox.server import Sandbox
from tests.bot.conftest import COLUMN, PROJECT, SCRIPT, SECRET, SHOP, Bench, until


class Scene:
    """A sandbox, and a service that a test may kill."""

    def __init__(self, folder: Path) -> None:
        self.port = _own_port()
        self.home = folder / "home"
        self.github = Sandbox(
            folder / "github", webhook_url=f"http://127.0.0.1:{self.port}/webhook", secret=SECRET
        ).start()
        self.environ = {
            "PATH": os.environ["PATH"],
            "MERGEPLAN_WEBHOOK_SECRET": SECRET,
            "MERGEPLAN_GITHUB_API_URL": self.github.url,
            "MERGEPLAN_GITHUB_APP_ID": str(self.github.app_id),
            "MERGEPLAN_GITHUB_PRIVATE_KEY": self.github.app_private_key,
            "MERGEPLAN_HOME": str(self.home),
            "MERGEPLAN_PORT": str(self.port),
            "MERGEPLAN_PLANNER_COMMAND": f'["{sys.executable}", "-P", "-S", "{SCRIPT}"]',
            "MERGEPLAN_WRITE_SPACING_SECONDS": "0",
            "MERGEPLAN_SWEEP_SECONDS": "5",
            "MERGEPLAN_WARM": "false",
        }
        self.url = f"sqlite:///{self.home / 'bot.db'}"
        self.log = (folder / "service.log").open("ab")
        self.service: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        names = "from mergeplan.bot.service.serve import run_service; from mergeplan.bot.settings import load_settings"
        code = f"{names}; run_service(load_settings())"
        self.service = subprocess.Popen([sys.executable, "-c", code], env=self.environ, stderr=self.log)
        until(lambda: answers(self.port), what="the service to answer")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        assert self.service is not None
        self.service.send_signal(number)
        self.service.wait(120)

    def end(self) -> None:
        if self.service and self.service.poll() is None:
            self.kill(signal.SIGTERM)
        self.log.close()
        self.github.stop()

    def populate(self, project: dict[str, str] = PROJECT) -> None:
        for login in ("ann", "wim"):
            self.github.add_user(login)
        self.github.create_repository(SHOP, project)
        self.github.set_permission(SHOP, "wim", "write")
        self.github.install_app(SHOP)

    def open(self, files: Mapping[str, str] = COLUMN) -> int:
        self.github.commit(SHOP, "change", files, "A change", author="wim")
        return self.github.open_pull_request(SHOP, "change", "main", "A change", author="wim")

    def knobs(self, text: str) -> None:
        fresh = self.home / SHOP / "knobs.fresh"
        fresh.write_text(text)
        fresh.replace(self.home / SHOP / "knobs.json")  # a child may be reading it

    def record(self, number: int) -> PullRecord:
        with closing(Inbox(self.url)) as inbox:
            return inbox.pulls.get(SHOP, number)

    def prod(self) -> ProdRecord:
        with closing(Inbox(self.url)) as inbox:
            return inbox.prods.get(SHOP)

    def hanging(self) -> list[int]:
        """The planners that hang, or hung: nothing more comes of them until the knobs are turned."""
        file = self.home / SHOP / "hanging"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [int(line) for line in lines if line.endswith("\n")]

    def statuses(self, number: int) -> set[str]:
        head = self.github.pull_request(SHOP, number).head_sha
        return {run.status for run in self.github.checks(SHOP, head).values()}


def answers(port: int) -> bool:
    """True when a service listens there."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def _own_port() -> int:
    """A port that is free, and below those that the system hands out: it is to be free again after a kill."""
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311  # not for secrets
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture(name="scene")
def _scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    scene.start()
    scene.populate()
    until(lambda: scene.prod().revision == 1, what="prod")
    yield scene
    scene.end()


@pytest.mark.prove
def test_kill_9_during_a_plan_is_followed_by_its_end(scene: Scene) -> None:
    """Behaviours 16, 17: the next start ends the orphan, plans again, and no check stays in progress."""
    scene.knobs('{"hang": "pr", "hush": true}')
    number = scene.open()
    until(lambda: scene.hanging(), what="the run")
    (orphan,) = scene.hanging()
    scene.kill()
    assert birth(orphan)
    scene.start()
    until(lambda: not birth(orphan), what="the orphan's end")
    scene.knobs("{}")

    until(lambda: scene.record(number).state is PullState.PLANNED, what="the plan")
    until(lambda: scene.statuses(number) == {"completed"}, what="the checks")


def test_kill_9_during_a_promotion_is_followed_by_its_end(scene: Scene) -> None:
    """Behaviour 17: prod is whole, and the pull request says that it is in prod."""
    number = scene.open()
    until(lambda: scene.record(number).state is PullState.PLANNED, what="the plan")
    scene.knobs('{"hang": "prod"}')
    scene.github.merge(SHOP, number, author="ann")
    until(lambda: scene.hanging(), what="the promotion")
    scene.kill()
    scene.knobs("{}")
    scene.start()

    until(lambda: scene.record(number).state is PullState.PROMOTED, what="the promotion's end")
    until(lambda: scene.statuses(number) == {"completed"}, what="the checks")
    prod = json.loads((scene.home / SHOP / "scripted.json").read_text())["environments"]["prod"]
    assert (prod["revision"], prod["models"]["shop.orders"]) == (2, COLUMN["models/orders.sql"])


@pytest.mark.parametrize(("torn", "plans"), [({}, 0), ({"prod": ["shop.orders"]}, 1)])
def test_a_prod_whose_first_promotion_was_cut_off_is_finished_and_not_adopted(
    torn: dict[str, list[str]], plans: int, tmp_path: Path
) -> None:
    """Behaviour 17: a prod that stands is taken as it is, one that stands half is planned, which finishes it."""
    home = tmp_path / "home" / SHOP
    home.mkdir(parents=True)
    prod = {"revision": 1, "models": {}, "plan_id": "p", "tables": []}
    state = {"environments": {"prod": prod}, "overrides": {}, "history": {}, "torn": torn}
    (home / "scripted.json").write_text(json.dumps(state))
    bench = Bench(tmp_path)
    try:
        bench.populate(PROJECT)

        assert bench.context.inbox.prods.get(SHOP).state is Prod.READY
        assert len(bench.calls("plan", "prod")) == plans
        assert "torn" not in bench.planner_state() or not bench.planner_state()["torn"]
    finally:
        bench.stop()


@pytest.mark.prove
def test_kill_9_right_after_the_answer_loses_nothing(scene: Scene) -> None:
    """Behaviours 2, 16: what was answered with 2xx is done after a restart, once, though it comes again."""
    scene.knobs('{"ponder": "pr"}')
    number = scene.open()
    scene.github.wait_idle()
    scene.kill()
    opened = next(delivery for delivery in scene.github.deliveries if delivery.event == "pull_request")
    scene.knobs("{}")
    scene.start()
    scene.github.redeliver(opened.id)

    until(lambda: scene.record(number).state is PullState.PLANNED, what="the plan")
    until(lambda: scene.statuses(number) == {"completed"}, what="the checks, after the comment")
    scene.github.wait_idle()
    assert len([comment for comment in scene.github.comments(SHOP, number) if "mergeplan:plan" in comment.body]) == 1
    with closing(Inbox(scene.url)) as inbox:
        kinds = [news.kind for news in inbox.deliveries.news(f"{SHOP}#{number}", 0)]
    assert kinds.count("pull_request.opened") == 1


def test_sigterm_ends_the_planners_while_a_request_is_still_open(scene: Scene) -> None:
    """Behaviour 25: whoever sends slowly does not take the grace time of the work."""
    scene.knobs('{"hang": "pr"}')
    scene.open()
    until(lambda: scene.hanging(), what="the run")
    (child,) = scene.hanging()
    assert scene.service
    with socket.create_connection(("127.0.0.1", scene.port)) as slow:
        head = f"POST /webhook HTTP/1.1\r\nHost: bot\r\nContent-Length: 100\r\nX-Hub-Signature-256: sha256={'0' * 64}"
        slow.sendall(f"{head}\r\n\r\n{{".encode())
        until(lambda: answers(scene.port), what="an answer to a later request")
        scene.service.send_signal(signal.SIGTERM)
        until(lambda: not birth(child), what="the planner's end")
        slow.setblocking(False)
        with pytest.raises(BlockingIOError):
            slow.recv(1)


def test_sigterm_hands_the_work_back(scene: Scene) -> None:
    """Behaviour 25: the child ends within the grace time, and the next start goes on without a word from anybody."""
    scene.knobs('{"hang": "pr"}')
    number = scene.open()
    until(lambda: scene.hanging(), what="the run")
    (child,) = scene.hanging()
    scene.kill(signal.SIGTERM)
    assert not birth(child)
    scene.knobs("{}")
    scene.start()

    until(lambda: scene.record(number).state is PullState.PLANNED, what="the plan")
