"""A stack of two pull requests with the planner itself: Spark builds, the merges compute nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.records import PullState
from mergeplan.bot.results import is_free
from tests.bot.conftest import SHOP, Bench
from tests.bot.test_real_planner import BARE, rows

ORDERS = "MODEL (name shop.orders, kind FULL, grain id);\nSELECT id, v FROM VALUES (1, {}), (2, 3) AS t(id, v)\n"
TOTAL = "MODEL (name shop.total, kind FULL, grain id);\nSELECT id, sum(v) {} AS v FROM shop.orders GROUP BY id\n"
PROJECT = {
    "config.yaml": BARE["config.yaml"],
    "models/orders.sql": ORDERS.format(2),
    "models/total.sql": TOTAL.format(""),
}


@pytest.mark.prove
def test_a_stack_of_two_builds_each_table_once_and_is_merged_from_the_bottom_for_nothing(
    make_bench: Callable[..., Bench],
) -> None:
    """Behaviours 9, 40."""
    bench = make_bench(project=PROJECT, planner_command=(), warm=True, patience=900.0)
    lower = bench.open({"models/orders.sql": ORDERS.format(5)}, "lower")
    bench.github.create_branch(SHOP, "upper", "lower", author="wim")
    bench.github.commit(SHOP, "upper", {"models/total.sql": TOTAL.format("* 10")}, "Ten times", author="wim")
    upper = bench.github.open_pull_request(SHOP, "upper", "lower", "Ten times", author="wim")
    bench.idle()

    layer_part = bench.plan(upper).split("**This layer changes 1 model**")[1].split("All else")[0]
    assert "`shop.total`" in layer_part and "`shop.orders`" not in layer_part
    assert "This layer's rows: 2 rows changed" in layer_part, bench.plan(upper)
    assert "replaces 2 tables of prod" in bench.plan(upper)
    assert "Computed here: 1 table" in bench.plan(upper)  # what the lower one built is shared
    for number, branch in ((lower, "lower"), (upper, "upper")):
        bench.github.merge(SHOP, number, author="ann")
        bench.github.delete_branch(SHOP, branch, author="ann")
        bench.idle()
        promoted = bench.record(number)
        assert promoted.state is PullState.PROMOTED
        done = promoted.promotion.outcome
        assert done and done.promotion and is_free(done.promotion)
    assert "0 Spark jobs" in bench.plan(upper)
    assert rows(bench.home, "SELECT id, v FROM shop.total ORDER BY id") == [[1, 50], [2, 30]]
