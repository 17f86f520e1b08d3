"""Readers who join two of fifty views, from processes of their own, while promotion follows promotion.

`MERGEPLAN_VIEWS` and `MERGEPLAN_PROMOTIONS` say of how many; what was measured is printed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from planner.apply.events import silent
from planner.apply.promotion import Wanted, promote
from planner.engine.protocol import Connection, Stands, ViewText
from planner.engine.spark.engine import SparkEngine, open_engine
from planner.engine.table import Table
from planner.model.kind import Kind
from planner.model.model import Column, Model
from planner.snapshot.environment import Environment
from planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.killing import Reader, warm_spark

pytestmark = pytest.mark.prove

VIEWS = int(os.environ.get("MERGEPLAN_VIEWS", "50"))
PROMOTIONS = int(os.environ.get("MERGEPLAN_PROMOTIONS", "4"))
WAIT = 2.0
V = (Column("v", "int"),)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SparkEngine]]:
    home = tmp_path_factory.mktemp("window") / "home"
    with warm_spark(home), closing(open_engine(Connection(), home, wait=0)) as engine:
        yield home, engine


def built(store: StateStore, engine: SparkEngine, number: int) -> Environment:
    """A map of prod whose models all show this number; the two that are joined, the first and the last, are tables."""
    made = []
    for name in ("a", "z", *(f"m{each:03}" for each in range(VIEWS - 2))):
        kind = Kind.FULL if name in "az" else Kind.VIEW
        each = snapshot(Model(f"s.{name}", kind, f"models/{name}.sql", 1, "", "SELECT 1 AS v"), f"v{number}", ("v",))
        if kind is Kind.FULL:
            engine.tables.create(Table(each.table, V))
            engine.tables.replace(Table(each.table, V), f"SELECT {number} AS v")
        else:
            engine.catalog.swap_view(ViewText(each.table, f"SELECT {number} AS v", stands=Stands.NOTHING))
        store.tables.register(each.table, V)
        made.append(each)
    return environment("prod", *made)


def promoted(store: StateStore, engine: SparkEngine, new: Environment, wait: float | None) -> float:
    began = time.monotonic()
    with store.leases.hold("prod", "test") as lease:
        promote(store, engine, lease, Wanted(store.environments.get("prod"), new, wait_seconds=wait), emit=silent)
    return time.monotonic() - began


def test_readers_who_join_two_models_never_see_two_revisions(
    store: StateStore, spark: tuple[Path, SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 50: one by one they do; in atomic promotions of fifty views no reader ever does."""
    monkeypatch.setattr("tests.planner.killing.PAUSE", 0.0)
    home, engine = spark
    maps = [built(store, engine, number) for number in (1, 2)]
    promoted(store, engine, maps[0], None)
    mixed = {}
    for wait in (None, WAIT):
        with ExitStack() as stack:
            readers = [stack.enter_context(closing(Reader(home, ["s"]))) for _ in range(2)]
            for reader in readers:
                reader.round()
                reader.start()
            took = [promoted(store, engine, maps[(number + 1) % 2], wait) for number in range(PROMOTIONS)]
        reads = [each[1:] for reader in readers for each in reader.reads]
        mixed[wait] = [each for each in reads if len(set(each)) > 1]
        told = f"{len(mixed[wait])} of {len(reads)} reads were mixed, {sum(took) / len(took):.1f} s a promotion"
        sys.stderr.write(f"\n{VIEWS} views, {'atomic' if wait else 'one by one'}: {told}\n")
        assert all(len(each) == 2 for each in reads), "a reader failed"

    assert mixed[WAIT] == []
    assert mixed[None] != [], "this machine was too fast for the test to say anything"
