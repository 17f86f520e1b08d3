"""What an edit makes Spark do, from the planner's words to the comment and the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bot.conftest import FILTER, PROJECT, Bench

CONFIG = "gateways:\n  spark:\n    connection: {type: spark}\nmodel_defaults: {dialect: spark}\n"
REAL = {
    "config.yaml": CONFIG,
    "models/orders.sql": "MODEL (name shop.orders, kind FULL);\nSELECT id, 2 * id AS n FROM range(5)\n",
    "models/both.sql": "MODEL (name shop.both, kind FULL);\n"
    "SELECT a.id FROM shop.orders AS a JOIN shop.orders AS b ON a.id = b.n\n",
}


def test_the_comment_shows_what_became_expensive_and_the_first_line_stays(bench: Bench) -> None:
    """Behaviour 47."""
    bench.knobs(physical="cartesian_product")
    number = bench.open(FILTER)
    bench.idle()

    (call,) = bench.calls("plan", f"pr_{number}")
    assert "--physical-plan" in call["argv"]
    assert bench.plan(number).splitlines()[1] == "### ✅ Ready to merge · replaces 2 tables of prod"
    assert "- ⚠️ `shop.orders`: a cartesian product over `shop.items` is new" in bench.plan(number)


def test_a_project_may_do_without_it(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({**PROJECT, "config.yaml": "gateways: {}\ncicd_bot: {physical_plan: false}\n"})
    bench.knobs(physical="cartesian_product")
    number = bench.open(FILTER)
    bench.idle()

    (call,) = bench.calls("plan", f"pr_{number}")
    assert "--no-physical-plan" in call["argv"]
    assert "cartesian" not in bench.plan(number)


@pytest.mark.prove
def test_a_condition_that_a_join_lost_is_reported_by_the_planner_itself(make_bench: Callable[..., Bench]) -> None:
    """Behaviour 47: Spark explains both queries; nothing of them is in the comment's sentence."""
    bench = make_bench(project=REAL, planner_command=(), patience=900.0)
    number = bench.open({"models/both.sql": REAL["models/both.sql"].replace(" ON a.id = b.n", "")})
    bench.idle()

    block = bench.plan(number).partition("#### Physical plan, before and after\n\n")[2].partition("\n\n")[0]
    assert block == (
        "- ⚠️ `shop.both`: a cartesian product over `shop.orders` is new: "
        "every row of one side meets every row of the other."
    )
