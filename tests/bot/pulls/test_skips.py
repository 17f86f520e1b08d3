"""Skip plans with a label, from the label to the merge. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml

from mergeplan.bot.cicd_section import read_section
from mergeplan.bot.records import Pull, PullRecord, PullState
from mergeplan.bot.rules import config_of
from mergeplan.bot.service.worker import is_behind
from mergeplan.planner.errors import ProjectError
from mergeplan_sandbox.api.limits import ApiError
from tests.bot.changing import change_record
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench, until

Make = Callable[..., Bench]
LABEL = "no plan, please"
OTHER = {"models/more.sql": "SELECT 3 AS x\n"}
WAITS = "action_required"


def config(**rules: object) -> str:
    return yaml.safe_dump({"gateways": {}, "cicd_bot": rules})


@pytest.fixture(name="bench")
def _bench(copy_bench: Make) -> Bench:
    """tom may triage, and no more."""
    return triage_bench(copy_bench, skip_label=LABEL)


def triage_bench(copy_bench: Make, **rules: object) -> Bench:
    bench = copy_bench({**PROJECT, "config.yaml": config(**rules)})
    bench.github.add_user("tom")
    bench.github.set_permission(SHOP, "tom", "triage")
    return bench


def label_pull(bench: Bench, files: dict[str, str] = COLUMN) -> int:
    """A pull request that tom labels when it is planned, and then a push of wim's with those files."""
    number = bench.open(OTHER)
    bench.idle()
    bench.github.label(SHOP, number, LABEL, author="tom")
    bench.github.commit(SHOP, "change", files, "More", author="wim")
    bench.idle()
    return number


def all_wait(bench: Bench, sha: str) -> bool:
    return set(bench.conclusions(sha).values()) == {WAITS}


def plans(bench: Bench) -> int:
    return len(bench.calls("plan", "pr_1"))


def test_a_push_to_a_pull_request_with_the_label_is_not_planned_until_it_is_taken_away(bench: Bench) -> None:
    """The checks wait, which no required check takes for a success; the comment says which label, and what then."""
    number = label_pull(bench)
    head = bench.head(number)
    assert plans(bench) == 1
    assert all_wait(bench, head)
    assert bench.checks(head)["plan"].title == f"Not planned: it has the label {LABEL}"
    assert f"### ⏸️ Not planned: it has the label `{LABEL}`" in bench.plan(number)
    assert "- [ ] `/plan`: plans this commit once" in bench.plan(number)
    assert "shop.more" not in bench.plan(number), "the plan of an older head"

    bench.github.label(SHOP, number, LABEL, author="tom", remove=True)
    bench.idle()
    assert bench.record(number).state is PullState.PLANNED
    assert set(bench.conclusions(head).values()) == {"success"}


def test_who_may_plan_plans_it_once_all_the_same(bench: Bench) -> None:
    """The label stays; the next push waits again. Who may triage may not."""
    number = label_pull(bench)
    bench.say(number, "/plan", author="tom")
    assert "This needs the `write` permission" in bench.replies(number)[-1]
    assert plans(bench) == 1
    bench.say(number, "/plan")
    assert "Planned." in bench.replies(number)[-1]
    assert (bench.record(number).state, plans(bench)) == (PullState.PLANNED, 2)

    bench.github.commit(SHOP, "change", FILTER, "Again", author="wim")
    bench.idle()
    assert (bench.record(number).state, plans(bench)) == (PullState.SKIPPED, 2)


def test_a_label_of_another_name_costs_no_call(bench: Bench) -> None:
    """No look at the pull request, no plan, no write."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.github.calls)
    bench.github.label(SHOP, number, "urgent", author="tom")
    bench.github.label(SHOP, number, "urgent", author="tom", remove=True)
    bench.idle()

    assert (len(bench.github.calls), plans(bench)) == (before, 1)


def test_the_label_stops_no_plan_that_runs(bench: Bench) -> None:
    """Who may triage may not `/cancel`: the plan of that head is made, and the next head's is not."""
    bench.knobs(ponder="pr")
    number = bench.open(COLUMN)
    until(lambda: plans(bench) == 1)
    bench.github.label(SHOP, number, LABEL.upper(), author="tom")
    bench.github.wait_idle(30)
    bench.knobs()
    bench.idle()
    assert (bench.record(number).state, plans(bench)) == (PullState.PLANNED, 1)

    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    bench.idle()
    assert (bench.record(number).state, plans(bench)) == (PullState.SKIPPED, 1)


def test_lost_webhooks_of_labels_end_in_the_same_state(bench: Bench) -> None:
    """Behaviour 18: the timer finds a label that came and one that went."""
    number = bench.open(OTHER)
    bench.idle()
    bench.github.faults.drop(times=1000)
    bench.github.label(SHOP, number, LABEL, author="tom")
    bench.github.commit(SHOP, "change", COLUMN, "More", author="wim")
    bench.worker.sweep()
    bench.idle()
    assert all_wait(bench, bench.head(number))
    bench.github.label(SHOP, number, LABEL, author="tom", remove=True)
    bench.worker.sweep()
    bench.idle()

    assert (bench.record(number).state, plans(bench)) == (PullState.PLANNED, 2)


def test_a_label_that_is_deleted_from_the_repository_keeps_nothing() -> None:
    """GitHub moves no time of the pull request for that: the timer compares the labels."""
    pull = Pull(7, "A change", "wim", True, False, "", "a" * 40, False, "main", "", labels=("No plan, please",))
    record = change_record(PullRecord(SHOP, 7, PullState.SKIPPED, "a" * 40), skip_label=LABEL)

    assert not is_behind(pull, record)
    assert is_behind(replace(pull, labels=()), record)


@pytest.mark.prove
def test_a_plan_that_prod_has_overtaken_is_no_success_under_the_label(bench: Bench) -> None:
    """Behaviour 22: nothing is planned by itself, and no check keeps what is no longer so."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.label(SHOP, number, LABEL, author="tom")
    bench.github.commit(SHOP, "other", FILTER, "Other", author="wim")
    other = bench.github.open_pull_request(SHOP, "other", "main", "Other", author="wim")
    bench.idle()
    bench.github.merge(SHOP, other, author="ann")
    bench.idle()

    assert all_wait(bench, bench.head(number))
    assert plans(bench) == 1


def test_a_label_lets_nobody_past_a_required_check_nor_through_the_queue(bench: Bench) -> None:
    """Neither the button nor the merge queue merges what has no plan."""
    bench.github.require_checks(SHOP, "main", ["mergeplan / plan", "mergeplan / promotion"])
    number = label_pull(bench)
    with pytest.raises(ApiError):
        bench.github.merge(SHOP, number, author="wim")
    head = bench.github.enqueue(SHOP, number, author="wim")
    bench.idle()
    assert "success" not in (bench.conclusions(head)["plan"], bench.conclusions(head)["promotion"])
    assert bench.github.advance_queue(SHOP, author="wim") == []


def test_what_is_merged_under_the_label_is_planned_before_prod_changes(bench: Bench) -> None:
    """Whole, with what no plan had shown; nothing of the pull request stays behind."""
    number = label_pull(bench, COLUMN)
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    prod = bench.planner_state()["environments"]["prod"]
    assert (prod["revision"], sorted(prod["models"])) == (2, ["shop.more", "shop.orders", "shop.totals"])
    assert prod["models"]["shop.orders"] == COLUMN["models/orders.sql"]
    assert bench.record(number).state is PullState.PROMOTED
    assert list(bench.planner_state()["environments"]) == ["prod"]


@pytest.mark.prove
def test_rules_hold_for_what_is_merged_under_the_label(copy_bench: Make) -> None:
    """Behaviour 12: an approval of the plan before, or of no plan, is none of what is merged."""
    rules = [{"models": "shop.*", "approvals": 1}]
    bench = triage_bench(copy_bench, skip_label=LABEL, rules=rules, enable_deploy_command=True)
    number = bench.open(OTHER)
    bench.idle()
    bench.review(number)
    bench.github.label(SHOP, number, LABEL, author="tom")
    bench.github.commit(SHOP, "change", COLUMN, "More", author="wim")
    bench.idle()
    assert all_wait(bench, bench.head(number))
    bench.review(number)
    bench.say(number, "/deploy", author="ann")
    assert "No plan has been posted yet." in bench.replies(number)[-1]
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.record(number).rules.held
    assert bench.planner_state()["environments"]["prod"]["revision"] == 1
    bench.review(number)
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED


def test_a_fork_is_held_whatever_its_labels_and_is_planned_by_the_word_for_that_commit(bench: Bench) -> None:
    """Behaviour 6: taking a label away lets no code of a fork in; its author cannot label."""
    fork = bench.github.fork(SHOP, "rea")
    bench.github.commit(fork, "idea", COLUMN, "An idea", author="rea")
    number = bench.github.open_pull_request(SHOP, "rea:idea", "main", "An idea", author="rea")
    bench.idle()
    with pytest.raises(ApiError):
        bench.github.label(SHOP, number, LABEL, author="rea")
    for remove in (False, True, False):
        bench.github.label(SHOP, number, LABEL, author="tom", remove=remove)
        bench.idle()
    assert (bench.record(number).state, plans(bench)) == (PullState.HELD, 0)

    bench.say(number, f"/ok-to-plan {bench.head(number)}", author="ann")
    assert (bench.record(number).state, plans(bench)) == (PullState.PLANNED, 1)


def test_without_the_key_what_it_kept_is_planned_and_a_pull_request_does_not_set_it_itself(copy_bench: Make) -> None:
    """Behaviour 10: the base branch's rules, as they are now."""
    bench = triage_bench(copy_bench)
    number = label_pull(bench, {**COLUMN, "config.yaml": config(skip_label=LABEL)})
    assert bench.record(number).state is PullState.PLANNED
    for rules in ({"skip_label": LABEL}, {}):
        bench.github.commit(SHOP, "main", {"config.yaml": config(**rules)}, "Rules", author="ann")
        bench.github.commit(SHOP, "change", {"README.md": f"# {rules}\n"}, "Words", author="wim")
        bench.idle()
        skipped = bench.record(number).state is PullState.SKIPPED
        assert skipped is bool(rules)


@pytest.mark.parametrize("name", ["", " x", "x\ny", "x" * 51, ["x"], False])
def test_a_label_that_github_cannot_have_is_refused_at_its_line(name: object) -> None:
    """A key that does nothing would be one that is silently ignored."""
    with pytest.raises(ProjectError) as error:
        config_of(read_section("config.yaml", config(skip_label=name)), "main")

    assert "`cicd_bot.skip_label" in error.value.message
    assert error.value.place
