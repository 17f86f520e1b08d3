"""What an edit makes Spark do, after `plan` and `apply` of an environment: as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable

from tests.planner.cli.conftest import TODAY, CommandLine
from tests.planner.shop import ALONE

TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT a.id FROM range(9) AS a JOIN range(2, 5) AS b {}"
BROADCAST = TOTAL.format("ON a.id = b.id")
NOW = ("--auto-apply", "--execution-time", TODAY)


def test_a_plan_of_an_environment_tells_it_and_one_of_prod_does_not(shop: Callable[..., CommandLine]) -> None:
    """Behaviour 47."""
    mergeplan = shop(**ALONE | {"total": BROADCAST})
    prod = mergeplan("plan", *NOW, "--output", "json")
    mergeplan.write("models/total.sql", TOTAL.format("ON a.id < b.id"))
    text = mergeplan("plan", "dev", *NOW)
    again = mergeplan("plan", "dev", *NOW, "--output", "json", "--physical-plan")
    without = mergeplan("plan", "dev", *NOW, "--output", "json", "--no-physical-plan")

    assert "physical_plan" not in prod.result
    assert "Physical plan, before and after:" in text.out.partition("Virtual layer updated")[2]
    assert "! shop.total: a nested-loop join is new: no equality says which rows meet" in text.out
    assert again.result["physical_plan"] == [
        {"model": "shop.total", "note": "", "changes": [
            {"cost": "nested_loop_join", "before": 0, "after": 1, "tables": [], "columns": []},
        ]},
    ]  # fmt: skip
    assert "physical_plan" not in without.result
