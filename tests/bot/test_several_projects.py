"""Two projects in one repository: each has a plan, checks, an environment and a prod of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mergeplan.bot.prod.reconcile import reconcile_prod
from mergeplan.bot.records import Prod, PullRecord, PullState
from mergeplan.bot.service.serve import build_context
from mergeplan.planner.errors import RequestError
from tests.bot.conftest import PROJECT, SHOP, Bench

ADS = f"{SHOP}~ads"
BOTH = {
    **{f"shop/{path}": text for path, text in PROJECT.items()},
    **{f"ads/{path}": text for path, text in PROJECT.items()},
}
IN_SHOP, IN_ADS = ({f"{folder}/models/orders.sql": "SELECT 1 AS id, 2 AS more\n"} for folder in ("shop", "ads"))


@pytest.fixture(name="pair")
def _pair(copy_bench: Callable[..., Bench]) -> Bench:
    """A repository of two projects, whose prods are built."""
    return copy_bench(project=BOTH, project_path="shop,ads")


def ads(bench: Bench, number: int) -> PullRecord:
    return bench.context.inbox.pulls.get(ADS, number)


def plans(bench: Bench, number: int) -> dict[str, str]:
    """The plan comments by their marker's end."""
    bodies = (comment.body for comment in bench.bot_comments(number) if comment.body.startswith("<!-- mergeplan:plan"))
    return {body.split(" -->")[0].removeprefix("<!-- mergeplan:plan"): body for body in bodies}


def calls(bench: Bench, verb: str) -> list[dict[str, Any]]:
    """How the planner was called for the second project."""
    path = bench.folder / "home" / ADS / "calls.jsonl"
    return [call for call in map(json.loads, path.read_text().splitlines()) if call["argv"][0] == verb]


def test_a_change_of_one_project_is_planned_and_promoted_by_it_alone(pair: Bench) -> None:
    prods = [pair.context.inbox.prods.get(key) for key in (SHOP, ADS)]
    assert [(prod.state, prod.revision) for prod in prods] == [(Prod.READY, 1)] * 2
    number = pair.open(IN_ADS)
    pair.idle()
    checks = pair.github.checks(SHOP, pair.head(number))
    assert list(plans(pair, number)) == ["~ads"]
    assert "· `ads`" in plans(pair, number)["~ads"]
    assert pair.calls("plan", "pr_1") == []
    assert {run.conclusion for run in checks.values()} == {"success"}
    assert {"mergeplan / plan", "mergeplan / plan (ads)", "mergeplan / promotion (ads)"} <= set(checks)
    assert checks["mergeplan / plan"].title == "Nothing to do"
    pair.github.merge(SHOP, number, author="ann")
    pair.idle()
    shop, prod = (pair.context.inbox.prods.get(key) for key in (SHOP, ADS))
    assert (ads(pair, number).state, prod.revision) == (PullState.PROMOTED, 2)
    assert (shop.revision, shop.commit) == (1, prod.commit)
    assert shop.commit == pair.github.pull_request(SHOP, number).merge_commit_sha


def test_a_change_of_both_has_two_plans_and_two_promotions(pair: Bench) -> None:
    number = pair.open(IN_SHOP | IN_ADS)
    pair.idle()
    assert set(plans(pair, number)) == {"", "~ads"}
    pair.github.merge(SHOP, number, author="ann")
    pair.idle()
    assert [pair.context.inbox.prods.get(key).revision for key in (SHOP, ADS)] == [2, 2]
    assert (pair.record(number).state, ads(pair, number).state) == (PullState.PROMOTED,) * 2


def test_a_command_that_names_a_project_is_carried_out_by_it_once(pair: Bench) -> None:
    number = pair.open(IN_SHOP | IN_ADS)
    pair.idle()
    comment = pair.say(number, "/categorize shop.orders breaking --project ads")
    (reply,) = pair.replies(number)
    assert "the project `ads` answers" in reply
    assert "1 breaking" in plans(pair, number)["~ads"].split("```")[0]
    assert "1 breaking" not in plans(pair, number)[""].split("```")[0]
    assert sorted(pair.reactions(number, comment)) == ["eyes", "rocket"]


def test_a_command_for_all_is_answered_by_each_touched_project(pair: Bench) -> None:
    number = pair.open(IN_ADS)
    pair.idle()
    pair.say(number, "/status")
    assert len(pair.replies(number)) == 1
    other = pair.open(IN_SHOP | IN_ADS, branch="both")
    pair.idle()
    pair.say(other, "/status")
    pair.say(other, "/help")
    assert len(pair.replies(other)) == 3


def test_a_line_of_the_description_is_for_the_project_that_it_names(pair: Bench) -> None:
    number = pair.open(IN_SHOP | IN_ADS, title="Late\n\n/restate shop.totals --copy --project ads")
    pair.idle()
    plans = [
        [call["argv"] for call in project_calls if "pr_1" in call["argv"]]
        for project_calls in (pair.calls("plan"), calls(pair, "plan"))
    ]

    assert [["--restate-copy=shop.totals" in argv for argv in argvs] for argvs in plans] == [[False], [True]]
    assert len(pair.replies(number)) == 1


@pytest.mark.prove
def test_deploy_is_refused_where_other_projects_change_too(copy_bench: Callable[..., Bench]) -> None:
    deploys = {f"{folder}/config.yaml": "cicd_bot:\n  enable_deploy_command: true\n" for folder in ("shop", "ads")}
    bench = copy_bench(project=BOTH | deploys, project_path="shop,ads")
    number = bench.open(IN_SHOP | IN_ADS)
    bench.idle()
    bench.say(number, "/deploy --project ads", author="ann")
    assert "changes other projects too: `shop`" in bench.replies(number)[0]
    alone = bench.open(IN_ADS, branch="alone")
    bench.idle()
    bench.say(alone, "/deploy", author="ann")
    assert bench.github.pull_request(SHOP, alone).merged_at


def test_a_button_and_a_box_of_one_project_ask_nothing_of_the_other(pair: Bench) -> None:
    number = pair.open(IN_SHOP | IN_ADS)
    pair.idle()
    comment = next(
        comment for comment in pair.bot_comments(number) if comment.body.startswith("<!-- mergeplan:plan~ads")
    )
    before = len(pair.calls("plan")), len(calls(pair, "plan"))
    box = next(line for line in comment.body.split("\n") if line.startswith("- [ ] `/plan"))
    pair.github.edit_comment(SHOP, comment.id, comment.body.replace(box, box.replace("[ ]", "[x]")), author="wim")
    pair.idle()
    assert (len(pair.calls("plan")), len(calls(pair, "plan"))) == (before[0], before[1] + 1)
    assert "ticked, and the project `ads` answers" in pair.replies(number)[0]


def test_a_repository_without_a_project_of_the_settings_is_left_alone(copy_bench: Callable[..., Bench]) -> None:
    bench = copy_bench(project_path=".,ads")
    number = bench.open({"models/orders.sql": "SELECT 1 AS id, 2 AS more\n"})
    bench.idle()
    assert list(plans(bench, number)) == [""]
    assert not [name for name in bench.github.checks(SHOP, bench.head(number)) if "(ads)" in name]
    assert bench.context.inbox.prods.get(ADS).commit == bench.github.head(SHOP)


@pytest.mark.prove
def test_where_the_first_project_is_missing_another_one_answers(copy_bench: Callable[..., Bench]) -> None:
    bench = copy_bench(project=BOTH, project_path="dbt,shop,ads")
    number = bench.open({"README.md": "Hello\n"})
    bench.idle()
    bench.say(number, "/help")
    bench.say(number, "/plan --project dbt")
    answers = bench.replies(number)
    assert ["`shop` answers" in answer for answer in answers] == [True, True]
    assert "There is no such project. Projects: `shop`, `ads`." in answers[1]


def test_nothing_starts_where_the_second_project_would_be_given_the_firsts_prod(pair: Bench) -> None:
    for paths in ("ads,shop", "ads"):
        with pytest.raises(RequestError, match="MERGEPLAN_PROJECT_PATH"):
            build_context(pair.settings.model_copy(update={"project_path": paths}))


def test_prod_waits_while_the_branch_has_its_project_in_a_folder_that_is_not_named_any_more(
    copy_bench: Callable[..., Bench],
) -> None:
    bench = copy_bench(project=BOTH, project_path="shop")
    bench.worker.stop()
    moved = build_context(bench.settings.model_copy(update={"project_path": "ads"}))

    def follow() -> str:
        moved.inbox.queue.wake(SHOP, 0)
        job = moved.inbox.queue.claim("moved", (SHOP,))
        assert job is not None
        try:
            reconcile_prod(moved, job)
        finally:
            moved.inbox.queue.release(job)
        return moved.inbox.prods.get(SHOP).promoted_commit

    head = bench.github.commit(SHOP, "main", IN_ADS, "Edits the other", author="ann")
    with pytest.raises(RequestError, match="every table of prod would be removed"):
        follow()
    assert bench.checks(head)["promotion"].conclusion == "failure"
    assert moved.inbox.prods.get(SHOP).revision == 1
    gone = bench.github.commit(SHOP, "main", {"shop/config.yaml": None}, "The project moved", author="ann")
    assert follow() == gone
    moved.inbox.close()


def test_a_pull_request_that_brings_the_second_project_is_planned(copy_bench: Callable[..., Bench]) -> None:
    bench = copy_bench(project_path=".,ads")
    number = bench.open({f"ads/{path}": text for path, text in PROJECT.items()})
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.context.inbox.prods.get(ADS).state is Prod.READY
    assert bench.context.inbox.prods.get(SHOP).revision == 1


@pytest.mark.prove
def test_a_label_that_asks_for_no_plan_is_of_the_projects_that_a_pull_request_changes(
    copy_bench: Callable[..., Bench],
) -> None:
    rules = {f"{folder}/config.yaml": "cicd_bot:\n  skip_label: later\n" for folder in ("shop", "ads")}
    bench = copy_bench(project=BOTH | rules, project_path="shop,ads")
    number = bench.open(IN_SHOP)
    bench.idle()
    bench.github.label(SHOP, number, "later", author="ann")
    bench.github.commit(
        SHOP, "change", {"shop/models/totals.sql": "SELECT 2 AS n FROM shop.orders\n"}, "More", author="wim"
    )
    bench.idle()
    conclusions = {name: run.conclusion for name, run in bench.github.checks(SHOP, bench.head(number)).items()}
    assert (conclusions["mergeplan / plan"], conclusions["mergeplan / plan (ads)"]) == ("action_required", "success")
    assert list(plans(bench, number)) == [""]


@pytest.mark.prove
def test_a_rollback_of_one_project_says_that_the_revert_takes_back_the_others_too(pair: Bench) -> None:
    pair.github.set_permission(SHOP, pair.github.bot_login, "write")
    number = pair.open(IN_SHOP | IN_ADS)
    pair.idle()
    pair.github.merge(SHOP, number, author="ann")
    pair.idle()
    pair.say(number, "/rollback --project ads", author="ann")
    revert = ads(pair, number).rollback.reversal.number
    assert (pair.context.inbox.prods.get(SHOP).revision, pair.context.inbox.prods.get(ADS).revision) == (2, 3)
    assert f"merge #{revert}, which reverts it in other projects too" in pair.replies(number)[0]
    assert "reverted too: each of them plans that here" in pair.github.pull_request(SHOP, revert).body
    assert set(plans(pair, revert)) >= {""}


def test_a_forks_commit_is_let_in_for_all_projects_with_one_command(pair: Bench) -> None:
    fork = pair.github.fork(SHOP, "rea")
    pair.github.commit(fork, "main", IN_ADS, "From a fork", author="rea")
    number = pair.github.open_pull_request(SHOP, "rea:main", "main", "From a fork", author="rea")
    pair.idle()
    head = pair.head(number)
    assert {run.conclusion for run in pair.github.checks(SHOP, head).values()} == {"action_required"}
    assert len(calls(pair, "plan")) == len(pair.calls("plan")) == 1
    pair.say(number, f"/ok-to-plan {head}", author="ann")
    assert {run.conclusion for run in pair.github.checks(SHOP, head).values()} == {"success"}
    assert (len(pair.calls("plan")), len(calls(pair, "plan"))) == (1, 2)


def test_a_plan_names_what_the_other_project_reads_of_it(copy_bench: Callable[..., Bench]) -> None:
    """In a public repository too: who reads the one reads the other."""
    reader = {"ads/config.yaml": "gateways: {}\n", "ads/models/views.sql": "-- reads shop.orders.id\nSELECT 1 AS id\n"}
    bench = copy_bench(project={**{f"shop/{path}": text for path, text in PROJECT.items()}, **reader},
                       project_path="shop,ads")  # fmt: skip
    bench.knobs(columns={"shop.orders": {"altered": ["id"]}})
    number = bench.open({"shop/models/orders.sql": "SELECT 2 AS id WHERE true\n"})
    bench.idle()

    (summary,) = bench.record(number).nearby.readers
    assert (summary.name, [reading.reader for reading in summary.readings]) == ("ads", ["shop.views"])
