"""Readers that look at a table while a batch is written into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.planner.daily import Daily
from tests.planner.engines import Double

WHERE = "FROM raw.items WHERE at BETWEEN @start_date AND @end_date"
MODELS = {
    "a unit that is not over": f"INCREMENTAL_BY_TIME_RANGE (time_column at), allow_partials true);\nSELECT at {WHERE}",
    "an audit that takes rows back": (
        f"INCREMENTAL_BY_UNIQUE_KEY (unique_key id), audits (not_null(columns := (name))));\nSELECT id, name {WHERE}"
    ),
}


class Looking(Double):
    """An engine where a reader marks a table as it writes it."""

    def __init__(self, engine: Any, store: StateStore) -> None:
        super().__init__(engine)
        self.store = store
        self.seen = dict[str, str]()

    def replace_interval(self, table: Any, *arguments: Any) -> Any:
        self.seen |= self.store.contents.mark_tables([table.name]) or {}
        return self._engine.tables.replace_interval(table, *arguments)

    def merge(self, table: Any, *arguments: Any) -> Any:
        self.seen |= self.store.contents.mark_tables([table.name]) or {}
        return self._engine.tables.merge(table, *arguments)


@pytest.mark.parametrize("case", MODELS)
def test_a_mark_of_during_a_write_is_none_of_its_rows(
    tmp_path: Path, engine: SparkEngine, store: StateStore, case: str
) -> None:
    daily, model = Daily(tmp_path / "shop", engine, store), f"MODEL (name shop.t, kind {MODELS[case]}"
    daily.has("1, 'a', date'2026-01-01'")
    daily.run("2026-01-02", model)
    daily.has("1, null, date'2026-01-02'")
    looking = Looking(engine, store)

    daily.run("2026-01-03" if "audits" in model else "2026-01-02", model, engine=looking)  # type: ignore[arg-type]

    assert looking.seen
    assert store.contents.mark_tables(looking.seen) != looking.seen
