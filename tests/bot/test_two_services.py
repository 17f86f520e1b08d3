"""Two services on one PostgreSQL, each on a home of its own: jobs are shared, taken over, and never done at once.

What the planner keeps (its state, the tables) is one for both, as with PostgreSQL and a Spark of one's own.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from mergeplan.bot.inbox.database import InboxDatabase
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.tables import RUNS
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.planner.state.database import IDLE_SECONDS
from mergeplan_sandbox.server import Sandbox
from tests.bot.conftest import PROJECT, SCRIPT, SECRET, SHOP, until
from tests.bot.test_crash import _own_port, answers
from tests.planner.conftest import new_postgresql, postgresql  # noqa: F401 - fixtures

pytestmark = pytest.mark.prove

LEASE = 45.0  # seconds after which a silent service's claims are over, with the time to notice


class Services:
    """A sandbox, a database, and as many services as a test starts."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.shared = folder / "shared"  # the planner's state and tables
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {name: _own_port() for name in "abc"}
        hook = f"http://127.0.0.1:{self.ports['a']}/webhook"
        self.github = Sandbox(folder / "github", webhook_url=hook, secret=SECRET).start()
        self.inbox = Inbox(url)
        self.log = (folder / "services.log").open("ab")

    def start(self, name: str) -> None:
        """A service on its own home; in the database it is one of many."""
        planner = ["/usr/bin/env", f"MERGEPLAN_HOME={self.shared}", sys.executable, "-P", "-S", str(SCRIPT)]
        environ = {
            "PATH": os.environ["PATH"],
            "MERGEPLAN_WEBHOOK_SECRET": SECRET,
            "MERGEPLAN_GITHUB_API_URL": self.github.url,
            "MERGEPLAN_GITHUB_APP_ID": str(self.github.app_id),
            "MERGEPLAN_GITHUB_PRIVATE_KEY": self.github.app_private_key,
            "MERGEPLAN_STATE_URL": self.url,
            "MERGEPLAN_HOME": str(self.folder / name),
            "MERGEPLAN_PORT": str(self.ports[name]),
            "MERGEPLAN_PLANNER_COMMAND": json.dumps(planner),
            "MERGEPLAN_WRITE_SPACING_SECONDS": "0",
            "MERGEPLAN_SWEEP_SECONDS": "5",
            "MERGEPLAN_WORKERS": "1",
            "MERGEPLAN_WARM": "false",
        }
        code = (
            "from mergeplan.bot.service.serve import run_service; from mergeplan.bot.settings import load_settings; "
            "run_service(load_settings())"
        )
        self.running[name] = subprocess.Popen([sys.executable, "-c", code], env=environ, stderr=self.log)
        until(lambda: answers(self.ports[name]), what=f"{name} to answer")

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends one service a signal, and waits for its end where the signal ends it."""
        self.running[name].send_signal(number)
        if number in (signal.SIGTERM, signal.SIGKILL):
            self.running.pop(name).wait(120)

    def end(self) -> None:
        for name in tuple(self.running):
            self.running[name].send_signal(signal.SIGCONT)
            self.signal(name, signal.SIGTERM)
        self.log.close()
        self.inbox.close()
        self.github.stop()

    def populate(self) -> None:
        for login in ("ann", "wim"):
            self.github.add_user(login)
        self.github.create_repository(SHOP, PROJECT)
        self.github.set_permission(SHOP, "wim", "write")
        self.github.install_app(SHOP)
        until(lambda: self.inbox.prods.get(SHOP).revision == 1, what="prod")

    def open(self, index: int) -> int:
        """A pull request that adds a model of its own."""
        files = {f"models/new{index}.sql": f"SELECT {index} AS id\n"}
        self.github.commit(SHOP, f"change{index}", files, "A change", author="wim")
        return self.github.open_pull_request(SHOP, f"change{index}", "main", "A change", author="wim")

    def knobs(self, **turned: object) -> None:
        fresh = self.shared / "knobs.fresh"
        fresh.write_text(json.dumps(turned))
        fresh.replace(self.shared / "knobs.json")

    def hanging(self) -> int:
        file = self.shared / "hanging"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def record(self, number: int) -> PullRecord:
        return self.inbox.pulls.get(SHOP, number)

    def wait_until_state(self, numbers: list[int], state: PullState, seconds: float = 200.0) -> None:
        """Returns when all of them stand there, with one plan comment each and no check in progress."""
        until(lambda: {self.record(number).state for number in numbers} == {state}, seconds, state.value)
        until(lambda: all(self._statuses(number) == {"completed"} for number in numbers), what="the checks")
        for number in numbers:
            said = [c for c in self.github.comments(SHOP, number) if "mergeplan:plan" in c.body]
            assert len(said) == 1

    def _statuses(self, number: int) -> set[str]:
        head = self.github.pull_request(SHOP, number).head_sha
        return {run.status for run in self.github.checks(SHOP, head).values()}

    def runs(self) -> list[tuple[str, str, str, float, float]]:
        """Queue key, purpose, process, begin and end of every run."""
        with closing(InboxDatabase(self.url)) as database, database.reading() as connection:
            rows = connection.execute(sa.select(RUNS).order_by(RUNS.c.started_at))
            return [(r.queue_key, r.purpose, r.worker, r.started_at, r.ended_at or 1e12) for r in rows]


@pytest.fixture(name="services")
def _services(tmp_path: Path, new_postgresql: Callable[[], str]) -> Iterator[Services]:  # noqa: F811
    services = Services(tmp_path, new_postgresql())
    services.start("a")
    services.populate()
    services.start("b")
    yield services
    services.end()


def test_jobs_are_shared_promotions_follow_each_other_and_a_rolling_restart_loses_nothing(services: Services) -> None:
    """Behaviours 11, 25: both services work; SIGTERM of one and the start of another in mid-run cost nobody a word."""
    services.knobs(ponder="pr")  # until both are at it
    numbers = [services.open(index) for index in range(4)]
    until(lambda: len({worker for *_, worker, _, ended in services.runs() if ended == 1e12}) == 2, what="both at work")
    services.start("c")
    services.signal("b", signal.SIGTERM)
    services.knobs()
    services.wait_until_state(numbers, PullState.PLANNED)

    for number in numbers:
        services.github.merge(SHOP, number, author="ann")
    services.wait_until_state(numbers, PullState.PROMOTED)
    prod = sorted((began, ended) for key, _, _, began, ended in services.runs() if key.endswith("@prod"))
    assert all(ended <= began for (_, ended), (began, _) in itertools.pairwise(prod))
    assert services.inbox.prods.get(SHOP).revision == 5
    assert len({worker for _, _, worker, *_ in services.runs()}) >= 2


def test_what_a_dead_or_a_standing_service_was_at_is_taken_over(services: Services) -> None:
    """Behaviours 16, 17: killed with its machine, or stopped for a while: the other goes on, and neither undoes it."""
    services.knobs(hang="pr", hush=True)
    number = services.open(1)
    until(lambda: services.hanging() == 1, what="the run")
    (holder,) = services.inbox.queue.owners()
    pid = int(holder.split(":")[1])
    at_it = next(name for name, process in services.running.items() if process.pid == pid)
    services.signal(at_it, signal.SIGSTOP)
    # Stopped within a transaction, it keeps its turn until the database ends that.
    until(lambda: services.hanging() == 2, 3 * LEASE + IDLE_SECONDS, "the other one's run")
    services.signal(at_it, signal.SIGCONT)
    until(lambda: _is_lost(services), 60, "the first to notice")
    assert services.inbox.queue.owners() not in ((), (holder,))
    services.knobs()
    services.wait_until_state([number], PullState.PLANNED)


def _is_lost(services: Services) -> bool:
    return '"event": "job_lost"' in (services.folder / "services.log").read_text()
