"""Runs with an id when something is in the way: each ends in a sentence, and none in a wrong "nothing to do"."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.state.runs.run_records import RunStatus
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days
from tests.planner.cli.conftest import CommandLine
from tests.planner.session.scheduling.test_schedule import promoted as promoted  # a fixture
from tests.planner.shop import write_shop

JSON = ("run", "--run-id", "d/r", "--output", "json")
NOW = datetime(2026, 1, 3, tzinfo=UTC)


def test_of_two_runs_of_one_id_the_second_touches_no_record(promoted: CommandLine) -> None:
    store = promoted.state
    store.runs.begin("d/r", "prod", 1, NOW)
    store.runs.expect("d/r", "prod", {"shop.daily": ("t", ())})
    before = store.runs.get("d/r")
    with store.leases.hold("prod", "run of prod"):
        second = promoted(*JSON)

    assert (second.code, second.result["skipped"].startswith("`prod` is being run already, since ")) == (0, True)
    assert store.runs.get("d/r") == before
    store.close()


def test_a_run_of_an_environment_that_is_not_there_fails_and_says_so(tmp_path: Path) -> None:
    """Nothing is due in it, and that would be the wrong answer."""
    write_shop(tmp_path)
    StateStore(f"sqlite:///{tmp_path}/.mergeplan/state.db").close()
    ran = CommandLine(tmp_path)(*JSON)

    assert ran.code == 1
    assert ran.lines[0]["message"].startswith("There is no environment `prod`")


def test_a_state_that_is_locked_fails_the_run_in_a_sentence(
    promoted: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = promoted.root / ".mergeplan/state.db"
    monkeypatch.setenv("MERGEPLAN_STATE_URL", f"sqlite:///{file}?timeout=0.2")
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = promoted(*JSON)
        other.execute("ROLLBACK")
    other.close()

    assert ran.code == 1
    assert "locked" in ran.lines[0]["message"]
    assert "Traceback" not in ran.err


def test_an_id_of_another_environment_is_refused(promoted: CommandLine) -> None:
    store = promoted.state
    store.runs.begin("d/r", "dev", 1, NOW)
    store.runs.end("d/r", RunStatus.DONE)
    store.close()

    assert promoted(*JSON).lines[0]["message"] == "The run `d/r` is one of the environment `dev`."


def test_a_restatement_of_a_model_that_prod_dropped_names_it(promoted: CommandLine) -> None:
    store = promoted.state
    store.runs.begin("d/r", "prod", 1, NOW)
    store.runs.expect("d/r", "prod", {"shop.gone": ("t", (days(1, 2),))})
    store.close()
    ran = promoted(*JSON, "--restate-model", "shop.gone")

    assert ran.code == 1
    assert "shop.gone" in json.dumps(ran.lines)
