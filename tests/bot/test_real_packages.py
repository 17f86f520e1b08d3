"""A project's own packages through the service: its code imports them, and their versions count as its code does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.records import PullState
from tests.bot.child.test_packages import SECRET, source, wheel
from tests.bot.conftest import SHOP, Bench
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
    assert [each.name for each in outcome.plan.models if each.intervals] == ["shop.priced"], bench.plan(number)

    number = bench.open({"requirements.txt": "acme==1.0\nevil==1.0\n"}, "evil")
    bench.idle()
    assert bench.record(number).state is PullState.FAILED
    assert "packages cannot be installed" in bench.plan(number)
    assert SECRET not in bench.plan(number)
