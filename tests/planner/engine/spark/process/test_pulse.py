"""A Spark that is watched is asked now and then; one that fails or hangs is noticed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from mergeplan.planner.engine.spark.process.warm import Pulse
from mergeplan.planner.errors import QueryError, RequestError, SparkUnavailable


def beats(ask: Callable[[], object], *, patience: float = 30.0) -> None:
    """Ask once, wait for the answer, and check it."""
    pulse = Pulse(ask, every=0.0, patience=patience)
    pulse.check()
    assert pulse._thread is not None
    pulse._thread.join(0.2)
    pulse.check()


def raises(error: Exception) -> Callable[[], object]:
    def ask() -> object:
        raise error

    return ask


def test_a_spark_that_answers_is_left_alone() -> None:
    beats(lambda: None)
    beats(raises(QueryError("There is no table.")))


def test_a_spark_that_ran_out_of_memory_is_noticed() -> None:
    with pytest.raises(RequestError, match="the warm Spark fails: Spark ran out of memory"):
        beats(raises(SparkUnavailable("Spark ran out of memory.")))


def test_a_spark_that_hangs_is_noticed_and_one_that_is_slow_is_not() -> None:
    release = threading.Event()

    beats(release.wait)
    with pytest.raises(RequestError, match="has not answered for"):
        beats(release.wait, patience=0.0)
    release.set()
