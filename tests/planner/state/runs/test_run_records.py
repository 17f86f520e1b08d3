"""Runs with an id: what was due is kept under it, also when the run is taken up again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.runs.run_records import AuditCount, ModelRun, RunRecord, RunStatus
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
NOW = datetime(2026, 1, 3, tzinfo=UTC)


def begin(store: StateStore, id: str = "r1", environment: str = "prod") -> None:
    store.runs.begin(id, environment, 4, NOW)


def record(store: StateStore, id: str = "r1") -> RunRecord:
    run = store.runs.get(id)
    assert run is not None
    return run


def test_a_model_is_due_then_done_with_its_rows_and_audits(store: StateStore) -> None:
    begin(store)
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(1, 2),))})
    due = record(store).models["s.a"]
    done = replace(due, status=RunStatus.DONE, rows=7, seconds=1.5, audits=(AuditCount("not_null", 0, True),))
    store.runs.change("r1", "prod", [done])

    kept = record(store).models["s.a"]
    assert replace(kept, at=None) == replace(done, at=None)
    assert (due.status, due.intervals, record(store).execution_time) == (RunStatus.DUE, (days(1, 2),), NOW)
    assert store.runs.get("r2") is None


def test_a_run_that_is_taken_up_keeps_the_time_and_rows_of_what_failed(store: StateStore) -> None:
    begin(store)
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(1, 3),)), "s.b": ("p.b", (days(1, 2),))})
    a, b = (record(store).models[name] for name in ("s.a", "s.b"))
    failed = replace(a, status=RunStatus.FAILED, rows=5)
    store.runs.change("r1", "prod", [failed, replace(b, status=RunStatus.DONE, rows=9)])
    store.runs.end("r1", RunStatus.FAILED)
    begin(store)
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(2, 3),))})

    models = record(store).models
    assert (models["s.a"].status, models["s.a"].intervals, models["s.a"].rows) == (RunStatus.DUE, (days(1, 3),), 5)
    assert (models["s.b"].status, models["s.b"].rows) == (RunStatus.DONE, 9)
    assert (record(store).status, record(store).ended_at) == (RunStatus.RUNNING, None)


def test_what_is_computed_again_keeps_the_time_of_its_run(store: StateStore) -> None:
    begin(store)
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(2, 3),))})
    store.runs.change("r1", "prod", [replace(record(store).models["s.a"], status=RunStatus.DONE, rows=5)])
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(1, 3),))}, again=True)  # with a lookback

    assert (record(store).models["s.a"].intervals, record(store).models["s.a"].rows) == ((days(2, 3),), 0)


def test_what_is_open_when_a_run_ends_has_failed_with_it(store: StateStore) -> None:
    begin(store)
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(1, 2),))})
    store.runs.end("r1", RunStatus.FAILED, "Spark went away.")

    assert record(store).message == "Spark went away."
    assert record(store).models["s.a"].status is RunStatus.FAILED
    assert record(store).models["s.a"].message == "Spark went away."


def test_a_result_is_reported_until_it_changes(store: StateStore) -> None:
    begin(store)
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(1, 2),))})
    store.runs.report("r1", "s.a")
    reported = record(store).models["s.a"]
    store.runs.change("r1", "prod", [reported])

    assert reported.is_reported
    assert not record(store).models["s.a"].is_reported
    assert not ModelRun("s.b", "p.b", RunStatus.DUE).is_reported


def test_an_id_belongs_to_one_environment(store: StateStore) -> None:
    begin(store)
    with pytest.raises(RequestError, match=r"The run `r1` is one of the environment `prod`\."):
        begin(store, environment="dev")
    assert (store.runs.latest_execution_time("prod"), store.runs.latest_execution_time("dev")) == (NOW, None)


def test_runs_of_a_quarter_ago_are_forgotten_with_their_models(store: StateStore) -> None:
    begin(store)
    store.runs.expect("r1", "prod", {"s.a": ("p.a", (days(1, 2),))})
    with store.database.writing() as tx:
        tx.execute(tx.update(t.runs).values(began_at=tx.now() - timedelta(days=91)))
    begin(store, "r2")

    assert (store.runs.get("r1"), record(store, "r2").models) == (None, {})
    with store.database.reading() as tx:
        assert tx.execute(tx.select(t.run_models)).all() == []
