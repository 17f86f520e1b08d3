"""What SparkEngine says of errors, and what is left when it is cancelled, on a real Spark."""

from __future__ import annotations

import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime
from queue import Queue
from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import Cancelled, MergeplanError, QueryError
from tests.planner.engine.spark.test_engine import ORDERS, column


@pytest.mark.parametrize(
    ("sql", "message", "condition", "place"),
    [
        ("SELECT\n  1 a, foo", "A column, .* with name `foo` cannot be resolved.", "UNRESOLVED_COLUMN", (2, 8)),
        ("SELECT 1 a\n  FRM x y", "Syntax error at or near 'FRM'.", "PARSE_SYNTAX_ERROR", (2, 3)),
        ("SELECT * FROM n.n", "The table or view `n`.`n` cannot be found.", "TABLE_OR_VIEW_NOT_FOUND", (1, 15)),
        ("SELECT 1 +\n  cast('x' AS int)", "The value 'x' .* because it is malformed.", "CAST_INVALID_INPUT", (2, 3)),
        ("SELECT id / 0 FROM range(3)", "Division by zero.", "DIVIDE_BY_ZERO", (1, 8)),
    ],
)
def test_an_error_is_a_sentence_with_its_place(
    engine: SparkEngine, sql: str, message: str, condition: str, place: tuple[int, int]
) -> None:
    with pytest.raises(QueryError) as caught:
        engine.fetch(sql)

    assert re.fullmatch(message, caught.value.message)
    assert (caught.value.condition or "").split(".")[0] == condition
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("sql", ["SELECT 1 a,\n  foo", "SELECT 1 a\n  FRM x", "\n  SELECT 1 a FROM b.c"])
def test_a_dry_run_knows_the_same_place(engine: SparkEngine, sql: str) -> None:
    with pytest.raises(QueryError) as dry:
        engine.schema(sql)
    with pytest.raises(QueryError) as run:
        engine.fetch(sql)

    assert (dry.value.message, dry.value.condition) == (run.value.message, run.value.condition)
    assert (dry.value.line, dry.value.column) == (run.value.line, run.value.column) != (0, 0)


def test_cancelling_ends_what_runs_and_nothing_that_comes_after(engine: SparkEngine) -> None:
    before = engine.jobs()
    with ThreadPoolExecutor(2) as pool:
        slow = [
            pool.submit(engine.fetch, f"SELECT count(*) FROM range(100000000000) WHERE id % {n} = 1") for n in (5, 7)
        ]
        while engine.jobs() < before + 2:
            threading.Event().wait(0.05)

        engine.cancel()

        for future in slow:
            with pytest.raises(Cancelled):
                future.result(timeout=30)
    assert column(engine, "SELECT 1") == [1]


def test_a_signals_handler_may_cancel_what_it_interrupts(engine: SparkEngine) -> None:
    before, main = engine.jobs(), threading.get_ident()

    def once_it_runs() -> None:
        while engine.jobs() == before:
            threading.Event().wait(0.05)
        signal.pthread_kill(main, signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, lambda *_: engine.cancel())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(once_it_runs)
        with pytest.raises(Cancelled):
            engine.fetch("SELECT count(*) FROM range(100000000000) WHERE id % 7 = 1")
    signal.signal(signal.SIGUSR1, former)


def test_the_catalog_answers_after_calls_of_it_were_interrupted(engine: SparkEngine) -> None:
    """Spark Connect interrupts what a client leaves behind: no plan that is cancelled may cost a connection."""
    jvm, handlers = engine._sessions.current.spark._jvm, Queue[Any]()  # type: ignore[union-attr]

    def change(number: int) -> None:
        handlers.put(jvm.java.lang.Thread.currentThread())
        with suppress(MergeplanError):
            engine.fetch(f"CREATE SCHEMA interrupted_{number}")
        with suppress(MergeplanError):
            engine.catalog.drop_schema_if_empty(f"interrupted_{number}")

    for number in range(12):
        caller = threading.Thread(target=change, args=(number,), daemon=True)
        caller.start()
        handler = handlers.get(timeout=60)
        caller.join(number / 200)
        handler.interrupt()
        caller.join(60)
        assert not caller.is_alive(), f"call {number} waits for a connection that never comes"


def test_a_cancelled_write_changes_nothing(engine: SparkEngine) -> None:
    engine.tables.create(ORDERS)
    engine.tables.replace(ORDERS, "SELECT 1 id, 'a' name")
    before = engine.jobs()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(engine.tables.replace, ORDERS, "SELECT id, '' name FROM range(10000000000)")
        while engine.jobs() == before:
            threading.Event().wait(0.05)

        engine.cancel()

        with pytest.raises(Cancelled):
            slow.result(timeout=30)
    assert column(engine, f"SELECT id FROM {ORDERS.name}") == [1]


def test_instants_are_told_in_utc_also_in_the_hour_that_comes_twice(engine: SparkEngine) -> None:
    sql = "SELECT timestamp'2024-10-27 00:30:00Z' a, timestamp'2024-10-27 01:30:00Z' b, null c, date'2024-01-01' d"

    (row,) = engine.fetch(sql).rows

    assert row[:2] == (datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 10, 27, 1, 30, tzinfo=UTC))
    assert row[2:] == (None, date(2024, 1, 1))
