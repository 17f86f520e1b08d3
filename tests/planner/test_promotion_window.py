"""Readers who join two of fifty views, from processes of their own, while promotion follows promotion.

`MERGEPLAN_VIEWS` and `MERGEPLAN_PROMOTIONS` say of how many; what was measured is printed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.state.store import StateStore
from tests.planner.killing import Reader, warm_spark
from tests.planner.promoting import build, time_promotion

pytestmark = pytest.mark.prove

VIEWS = int(os.environ.get("MERGEPLAN_VIEWS", "50"))
PROMOTIONS = int(os.environ.get("MERGEPLAN_PROMOTIONS", "4"))
WAIT = 2.0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SparkEngine]]:
    home = tmp_path_factory.mktemp("window") / "home"
    with warm_spark(home), closing(open_engine(Connection(), home, wait=0)) as engine:
        yield home, engine


def test_readers_who_join_two_models_never_see_two_revisions(
    store: StateStore, spark: tuple[Path, SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 50: one by one they do; in atomic promotions of fifty views no reader ever does."""
    monkeypatch.setattr("tests.planner.killing.PAUSE", 0.0)
    home, engine = spark
    maps = [build(store, engine, number, VIEWS) for number in (1, 2)]
    time_promotion(store, engine, maps[0], None)
    mixed = {}
    for wait in (None, WAIT):
        with ExitStack() as stack:
            readers = [stack.enter_context(closing(Reader(home, ["s"]))) for _ in range(2)]
            for reader in readers:
                reader.round()
                reader.start()
            took = [time_promotion(store, engine, maps[(number + 1) % 2], wait) for number in range(PROMOTIONS)]
        reads = [read[1:] for reader in readers for read in reader.reads]
        mixed[wait] = [read for read in reads if len(set(read)) > 1]
        told = f"{len(mixed[wait])} of {len(reads)} reads were mixed, {sum(took) / len(took):.1f} s a promotion"
        sys.stderr.write(f"\n{VIEWS} views, {'atomic' if wait else 'one by one'}: {told}\n")
        assert all(len(read) == 2 for read in reads), "a reader failed"

    assert mixed[WAIT] == []
    assert mixed[None] != [], "this machine was too fast for the test to say anything"
