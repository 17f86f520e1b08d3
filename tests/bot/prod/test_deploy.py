"""/deploy on the sandbox: promoted, then merged, or both as before. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mergeplan.bot.child.planner_process import Finished
from mergeplan.bot.context import PlannerCall
from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench

ON = {**PROJECT, "config.yaml": "gateways: {}\ncicd_bot:\n  enable_deploy_command: true\n  merge_method: squash\n"}


@pytest.fixture(name="deploy_bench")
def _deploy_bench(copy_bench: Callable[..., Bench]) -> Bench:
    return copy_bench(ON)


def prod(bench: Bench) -> str:
    shown: str = bench.planner_state()["environments"]["prod"]["models"]["shop.orders"]
    return shown


def test_deploy_promotes_and_then_merges_the_head_that_was_reviewed(deploy_bench: Bench) -> None:
    """Behaviours 5, 27: also where the base branch requires the bot's own checks; nothing is promoted twice."""
    deploy_bench.github.require_checks(
        SHOP, "main", ["mergeplan / plan", "mergeplan / environment", "mergeplan / promotion"]
    )
    number = deploy_bench.open(COLUMN)
    deploy_bench.idle()
    deploy_bench.say(number, "/deploy", author="ann")

    assert deploy_bench.record(number).state is PullState.PROMOTED
    assert deploy_bench.github.pull_request(SHOP, number).merge_commit_sha == deploy_bench.github.head(SHOP)
    assert prod(deploy_bench) == COLUMN["models/orders.sql"]
    assert "It is in prod." in deploy_bench.replies(number)[0]
    assert deploy_bench.planner_state()["environments"]["prod"]["revision"] == 2
    assert deploy_bench.context.inbox.prods.get(SHOP).commit == deploy_bench.github.head(SHOP)


def test_a_deploy_during_which_github_hides_the_repository_is_done_at_the_next_look(deploy_bench: Bench) -> None:
    """Prod's job took the repository for gone: the command was never answered, and prod could stay promoted."""
    number = deploy_bench.open(COLUMN)
    deploy_bench.idle()
    deploy_bench.github.faults.fail("GET", r"/repos/ann/shop$", status=404)
    deploy_bench.say(number, "/deploy", author="ann")
    assert deploy_bench.replies(number) == []
    deploy_bench.worker.sweep()
    deploy_bench.idle()

    assert deploy_bench.record(number).state is PullState.PROMOTED
    assert "It is in prod." in deploy_bench.replies(number)[0]


def test_a_deploy_that_was_written_before_spark_corrected_the_plan_is_refused(deploy_bench: Bench) -> None:
    """The head and prod are the same, and the comment has shown another plan of them before."""
    number = deploy_bench.open(COLUMN)
    deploy_bench.idle()
    record = deploy_bench.record(number)
    corrected = replace(record.shown.plans[-1], since="2100-01-01T00:00:00+00:00")
    shown = replace(record.shown, plans=(*record.shown.plans, corrected))
    deploy_bench.context.inbox.pulls.update(SHOP, number, lambda stored: replace(stored, shown=shown))
    deploy_bench.say(number, "/deploy", author="ann")

    assert "This command refers to an outdated plan" in deploy_bench.replies(number)[0]
    assert deploy_bench.record(number).state is PullState.PLANNED


@pytest.mark.parametrize("fault", ["fail", "lose_answer"])
def test_a_merge_that_fails_takes_prod_back_and_one_whose_answer_is_lost_does_not(
    deploy_bench: Bench, fault: str
) -> None:
    """Behaviour 26: prod and the branch end consistent, and the reply says what was done."""
    number = deploy_bench.open(COLUMN)
    deploy_bench.idle()
    if fault == "fail":
        deploy_bench.github.faults.fail("PUT", r"/merge$", status=405, times=1)
    else:
        deploy_bench.github.faults.lose_answer("PUT", r"/merge$", times=1)
    deploy_bench.say(number, "/deploy", author="ann")

    merged = deploy_bench.github.pull_request(SHOP, number).merged_at is not None
    assert merged == (fault == "lose_answer")
    assert (prod(deploy_bench) == COLUMN["models/orders.sql"]) == merged
    assert ("Prod is back at the tables of revision 1" in deploy_bench.replies(number)[0]) == (not merged)


def test_deploy_promotes_only_what_was_shown_and_only_by_who_may(deploy_bench: Bench) -> None:
    """Behaviours 3, 4: below `maintain`, or with something that blocks, prod stays."""
    deploy_bench.knobs(blockers=[{"message": "No <b>.", "path": "", "line": 0}])
    number = deploy_bench.open(FILTER)
    deploy_bench.idle()
    deploy_bench.say(number, "/deploy", author="wim")
    deploy_bench.say(number, "/deploy", author="ann")

    assert "needs the `maintain` permission" in deploy_bench.replies(number)[0]
    assert "It is not ready for prod: No &lt;b&gt;." in deploy_bench.replies(number)[1]
    assert prod(deploy_bench) == PROJECT["models/orders.sql"]


def test_a_deploy_whose_pull_request_gets_another_base_meanwhile_is_taken_back(
    deploy_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was merged into that base, and prod showed what its own branch lacks."""
    deploy_bench.github.create_branch(SHOP, "dev", "main", author="ann")
    number, plan = deploy_bench.open(COLUMN), deploy_bench.context.plan
    deploy_bench.idle()

    def plan_and_move(call: PlannerCall, **more: Any) -> Finished:
        if call.arguments[:2] == ("plan", "prod"):
            deploy_bench.github.edit_pull_request(SHOP, number, base="dev", author="wim")
        return plan(call, **more)

    monkeypatch.setattr(deploy_bench.context, "plan", plan_and_move)
    deploy_bench.say(number, "/deploy", author="ann")

    assert "It merges into `dev` now, and not into `main`." in deploy_bench.replies(number)[0]
    assert deploy_bench.github.pull_request(SHOP, number).merged_at is None
    assert prod(deploy_bench) == PROJECT["models/orders.sql"]
