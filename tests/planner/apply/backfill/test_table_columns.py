"""The columns of a table that keeps rows of an earlier query, wherever these rows go."""

from __future__ import annotations

from pathlib import Path

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.planner.daily import Daily

INTERVAL = "WHERE at BETWEEN @start_date AND @end_date"
KINDS = {
    "ranged": ("INCREMENTAL_BY_TIME_RANGE (time_column at, forward_only true", INTERVAL),
    "appended": ("INCREMENTAL_UNMANAGED (disable_restatement false", INTERVAL),
    "history": ("SCD_TYPE_2_BY_COLUMN (unique_key id, columns [name]", ""),
}
IGNORE = "on_destructive_change ignore, on_additive_change ignore"


def models(columns: str, policy: str, more: str = "") -> list[str]:
    return [
        f"MODEL (name shop.{name}, kind {kind}, {policy}){more});\nSELECT id, at, {columns} FROM raw.items {where}"
        for name, (kind, where) in KINDS.items()
    ]


def test_another_layout_keeps_columns_and_types_that_were_ignored_until_they_are_not(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    daily = Daily(tmp_path / "shop", engine, store)
    daily.has("1, 'a', date'2026-01-01'")
    daily.run("2026-01-02", *models("name, id + 0.5D AS size, id AS gone", IGNORE))
    after = "name, id AS size, 7 AS new"
    daily.run("2026-01-02", *models(after, IGNORE))

    assert not daily.run("2026-01-02", *models(after, IGNORE, ", clustered_by (id)")).failures
    for name in KINDS:
        assert daily.rows(f"shop.{name}", "id, size, gone") == [(1, 1.5, 1)]

    policy = IGNORE.replace("additive_change ignore", "additive_change allow")
    assert not daily.run("2026-01-02", *models(after, policy, ", clustered_by (name)")).failures
    for name in KINDS:
        assert daily.rows(f"shop.{name}", "id, size, gone, new") == [(1, 1.5, 1, None)]


def test_a_wider_type_stays_out_of_a_table_whose_model_ignores_what_is_added(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    daily = Daily(tmp_path / "shop", engine, store)
    daily.has("1, 'a', date'2026-01-01'")
    daily.run("2026-01-02", *models("name, id AS size", IGNORE))
    wider = "name, CAST(id AS BIGINT) AS size"

    assert not daily.run("2026-01-02", *models(wider, IGNORE)).failures
    for name in KINDS:
        assert daily.rows(f"shop.{name}", "DISTINCT typeof(size)") == [("int",)]

    policy = IGNORE.replace("additive_change ignore", "additive_change allow")
    assert not daily.run("2026-01-02", *models(f"{wider}, 7 AS new", policy)).failures
    for name in KINDS:
        assert daily.rows(f"shop.{name}", "size, typeof(size), new") == [(1, "bigint", None)]


def test_a_history_of_all_columns_begins_no_version_for_one_that_it_ignores(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    daily = Daily(tmp_path / "shop", engine, store)
    daily.has("1, 'a', date'2026-01-01'")
    head = f"MODEL (name shop.t, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *, {IGNORE}));\n"
    daily.run("2026-01-02", f"{head}SELECT id, name, at FROM raw.items")
    dropped = f"{head}SELECT id, name, 7 AS new FROM raw.items"
    daily.run("2026-01-02", dropped)

    daily.run("2026-01-03", dropped)
    assert daily.rows("shop.t", "name, at, valid_to") == [("a", "01-01", None)]

    daily.has("1, 'b', date'2026-01-01'")
    daily.run("2026-01-04", dropped)
    assert daily.rows("shop.t", "name, at, valid_to") == [("a", "01-01", "01-04 05"), ("b", None, None)]
