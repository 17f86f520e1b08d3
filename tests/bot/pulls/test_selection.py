"""`/plan --select`, from the comment to the merge. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable

import yaml

from mergeplan.bot.commands.command import Command, Mistake
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, PROJECT, SHOP, Bench, until

Make = Callable[..., Bench]
TWO = {**COLUMN, "models/more.sql": "SELECT 3 AS x\n"}
ALL_PLANNED = dict.fromkeys(("lint", "tests", "plan", "environment", "promotion"), "success")


def argv(bench: Bench, environment: str = "pr_1") -> list[str]:
    return list(bench.calls("plan", environment)[-1]["argv"])


def select_orders(bench: Bench) -> int:
    number = bench.open(TWO)
    bench.idle()
    bench.say(number, "/plan --select shop.orders")
    return number


def test_a_plan_of_selected_models_says_what_it_leaves_out_and_is_not_ready(bench: Bench) -> None:
    number = select_orders(bench)

    assert [part for part in argv(bench) if "select" in part or "others" in part] == [
        "--select-model=shop.orders",
        "--others-from=prod",
    ]
    comment = bench.plan(number)
    assert comment.splitlines()[1].startswith("### 🔎 Plan of selected models: replaces 1 table of prod")
    assert "**Not ready.** Only `shop.orders` was planned; 1 changed model not: `shop.more`." in comment
    assert "- [ ] `/plan`: plans all changed models, against prod as it is now" in comment
    conclusions = bench.conclusions(bench.head(number))
    assert (conclusions["plan"], conclusions["promotion"]) == ("action_required", "action_required")
    assert "`shop.more`" in str(bench.checks(bench.head(number))["promotion"].summary)


def test_a_selection_outlives_pushes_and_ends_with_plan_alone(bench: Bench) -> None:
    number = select_orders(bench)
    bench.github.commit(SHOP, "change", {"models/more.sql": "SELECT 4 AS x\n"}, "More", author="wim")
    bench.idle()
    assert "--select-model=shop.orders" in argv(bench)
    assert bench.conclusions(bench.head(number))["promotion"] == "action_required"

    bench.say(number, "/plan")

    assert not any("select" in part for part in argv(bench))
    assert bench.conclusions(bench.head(number)) == ALL_PLANNED


def test_a_selection_of_all_that_changes_is_ready_and_one_of_nothing_is_not(bench: Bench) -> None:
    number = bench.open(TWO)
    bench.idle()
    bench.say(number, "/plan --select shop.orders --select=shop.more")
    assert bench.conclusions(bench.head(number)) == ALL_PLANNED
    bench.say(number, "/plan --select shop.totals")
    assert bench.conclusions(bench.head(number))["promotion"] == "action_required"
    assert "Plan of selected models: none of them changes" in bench.plan(number)


def test_a_merge_of_a_selection_is_planned_whole(bench: Bench) -> None:
    number = select_orders(bench)
    before = len(bench.calls("plan", "prod"))
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    (call,) = bench.calls("plan", "prod")[before:]
    assert not {"--expect-digest", "--select-model=shop.orders"} & set(call["argv"])
    assert bench.record(number).state is PullState.PROMOTED
    assert set(bench.planner_state()["environments"]["prod"]["models"]) == {"shop.orders", "shop.totals", "shop.more"}
    assert "the merge was planned whole" in bench.plan(number)


def test_a_rule_judges_what_a_selection_left_out(make_bench: Make) -> None:
    rule = {"models": ["shop.more"], "approvals": 1}
    rules = yaml.safe_dump({"gateways": {}, "cicd_bot": {"rules": [rule]}})
    bench = make_bench({**PROJECT, "config.yaml": rules})
    number = select_orders(bench)
    revision = bench.planner_state()["environments"]["prod"]["revision"]

    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    record = bench.record(number)
    assert record.state is PullState.MERGED and record.rules.held
    assert bench.planner_state()["environments"]["prod"]["revision"] == revision


def test_deploy_refuses_a_selection(make_bench: Make) -> None:
    rules = yaml.safe_dump({"gateways": {}, "cicd_bot": {"enable_deploy_command": True}})
    bench = make_bench({**PROJECT, "config.yaml": rules})
    number = select_orders(bench)
    bench.say(number, "/deploy", author="ann")

    assert "1 changed model not: `shop.more`" in bench.replies(number)[-1]
    assert bench.record(number).state is PullState.PLANNED


def test_a_selection_given_during_a_run_stops_it(bench: Bench) -> None:
    bench.knobs(hang="pr")
    number = bench.open(TWO)
    until(lambda: bench.calls("plan", "pr_1"), what="the plan to begin")
    bench.github.comment(SHOP, number, "/plan --select shop.orders", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) > 1, what="another plan")
    bench.knobs()
    bench.idle()

    assert "--select-model=shop.orders" in argv(bench)
    assert bench.record(number).state is PullState.PLANNED


def test_who_may_not_write_selects_nothing(bench: Bench) -> None:
    number = bench.open(TWO)
    bench.idle()
    bench.say(number, "/plan --select shop.orders", author="rea")
    assert bench.record(number).wishes.select == ()
    assert "needs the `write` permission" in bench.replies(number)[-1]


def test_selectors_are_read_and_nothing_else_passes_for_one() -> None:
    def read(text: str) -> Command | Mistake:
        (command,) = read_commands(text)
        return command

    good = read("/plan --select +shop.Orders+ tag:daily")
    assert isinstance(good, Command) and good.select == ("+shop.orders+", "tag:daily")
    for text in ("--select", "shop.orders", "--select $(id)", "--select --auto-apply", "--select=", "--start 2026"):
        assert isinstance(read(f"/plan {text}"), Mistake), text
