"""What Airflow's side reads of the state: runs as tasks need them, one read for all, and a schedule that follows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.airflow.decisions import RunView, Step, decide
from mergeplan.airflow.graph import read_graph
from mergeplan.airflow.place import Place, StateError
from mergeplan.airflow.shared import Shared
from mergeplan.airflow.state import StateReader, state_reader
from mergeplan.planner.state.runs.run_records import AuditCount, RunStatus
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days
from tests.planner.cli.conftest import CommandLine
from tests.planner.session.scheduling.test_schedule import promoted as promoted  # a fixture
from tests.stores import open_store

NOW = datetime(2026, 1, 3, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return open_store(f"sqlite:///{tmp_path}/state.db")


@pytest.fixture
def reader(store: StateStore, tmp_path: Path) -> StateReader:
    return state_reader(Place(str(tmp_path), project=""), f"sqlite:///{tmp_path}/state.db")


def record(store: StateStore, status: RunStatus) -> None:
    store.runs.begin("d/r", "prod", 4, NOW)
    store.runs.expect("d/r", "prod", {"s.a": ("p.a", (days(1, 2),))})
    run = store.runs.get("d/r")
    assert run is not None
    model = replace(run.models["s.a"], status=status, rows=7, audits=(AuditCount("not_null", 2, False),))
    store.runs.change("d/r", "prod", [model])


def test_a_result_is_read_once_reported_and_then_means_a_cleared_task(store: StateStore, reader: StateReader) -> None:
    record(store, RunStatus.DONE)
    first = decide(reader.read_run("d/r"), "s.a")
    reader.report("d/r", "s.a")

    assert first.step is Step.SUCCEED
    assert first.models[0].data == {
        "model": "s.a", "table": "p.a", "intervals": [["2026-01-01", "2026-01-03"]], "rows": 7,
        "audits": [{"name": "not_null", "rows": 2, "blocking": False}],
    }  # fmt: skip
    assert decide(reader.read_run("d/r"), "s.a").step is Step.RESTATE
    assert (reader.read_run("d/none"), reader.latest_execution_time()) == (None, NOW)


def test_a_run_is_alive_while_its_environment_is_held(store: StateStore, reader: StateReader) -> None:
    record(store, RunStatus.RUNNING)
    with store.leases.hold("prod", "run of prod"):
        held = reader.read_run("d/r")
    free = reader.read_run("d/r")

    assert held is not None
    assert free is not None
    assert (held.alive, free.alive, free.status) == (True, False, "running")
    assert 0 <= free.quiet < 60


def test_what_all_tasks_ask_for_is_asked_once(store: StateStore, reader: StateReader) -> None:
    record(store, RunStatus.RUNNING)
    reads = []

    async def read() -> RunView | None:
        reads.append("d/r")
        return await asyncio.to_thread(reader.read_run, "d/r")

    async def ask() -> None:
        shared = Shared(read, 60)
        views = await asyncio.gather(*(shared.get() for _ in range(100)))
        assert len({id(view) for view in views}) == 1

    asyncio.run(ask())
    assert reads == ["d/r"]


def test_a_model_that_prod_dropped_is_known_after_the_promotion(promoted: CommandLine) -> None:
    url = f"sqlite:///{promoted.root}/.mergeplan/state.db"
    reader, store = StateReader(Place(str(promoted.root), project=""), url), open_store(url)
    store.runs.begin("d/r", "prod", 1, NOW)
    store.runs.end("d/r", RunStatus.DONE)
    view = reader.read_run("d/r")

    assert decide(view, "shop.daily").reason == "Nothing of `shop.daily` was due."
    assert decide(view, "shop.gone").reason == "`prod` does not have `shop.gone` any more: there is nothing to compute."


def test_the_schedule_file_follows_prod(promoted: CommandLine, tmp_path: Path) -> None:
    url, path = f"sqlite:///{promoted.root}/.mergeplan/state.db", tmp_path / "shop.json"
    reader = StateReader(Place(str(promoted.root), project=""), url)

    assert (reader.write_schedule(path), reader.write_schedule(path)) == (1, None)
    assert "shop.daily" in read_graph(path).models
    path.write_text("{}")
    assert reader.write_schedule(path) == 1
    with pytest.raises(StateError, match="There is no environment `dev`"):
        StateReader(Place(str(promoted.root), environment="dev", project=""), url).write_schedule(path)


def test_a_state_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="There is no state database at"):
        StateReader(Place(str(tmp_path), project=""), f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()
