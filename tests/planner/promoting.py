"""Promotions of many views, and readers who join two of them meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.engine.protocol import Stands, ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.promotions import SwapOptions
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot

V = (Column("v", "int"),)
JOINED = "SELECT a.v, z.v FROM s.a CROSS JOIN s.z"


def build(store: StateStore, engine: SparkEngine, number: int, views: int) -> Environment:
    """A map of prod whose models all show this number; the two that are joined, the first and the last, are tables."""
    made = []
    for name in ("a", "z", *(f"m{number:03}" for number in range(views - 2))):
        kind = Kind.FULL if name in "az" else Kind.VIEW
        version = snapshot(Model(f"s.{name}", kind, f"models/{name}.sql", 1, "", "SELECT 1 AS v"), f"v{number}", ("v",))
        if kind is Kind.FULL:
            engine.tables.create(Table(version.table, V))
            engine.tables.replace(Table(version.table, V), f"SELECT {number} AS v")
        else:
            engine.catalog.swap_view(ViewText(version.table, f"SELECT {number} AS v", stands=Stands.NOTHING))
        store.tables.register(version.table, V)
        made.append(version)
    return environment("prod", *made)


def time_promotion(store: StateStore, engine: SparkEngine, new: Environment, wait: float | None) -> float:
    """Promote, and say how many seconds that took."""
    began = time.monotonic()
    with store.leases.hold("prod", "test") as lease:
        promote_views(
            store, engine, lease, Wanted(store.environments.get("prod"), new, swap=SwapOptions(wait)), emit=ignore_event
        )
    return time.monotonic() - began


@contextmanager
def reading(engine: SparkEngine) -> Iterator[list[tuple[Any, ...]]]:
    """What a thread reads that joins two views in a loop, while this lasts."""
    reads: list[tuple[Any, ...]] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            reads.append(engine.fetch(JOINED).rows[0])

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            yield reads
        finally:
            stop.set()
        reader.result()


def count_mixed(reads: list[tuple[Any, ...]]) -> int:
    """How many of them saw two revisions."""
    return sum(len(set(read)) > 1 for read in reads)
