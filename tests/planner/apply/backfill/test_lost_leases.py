"""A run that slept for longer than its lease lasts, and wakes up in the middle of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import LeaseHeld
from mergeplan.planner.state.store import StateStore
from tests.planner.engines import Double
from tests.planner.shop import plan_and_apply, rows, write_shop
from tests.stores import open_store, take_lease_over

TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT {} AS n"
ONLY = dict.fromkeys(("items", "apart", "shown", "daily"), "")


class Sleeping(Double):
    """An engine that sleeps before it replaces a table, while another process takes over and writes that table."""

    def __init__(self, engine: Any, store: StateStore) -> None:
        super().__init__(engine)
        self.store = store

    def replace(self, table: Any, *arguments: Any, **options: Any) -> Any:
        take_lease_over(self.store, table_lease(table.name))
        return self._engine.tables.replace(table, *arguments, **options)


def test_a_run_whose_lease_was_taken_over_writes_no_rows(engine: SparkEngine, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/state.db")
    plan_and_apply(write_shop(tmp_path / "shop", **ONLY, total=TOTAL.format(1)), engine, store)
    edited = write_shop(tmp_path / "shop", **ONLY, total=TOTAL.format(2))

    with pytest.raises(LeaseHeld, match="another process took it over"):
        plan_and_apply(edited, Sleeping(engine, store), store)  # type: ignore[arg-type]

    (new,) = (name for name in store.tables.all() if rows(engine, f"SELECT * FROM {name}") != [(1,)])
    assert rows(engine, f"SELECT * FROM {new}") == []
