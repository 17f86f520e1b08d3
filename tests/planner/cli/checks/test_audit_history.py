"""`audit --history`: what the audits of applies and of `audit` found, on a real Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.planner.cli.conftest import TODAY, CommandLine

Shop = Callable[..., CommandLine]
PRICES = (
    "MODEL (name shop.total, kind FULL, audits (accepted_range(column := total, max_v := 1, blocking := false)));\n"
    "SELECT sum(price) AS total FROM shop.daily"
)
ONCE = "AUDIT (name no_sale, standalone true);\nSELECT * FROM shop.daily WHERE price > 1000"


@pytest.mark.prove
def test_each_audit_that_ran_is_listed_with_its_days_and_outcome(shop: Shop) -> None:
    mergeplan = shop(shown="", apart="", total=PRICES)
    mergeplan.write("audits/no_sale.sql", ONCE)
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0

    history = mergeplan("audit", "--history", "--output", "json").result["audit_history"]

    days = [row["start"][:10] for row in history if row["audit"] == "not_null"]
    assert sorted(days) == [f"2026-01-0{n}" for n in range(1, 6)]
    outcomes = {row["audit"]: (row["outcome"], row["rows"]) for row in history}
    assert outcomes == {"not_null": ("passed", 0), "accepted_range": ("warned", 1), "no_sale": ("passed", 0)}
    assert history == sorted(history, key=lambda row: row["at"], reverse=True)
    shown = mergeplan("audit", "--history", "--model", "shop.total", "--limit", "1").out
    assert "1 recorded result, newest first" in shown
    assert "shop.total  accepted_range  column := total, max_v := 1" in shown


@pytest.mark.prove
def test_results_outlive_the_run_and_an_environment_has_its_own(shop: Shop) -> None:
    mergeplan = shop(shown="", apart="", total="")
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0
    assert mergeplan("audit").code == 0
    assert len(mergeplan("audit", "--history", "--output", "json").result["audit_history"]) == 6
    assert "No audit has run." in mergeplan("audit", "--history", "--model", "shop.items").out


def test_history_refuses_what_is_about_a_run(shop: Shop) -> None:
    mergeplan = shop(shown="", apart="", total="")
    refused = mergeplan("audit", "--history", "--samples", "full")
    assert refused.code == 1
    assert "`--history` runs no audit" in refused.err
