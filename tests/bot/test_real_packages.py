"""A project's own packages through the service and the Action: its code imports them, and their versions count."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.bot.records import PullState
from mergeplan.planner.isolation.probe import cannot
from tests.bot.child.test_packages import SECRET, source, wheel
from tests.bot.conftest import SECRET as BOT_SECRET
from tests.bot.conftest import SHOP, Bench
from tests.bot.service.test_action import workflow_on
from tests.safety.conftest import PROJECT

pytestmark = pytest.mark.prove

PRICED = """
import pandas as pd
from sqlmesh import model
from acme import RATE


@model("shop.priced", columns={"rate": "int"})
def execute(context, **kwargs):
    return pd.DataFrame({"rate": [RATE]})
"""


LOOKS = PRICED.replace("acme import RATE", "evil import FOUND").replace("RATE", "len(FOUND)")


def test_a_pull_request_with_a_package_of_its_own_is_built_and_a_new_version_of_it_computed(
    make_bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "links"
    wheel(links, "acme", "1.0", {"acme.py": "RATE = 7"})
    wheel(links, "acme", "2.0", {"acme.py": "RATE = 8"})
    source(tmp_path, 1)
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("MERGEPLAN_NOTIFY_URL", f"https://chat.example/{SECRET}")
    bench = make_bench(project=PROJECT, planner_command=(), warm=True, patience=300.0)

    number = bench.open({"requirements.txt": "acme==1.0\n", "models/priced.py": PRICED}, "first")
    bench.idle()
    assert bench.record(number).state is PullState.PLANNED, bench.plan(number)
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.context.inbox.prods.get(SHOP).revision == 2

    number = bench.open({"requirements.txt": "acme==2.0\n"}, "second")
    bench.idle()
    outcome = bench.record(number).outcome
    assert outcome is not None
    assert outcome.plan is not None
    assert [model.name for model in outcome.plan.models if model.intervals] == ["shop.priced"], bench.plan(number)

    number = bench.open({"requirements.txt": "acme==1.0\nevil==1.0\n"}, "evil")
    bench.idle()
    assert bench.record(number).state is PullState.FAILED
    assert "packages cannot be installed" in bench.plan(number)
    assert SECRET not in bench.plan(number)


@pytest.mark.skipif(bool(cannot()), reason="this machine cannot isolate")
def test_a_hostile_source_that_a_pull_request_asks_for_is_built_and_finds_no_secret(
    make_bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        source(tmp_path, server.getsockname()[1])
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
        monkeypatch.setenv("MERGEPLAN_NOTIFY_URL", f"https://chat.example/{SECRET}")
        bench = make_bench(project=PROJECT, planner_command=(), warm=True, packages_builds="allow")

        number = bench.open({"requirements.txt": "evil==1.0\n", "models/priced.py": LOOKS}, "evil")
        bench.idle()

    assert bench.record(number).state is PullState.PLANNED, bench.plan(number)
    output = "".join(path.read_text() for path in bench.home.rglob("evil.py"))
    assert "PermissionError" in output
    assert not {word for word in (SECRET, BOT_SECRET, "CONNECTED") if word in output + bench.plan(number)}


def test_the_action_installs_a_projects_package_and_refuses_a_hostile_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "links", "acme", "1.0", {"acme.py": "RATE = 7"})
    source(tmp_path, 1)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with workflow_on(tmp_path, monkeypatch, PROJECT) as workflow:
        monkeypatch.delenv("MERGEPLAN_PLANNER_COMMAND")
        assert workflow.push() == 0

        number = workflow.propose({"requirements.txt": "acme==1.0\n", "models/priced.py": PRICED})
        assert workflow.pull_request(number, "opened") == 0, workflow.summary.read_text()
        workflow.github.commit(SHOP, "change", {"requirements.txt": "acme==1.0\nevil==1.0\n"}, "Evil", author="wim")
        assert workflow.pull_request(number, "synchronize") == 1

    assert "packages cannot be installed" in workflow.summary.read_text()
    assert list((tmp_path / "home").rglob("acme.py"))
    assert not list((tmp_path / "home").rglob("evil.py"))
