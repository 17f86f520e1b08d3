"""A planner child that was kept ready: it does what any other does, knows nothing before, and outlives nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from mergeplan.bot.child.planner_process import Finished, Task, open_standby, run_planner
from mergeplan.bot.child.standby import Standby
from mergeplan.bot.context import PlannerCall
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.settings import Settings
from mergeplan.planner.isolation.processes import birth
from tests.bot.conftest import SHOP, Bench, until

PREPARES = """
import sys, time
from pathlib import Path
from mergeplan.bot.child.standby import Standby
standby = Standby(Path(sys.argv[1]), {"PATH": "/usr/bin:/bin"})
standby.prepare()
print(standby._child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(name="settings")
def _settings(tmp_path: Path) -> Settings:
    (tmp_path / "project").mkdir()
    return Settings(home=tmp_path, state_url=SecretStr(f"sqlite:///{tmp_path}/state.db"))


@pytest.fixture(name="standby")
def _standby(settings: Settings) -> Iterator[Standby]:
    made = open_standby(settings)
    assert made is not None
    made.prepare()
    yield made
    made.close()


def ran(
    settings: Settings, folder: Path, *arguments: str, standby: Standby | None = None
) -> tuple[list[int], Finished]:
    """A call's process, and how it ended."""
    pids: list[int] = []
    task = Task((*arguments, "--output", "json"), folder, SHOP, "run-1")
    ended = run_planner(
        settings, task, on_start=lambda pid, _: pids.append(pid), on_event=lambda line: None,
        should_stop=lambda: "", standby=standby,
    )  # fmt: skip
    return pids, ended


def write_project(folder: Path) -> Path:
    """A project of one model."""
    (folder / "models").mkdir(parents=True)
    (folder / "config.yaml").write_text("gateways:\n  spark:\n    connection: {type: spark}\n")
    (folder / "models/a.sql").write_text("MODEL (name shop.a, kind FULL);\nSELECT 1 AS id\n")
    return folder


def waiting(standby: Standby) -> int:
    assert standby._child is not None
    return standby._child.pid


def test_a_child_that_was_ready_does_what_a_started_one_does(settings: Settings, standby: Standby) -> None:
    """It is that very process, in the project's folder, with the secrets from standard input, once."""
    folder, ready = settings.home / "project", waiting(standby)
    (folder / "config.yaml").write_text("gateways:\n  spark:\n    connection: {type: spark}\nnonsense: 1\n")
    pids, ended = ran(settings, folder, "plan", "dev", standby=standby)
    others, cold = ran(settings, folder, "plan", "dev", standby=standby)

    assert pids == [ready] != others
    assert ended == cold
    assert "nonsense" in ended.outcome.problems[0].message
    assert ran(settings, folder, "environments", standby=standby)[1].outcome.environments == ()
    assert (settings.home / "state.db").exists()


def test_a_child_that_waits_knows_of_no_project_and_no_secret(settings: Settings, standby: Standby) -> None:
    pid = waiting(standby)
    until(lambda: Path(f"/proc/{pid}/environ").read_bytes(), what="its start")
    told = Path(f"/proc/{pid}/environ").read_bytes()

    assert b"MERGEPLAN" not in told.replace(b"MERGEPLAN_SPARK_", b"")  # those are of the machine
    assert b"state.db" not in told
    assert os.readlink(f"/proc/{pid}/cwd") == str(settings.home)


def test_a_child_that_died_while_it_waited_is_not_missed(settings: Settings, standby: Standby) -> None:
    dead = waiting(standby)
    os.kill(dead, signal.SIGKILL)
    until(lambda: not birth(dead), what="its end")
    pids, ended = ran(settings, settings.home / "project", "environments", standby=standby)

    assert pids != [dead]
    assert ended.outcome.environments == ()


def test_what_nobody_waits_for_leaves_the_ready_child_to_a_plan(bench: Bench, standby: Standby) -> None:
    """A new pull request is not to wait because an old one's environment is being dropped."""
    bench.context.standby, ready = standby, waiting(standby)
    job = Job("k", SHOP, 0, 0, 0, 0)
    ended = bench.context.plan(PlannerCall(job, bench.folder, ("environments",), "run-1"))

    assert ended.outcome.ok
    assert waiting(standby) == ready


@pytest.mark.prove
def test_the_next_child_waits_while_a_plan_is_carried_out(bench: Bench, standby: Standby) -> None:
    """It is started when the plan is shown: what follows may take hours."""
    folder, waits = write_project(bench.folder / "project"), list[bool]()
    bench.context.standby, ready = standby, waiting(standby)

    call = PlannerCall(Job("k", SHOP, 0, 0, 0, 0), folder, ("plan", "dev"), "run-1")
    bench.context.plan(call, on_event=lambda _: waits.append(standby._child is not None))

    assert (waits[0], waits[-1]) == (False, True)
    assert waiting(standby) != ready


def test_a_plan_goes_on_where_no_child_can_be_started_to_wait(bench: Bench) -> None:
    folder = write_project(bench.folder / "project")
    bench.context.standby = Standby(bench.folder / "nowhere", {})

    ended = bench.context.plan(PlannerCall(Job("k", SHOP, 0, 0, 0, 0), folder, ("plan", "dev"), "run-1"))
    assert ended.outcome.ok


def test_a_child_that_waits_ends_with_its_service_also_by_kill_9(tmp_path: Path) -> None:
    """Nobody has it on record: it sees the end of its standard input."""
    argv = [sys.executable, "-c", PREPARES, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        pid = int(service.stdout.readline())
        assert birth(pid)
        service.kill()
    until(lambda: not birth(pid), 60, "the end of the child")
