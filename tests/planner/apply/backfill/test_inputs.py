"""The inputs by which a run knows that a table holds its rows already."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from mergeplan.planner.apply.events import BatchDone, Event
from mergeplan.planner.apply.executor import ApplyOptions
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.plan.build import build_run
from mergeplan.planner.plan.schedule import Loaded, Window
from tests.planner.shop import ALONE, NOW, carry_out, plan_and_apply, write_shop
from tests.stores import open_store

TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT CAST(CAST(0 AS TIMESTAMP) AS STRING) AS at"


def test_a_run_under_other_settings_of_spark_computes_a_table_whose_inputs_are_the_same(
    tmp_path: Path, engine: SparkEngine
) -> None:
    store, project = open_store(f"sqlite:///{tmp_path / 'state.db'}"), write_shop(tmp_path, **ALONE | {"total": TOTAL})
    plan_and_apply(project, engine, store)

    def run(days: int, spark: str) -> list[bool]:
        events, now = list[Event](), NOW + timedelta(days=days)
        loaded = Loaded(store.intervals.load_timelines(store.tables.all()))
        due = build_run(store.environments.get("prod"), loaded, Window(now))
        carry_out(due, project, engine, store, ApplyOptions(now, events.append, spark=spark))
        return [event.unchanged for event in events if isinstance(event, BatchDone)]

    assert [run(1, "UTC"), run(2, "UTC"), run(3, "Asia/Tokyo")] == [[False], [True], [False]]
