"""A branch with an environment of its own: from a push to what the environment shows. The planner is scripted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from mergeplan.bot.branches import BranchRecord
from mergeplan.bot.cicd_section import read_section
from mergeplan.bot.prod.planner_calls import ProdPlanner
from mergeplan.bot.records import PullState
from mergeplan.bot.rules import config_of
from mergeplan.planner.errors import ProjectError
from tests.bot.changing import change_prod
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench, until

Make = Callable[..., Bench]
CHECK = "branch environment"


def rules(**section: object) -> str:
    return yaml.safe_dump({"gateways": {}, "cicd_bot": section})


def qa_bench(copy_bench: Make, **section: object) -> Bench:
    return copy_bench({**PROJECT, "config.yaml": rules(branch_environments={"qa": "qa"}, **section)})


def push(bench: Bench, files: dict[str, str] = COLUMN, branch: str = "qa") -> str:
    sha = bench.github.commit(SHOP, branch, files, "A push", author="wim")
    bench.idle()
    return sha


def branch(bench: Bench) -> BranchRecord:
    (record,) = bench.context.inbox.prods.get(SHOP).branches
    return record


def test_a_push_to_the_branch_is_planned_and_applied_to_its_environment_alone(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    prod = len(bench.calls("plan", "prod"))

    sha = push(bench)

    (call,) = bench.calls("plan", "qa")
    assert call["argv"][:3] == ["plan", "qa", "--auto-apply"]
    assert bench.planner_state()["environments"]["qa"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]
    assert (branch(bench).promoted_commit, branch(bench).revision) == (sha, 1)
    assert bench.conclusions(sha) == {CHECK: "success"}
    assert len(bench.calls("plan", "prod")) == prod
    push(bench, FILTER)
    assert branch(bench).revision == 2


@pytest.mark.prove
def test_a_merge_into_the_branch_is_a_push_to_it_and_reaches_no_prod(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench, {"README.md": "# Another\n"})
    prod = bench.planner_state()["environments"]["prod"]
    bench.github.commit(SHOP, "change", COLUMN, "A change", author="wim")
    number = bench.github.open_pull_request(SHOP, "change", "qa", "A change", author="wim")
    bench.idle()
    sha = bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert branch(bench).promoted_commit == sha
    assert bench.planner_state()["environments"]["prod"] == prod
    assert bench.record(number).state is PullState.NEW


def test_the_gateways_are_prods_and_the_branchs_own_rules_are_not_read(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    gateways = {"evil": {"connection": {"type": "spark", "remote": "sc://evil"}}}
    evil = yaml.safe_dump({"gateways": gateways, "cicd_bot": {"branch_environments": {"qa": "uat", "evil": "other"}}})
    push(bench, {**COLUMN, "config.yaml": evil})
    push(bench, COLUMN, branch="evil")

    assert "evil" not in bench.calls("plan", "qa")[-1]["gateways"]
    assert [(b.branch, b.environment) for b in bench.context.inbox.prods.get(SHOP).branches] == [("qa", "qa")]
    assert {call["argv"][1] for call in bench.calls("plan")} == {"prod", "qa"}


def test_a_pull_request_configures_no_environment_before_it_is_in_prod(copy_bench: Make) -> None:
    bench = copy_bench()
    number = bench.open({"config.yaml": rules(branch_environments={"qa": "qa"}), **COLUMN})
    push(bench, FILTER)
    assert bench.calls("plan", "qa") == []
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert len(bench.calls("plan", "qa")) == 1


def test_what_fails_leaves_the_environment_and_says_so_on_the_commit(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    good = push(bench)
    bad = push(bench, {"models/orders.sql": "BROKEN"})
    shown = bench.planner_state()["environments"]["qa"]["models"]["shop.orders"]

    assert shown == COLUMN["models/orders.sql"]
    assert (branch(bench).commit, branch(bench).promoted_commit) == (bad, good)
    check = bench.checks(bad)[CHECK]
    assert (check.conclusion, check.title) == ("failure", "qa was not changed")
    mended = push(bench, FILTER)
    assert branch(bench).promoted_commit == mended


def test_an_audit_that_finds_rows_blocks_the_environment(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    bench.knobs(audit=True)
    sha = push(bench)
    assert bench.conclusions(sha) == {CHECK: "failure"}
    assert "qa" not in bench.planner_state()["environments"]


@pytest.mark.prove
def test_a_push_that_costs_more_than_the_budget_is_not_computed(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench, budget={"bytes": 1000})
    bench.knobs(bytes=5000)
    sha = push(bench)
    assert "--max-bytes=1000" in bench.calls("plan", "qa")[-1]["argv"]
    assert "over the project's budget" in str(bench.checks(sha)[CHECK].summary)


@pytest.mark.prove
def test_a_held_environment_is_waited_for(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    bench.knobs(held="qa")
    sha = bench.github.commit(SHOP, "qa", COLUMN, "A push", author="wim")
    until(lambda: CHECK in bench.checks(sha) and "waits" in bench.checks(sha)[CHECK].title, what="the wait")
    bench.knobs()
    bench.idle()
    assert bench.conclusions(sha) == {CHECK: "success"}


def test_a_planner_that_dies_after_the_promotion_is_asked_again(copy_bench: Make) -> None:
    """Behaviour 17: what was promoted when it died is found, and the check comes to its end."""
    bench = qa_bench(copy_bench)
    bench.knobs(die="qa")
    sha = push(bench)
    assert len(bench.calls("plan", "qa")) == 2
    assert (branch(bench).promoted_commit, bench.conclusions(sha)) == (sha, {CHECK: "success"})


def test_a_push_during_a_run_ends_it_and_no_check_stays_open(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    bench.knobs(hang="qa")
    first = bench.github.commit(SHOP, "qa", COLUMN, "A push", author="wim")
    until(lambda: bench.calls("plan", "qa"), what="the run")
    second = bench.github.commit(SHOP, "qa", FILTER, "Another", author="wim")
    until(lambda: len(bench.calls("plan", "qa")) > 1, what="another run")
    bench.knobs()
    bench.idle()
    assert bench.conclusions(first) == {CHECK: "cancelled"}
    assert bench.conclusions(second) == {CHECK: "success"}


def test_rerun_tries_a_failed_push_again(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    bench.knobs(fail="qa")
    sha = push(bench)
    assert bench.conclusions(sha) == {CHECK: "failure"}
    bench.knobs()
    bench.github.rerequest(SHOP, bench.checks(sha)[CHECK].id, author="wim")
    bench.idle()
    assert (bench.conclusions(sha), branch(bench).promoted_commit) == ({CHECK: "success"}, sha)


def test_a_branch_that_the_rules_name_no_longer_is_left_alone(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    bench.github.commit(SHOP, "main", {"config.yaml": "gateways: {}\n"}, "No more", author="ann")
    bench.idle()
    assert bench.context.inbox.prods.get(SHOP).branches == ()
    push(bench, FILTER)
    assert len(bench.calls("plan", "qa")) == 1


def test_a_lost_webhook_is_noticed_by_the_timer(copy_bench: Make) -> None:
    bench = qa_bench(copy_bench)
    bench.github.faults.drop("push")
    sha = bench.github.commit(SHOP, "qa", COLUMN, "A push", author="wim")
    bench.idle()
    assert bench.calls("plan", "qa") == []
    bench.worker.sweep()
    bench.idle()
    assert branch(bench).promoted_commit == sha


def test_the_janitor_keeps_it(copy_bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = qa_bench(copy_bench)
    push(bench)
    kept: list[tuple[str, ...]] = []
    sweep = ProdPlanner.sweep

    def note(planner: ProdPlanner, commit: str, keep: tuple[str, ...]) -> object:
        kept.append(keep)
        return sweep(planner, commit, keep)

    monkeypatch.setattr(ProdPlanner, "sweep", note)
    bench.context.inbox.prods.update(SHOP, change_prod, swept_at=1.0)
    bench.context.inbox.queue.wake(SHOP, 0)
    bench.idle()
    assert kept == [("qa",)]


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"branch_environments": {"qa": "prod"}}, "`prod` is the environment of `main`"),
        ({"branch_environments": {"main": "qa"}}, "`main` is the branch of prod"),
        ({"branch_environments": {"qa": "x", "uat": "X"}}, "two branches have the environment `x`"),
        ({"branch_environments": {"qa": "pr_7"}}, "`pr_7` is the name of a pull request's environment"),
        ({"branch_environments": {"qa": "ci_7_queue"}, "pr_environment_name": "ci"}, "pull request's environment"),
        ({"branch_environments": {"qa": "a b"}}, "`a b` cannot name an environment"),
        ({"branch_environments": {"release/*": "qa"}}, "`release/*` is no branch"),
        ({"branch_environments": ["qa"]}, "is wrong"),
        ({"branch_environments": {"qa": 7}}, "is wrong"),
    ],
)
def test_what_is_not_sound_is_refused_at_its_line(section: dict[str, object], why: str) -> None:
    with pytest.raises(ProjectError) as refused:
        config_of(read_section("config.yaml", rules(**section)), "main")
    assert why in refused.value.message
    assert refused.value.place is not None and refused.value.place.line > 0
