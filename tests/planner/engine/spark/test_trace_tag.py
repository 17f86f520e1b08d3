"""Spark's jobs carry the trace that they are a step of, on a Spark of our own and over Connect."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.protocol import Connection, Server
from mergeplan.planner.engine.spark.catalog import session_conf
from mergeplan.planner.engine.spark.connect.connect_session import ConnectSession
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.session import trace_id

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.mark.parametrize("text", ["", TRACE, f"{PARENT}-x", f"00-{TRACE.upper()}-b7ad6b7169203331-01", "00-;-1-01"])
def test_what_is_no_traceparent_is_no_trace(text: str) -> None:
    assert trace_id({"TRACEPARENT": text}) == ""
    assert trace_id({"TRACEPARENT": PARENT}) == TRACE


def test_jobs_of_both_sorts_of_sessions_carry_the_trace(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    own = engine._sessions.current
    engine.fetch("SELECT 1")
    without = own.spark.sparkContext.getLocalProperty("spark.job.description")
    monkeypatch.setenv("TRACEPARENT", PARENT)
    engine.fetch("SELECT 1")
    connected = ConnectSession(Server(own.server().url, tuple(session_conf(Connection()).items())))
    try:
        connected.enter("era")
        assert f"trace-{TRACE}" in connected.spark.getTags()
    finally:
        connected.close()

    assert without == "mergeplan"
    assert own.spark.sparkContext.getLocalProperty("spark.job.description") == f"mergeplan, trace {TRACE}"
