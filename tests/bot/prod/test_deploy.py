"""/deploy on the sandbox: promoted, then merged, or both as before. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench

ON = {**PROJECT, "config.yaml": "gateways: {}\ncicd_bot:\n  enable_deploy_command: true\n  merge_method: squash\n"}


@pytest.fixture(name="on")
def _on(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(ON)


def prod(bench: Bench) -> str:
    shown: str = bench.planner_state()["environments"]["prod"]["models"]["shop.orders"]
    return shown


def test_deploy_promotes_and_then_merges_the_head_that_was_reviewed(on: Bench) -> None:
    """Behaviours 5, 27: also where the base branch requires the bot's own checks; nothing is promoted twice."""
    on.github.require_checks(SHOP, "main", ["mergeplan / plan", "mergeplan / environment", "mergeplan / promotion"])
    number = on.open(COLUMN)
    on.idle()
    on.say(number, "/deploy", author="ann")

    assert on.record(number).state is PullState.PROMOTED
    assert on.github.pull_request(SHOP, number).merge_commit_sha == on.github.head(SHOP)
    assert prod(on) == COLUMN["models/orders.sql"]
    assert "It is in prod." in on.replies(number)[0]
    assert on.planner_state()["environments"]["prod"]["revision"] == 2
    assert on.context.inbox.prods.get(SHOP).commit == on.github.head(SHOP)


@pytest.mark.parametrize("fault", ["fail", "lose_answer"])
def test_a_merge_that_fails_takes_prod_back_and_one_whose_answer_is_lost_does_not(on: Bench, fault: str) -> None:
    """Behaviour 26: prod and the branch end consistent, and the reply says what was done."""
    number = on.open(COLUMN)
    on.idle()
    if fault == "fail":
        on.github.faults.fail("PUT", r"/merge$", status=405, times=1)
    else:
        on.github.faults.lose_answer("PUT", r"/merge$", times=1)
    on.say(number, "/deploy", author="ann")

    merged = on.github.pull_request(SHOP, number).merged_at is not None
    assert merged == (fault == "lose_answer")
    assert (prod(on) == COLUMN["models/orders.sql"]) == merged
    assert ("Prod is back at the tables of revision 1" in on.replies(number)[0]) == (not merged)


def test_deploy_promotes_only_what_was_shown_and_only_by_who_may(on: Bench) -> None:
    """Behaviours 3, 4: below `maintain`, or with something that blocks, prod stays."""
    on.knobs(blockers=[{"message": "No.", "path": "", "line": 0}])
    number = on.open(FILTER)
    on.idle()
    on.say(number, "/deploy", author="wim")
    on.say(number, "/deploy", author="ann")

    assert "needs the `maintain` permission" in on.replies(number)[0]
    assert "It is not ready for prod: No." in on.replies(number)[1]
    assert prod(on) == PROJECT["models/orders.sql"]
