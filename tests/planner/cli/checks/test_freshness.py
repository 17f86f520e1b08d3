"""`mergeplan freshness`: the ages of tables, on a real Spark."""

from __future__ import annotations

from collections.abc import Callable

from tests.planner.cli.conftest import TODAY, CommandLine

Shop = Callable[..., CommandLine]
TABLES = """
- name: raw.orders
  owner: till
  freshness: {warn_after: 2 hours, error_after: 1 day, loaded_at: at, filter: id < 3}
- name: raw.gone
  freshness: {error_after: 1 day}
"""
ORDERS = """SELECT 1 AS id, current_timestamp() - INTERVAL 3 HOURS AS at
    UNION ALL SELECT 3, current_timestamp()"""
READER = "MODEL (name shop.total, kind FULL);\nSELECT * FROM raw.orders"
LATE = "MODEL (name shop.late, kind FULL, freshness (warn_after '1 day', error_after '2 days'));\nSELECT 1 AS a"


def test_each_table_is_judged_and_the_exit_code_says_the_worst(shop: Shop) -> None:
    mergeplan = shop(shown="", apart="", daily="", items="", total=READER, late=LATE)
    mergeplan.write("external_models.yaml", TABLES)
    for statement in ("CREATE SCHEMA raw", f"CREATE TABLE raw.orders AS {ORDERS}"):
        assert mergeplan("fetchdf", statement).code == 0
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0

    run = mergeplan("freshness", "--output", "json")

    rows = {row["model"]: row for row in run.result["freshness"]}
    assert {name: (row["status"], row["measured_by"]) for name, row in rows.items()} == {
        "raw.orders": ("warn", "rows"),  # of the rows with an id below 3
        "raw.gone": ("unknown", "last write"),
        "shop.late": ("error", "intervals"),  # no run since TODAY
    }
    assert 10_700 < rows["raw.orders"]["age_seconds"] < 12_000
    assert (run.code, run.result["ok"], rows["raw.orders"]["owner"]) == (4, False, "till")
    assert [mergeplan("freshness", "--model", name).code for name in ("raw.orders", "raw.gone")] == [0, 1]
    shown = mergeplan("freshness", "--model", "shop.late").out
    assert "1 table: 1 late." in shown and "1 day (warning), 2 days" in shown
    recorded = mergeplan("audit", "--history", "--output", "json").result["audit_history"]
    outcomes = {(row["model"], row["audit"], row["outcome"]) for row in recorded}
    assert ("raw.orders", "freshness", "warned") in outcomes and ("shop.late", "freshness", "failed") in outcomes


def test_a_table_that_gets_a_freshness_computes_nothing_again(shop: Shop) -> None:
    mergeplan = shop(shown="", apart="", daily="", items="", total=READER)
    for statement in ("CREATE SCHEMA raw", f"CREATE TABLE raw.orders AS {ORDERS}"):
        assert mergeplan("fetchdf", statement).code == 0
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0
    assert "No table has `freshness`." in mergeplan("freshness").out

    mergeplan.write("external_models.yaml", TABLES)
    plan = mergeplan("plan", "--output", "json", "--execution-time", TODAY).result["plan"]

    assert {row["name"]: (row["change"], row["recomputed"]) for row in plan["models"]} == {
        "raw.orders": ("metadata", False),
        "raw.gone": ("added", False),
    }
    assert plan["virtual"]
    assert "Metadata Updated" in mergeplan("diff", "prod").out
