"""A plan names the uses outside of the project that its changes reach, and no others."""

from __future__ import annotations

from collections.abc import Callable

from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import ALONE

Shop = Callable[..., CommandLine]
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT {}"
EXPOSURES = (
    "- name: Weekly report\n  type: dashboard\n  owner: Ann\n  models: [shop.total, shop.apart]\n"
    "- name: App\n  models: [shop.apart]\n"
)


def built(shop: Shop) -> CommandLine:
    mergeplan = shop(**{**ALONE, "apart": "MODEL (name shop.apart, kind FULL);\nSELECT 7 AS seven"},
                     total=TOTAL.format("1 AS one, 2 AS two"))  # fmt: skip
    mergeplan.write("exposures.yaml", EXPOSURES)
    assert mergeplan("plan", "--auto-apply").code == 0
    return mergeplan


def test_other_values_and_a_removed_model_are_felt_outside(shop: Shop) -> None:
    mergeplan = built(shop)
    mergeplan.edit("models/total.sql", "2 AS two", "3 AS two")

    assert (
        "Exposure: Weekly report (dashboard, Ann) uses shop__dev.total." in mergeplan("plan", "dev", "--no-prompts").out
    )
    plan = mergeplan("plan", "dev", "--no-prompts", "--output", "json").lines[0]["plan"]
    assert plan["exposures"] == [
        {"name": "Weekly report", "type": "dashboard", "owner": "Ann", "url": "", "models": ["shop.total"]}
    ]


def test_a_column_that_is_added_is_felt_by_nobody(shop: Shop) -> None:
    mergeplan = built(shop)
    mergeplan.edit("models/total.sql", "2 AS two", "2 AS two, 3 AS three")

    planned = mergeplan("plan", "dev", "--no-prompts")
    assert "Non-breaking" in planned.out
    assert "Exposure" not in planned.out
