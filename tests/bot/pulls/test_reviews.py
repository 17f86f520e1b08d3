"""Who decides, from a review to the checks and to prod. The planner is the scripted child."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from mergeplan.bot.records import AFTER_MERGE, PullState
from mergeplan.planner.errors import ProjectError
from mergeplan_sandbox.state import ReviewState
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench, until

Make = Callable[..., Bench]
NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def bench_with_rules(make_bench: Make, *rules: dict[str, object], files: dict[str, str] | None = None) -> Bench:
    """A bench whose project has these rules; bob may write too."""
    config = {"gateways": {}, "cicd_bot": {"type": "github", "rules": list(rules)}}
    bench = make_bench({**PROJECT, "config.yaml": yaml.safe_dump(config), **(files or {})})
    bench.github.add_user("bob")
    bench.github.set_permission(SHOP, "bob", "write")
    return bench


def open_pull(bench: Bench, files: dict[str, str] = COLUMN) -> int:
    number = bench.open(files)
    bench.idle()
    return number


def review(bench: Bench, number: int, author: str, state: ReviewState = "APPROVED") -> int:
    number_of_review = bench.review(number, state, author)
    bench.idle()
    return number_of_review


def approval(bench: Bench, number: int) -> tuple[str | None, str | None]:
    check = bench.checks(bench.head(number))["approval"]
    return check.conclusion, check.title


def test_the_approval_check_says_who_is_missing_until_they_approve(make_bench: Make) -> None:
    """Behaviour 12: a team's member, whose approval is read from GitHub; others' do not do."""
    bench = bench_with_rules(make_bench, {"models": "shop.*", "approvers": ["acme/finance"]})
    bench.github.set_team("acme/finance", ["ann"])
    number = open_pull(bench)
    assert approval(bench, number) == ("action_required", "Waits for an approval by acme/finance")
    assert "An approval by `acme/finance` is missing for `shop.orders`." in bench.plan(number)

    review(bench, number, "bob")
    assert approval(bench, number)[0] == "action_required"
    review(bench, number, "ann")
    assert approval(bench, number) == ("success", "Approved by bob, ann")
    assert "What blocks promotion" not in bench.plan(number)


def test_only_the_last_review_of_each_counts_and_a_dismissed_one_does_not(make_bench: Make) -> None:
    """Behaviour 12: approved and then changes requested is no approval; nor is one that was dismissed."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    review(bench, number, "bob")
    review(bench, number, "bob", "COMMENTED")
    assert approval(bench, number)[0] == "success"

    review(bench, number, "bob", "CHANGES_REQUESTED")
    assert approval(bench, number) == ("action_required", "bob requested changes")
    again = review(bench, number, "bob")
    assert approval(bench, number)[0] == "success"
    bench.github.dismiss_review(SHOP, number, again, author="ann")
    bench.idle()
    assert approval(bench, number) == ("action_required", "Waits for an approval")


def test_an_approval_is_of_the_plan_and_not_of_a_heads_text(make_bench: Make) -> None:
    """Behaviour 12: a push that changes no table keeps it, a push that does needs a new one."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    review(bench, number, "bob")
    bench.github.commit(SHOP, "change", {"README.md": "# More\n"}, "Words", author="wim")
    bench.idle()
    assert approval(bench, number) == ("success", "Approved by bob")

    bench.github.commit(SHOP, "change", FILTER, "Another query", author="wim")
    bench.idle()
    assert approval(bench, number)[0] == "action_required"
    assert "`bob` approved before this plan was shown" in bench.plan(number)
    review(bench, number, "bob")
    assert approval(bench, number)[0] == "success"


@pytest.mark.prove
def test_a_category_changes_the_plan_that_was_approved(make_bench: Make) -> None:
    """Behaviour 12: other tables than those that were approved need an approval of their own."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    review(bench, number, "bob")
    bench.say(number, "/categorize orders breaking")

    assert approval(bench, number)[0] == "action_required"


def test_an_owner_of_each_affected_models_file_approves(make_bench: Make) -> None:
    """CODEOWNERS of the base branch, also of models that the pull request does not edit."""
    owners = {"CODEOWNERS": "* @ann\nmodels/totals.sql @bob\n"}
    bench = bench_with_rules(make_bench, {"code_owners": True}, files=owners)
    number = open_pull(bench, {**FILTER, "CODEOWNERS": "* @wim\n"})
    missing = bench.checks(bench.head(number))["approval"].summary
    assert "`ann`, who owns the file, is missing for `shop.orders`" in str(missing)
    assert "`bob`, who owns the file, is missing for `shop.totals`" in str(missing)

    review(bench, number, "ann")
    review(bench, number, "bob")
    assert approval(bench, number) == ("success", "Approved by ann, bob")


def test_a_merge_that_the_rules_do_not_let_in_waits_and_later_ones_wait_behind_it(make_bench: Make) -> None:
    """Prod never shows what nobody approved; the approval that comes afterwards lets it in, and then the next."""
    bench = bench_with_rules(make_bench, {"models": "shop.orders", "approvals": 1})
    number = open_pull(bench)
    bench.github.commit(SHOP, "other", {"models/more.sql": "SELECT 3 AS x\n"}, "Other", author="wim")
    other = bench.github.open_pull_request(SHOP, "other", "main", "Other", author="wim")
    bench.idle()
    for pull in (number, other):
        bench.github.merge(SHOP, pull, author="ann")
        bench.idle()

    assert bench.record(number).rules.held
    assert bench.planner_state()["environments"]["prod"]["revision"] == 1
    assert bench.conclusions(bench.head(number))["promotion"] == "action_required"
    assert "### ✋ Merged; promotion on hold" in bench.plan(number)
    review(bench, number, "bob")
    assert [bench.record(pull).state for pull in (number, other)] == [PullState.PROMOTED] * 2
    assert "shop.more" in bench.planner_state()["environments"]["prod"]["models"]


@pytest.mark.prove
def test_a_merge_that_came_before_its_plan_is_shown_and_can_be_approved(make_bench: Make) -> None:
    """Pushed and merged in one breath: the plan of the merge is shown for the head that was merged."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    bench.github.faults.drop("pull_request.synchronize", times=1)
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).rules.held
    assert "WHERE true" in bench.plan(number)

    review(bench, number, "bob")
    assert bench.record(number).state is PullState.PROMOTED


def test_an_admin_deploys_a_held_merge_and_nobody_else(make_bench: Make) -> None:
    """Who did it is on record."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    bench.github.merge(SHOP, number, author="wim")
    bench.idle()
    bench.say(number, "/deploy", author="wim")
    assert "needs the `admin` permission" in bench.replies(number)[0]
    bench.say(number, "/deploy", author="ann")

    assert bench.record(number).state is PullState.PROMOTED
    assert "It is in prod." in bench.replies(number)[1]
    who = [(who, what) for _, who, what, _ in bench.context.inbox.decisions.list_decisions(SHOP, number)]
    assert ("ann", f"promoted {bench.record(number).promotion.merge_sha} against the rules") in who


@pytest.mark.prove
def test_a_revert_ends_the_wait_of_a_held_merge(make_bench: Make) -> None:
    """What was taken back never was in prod, and holds nobody up."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.github.commit(SHOP, "back", {"models/orders.sql": PROJECT["models/orders.sql"]}, "Back", author="wim")
    back = bench.github.open_pull_request(SHOP, "back", "main", "Revert", author="wim")
    bench.idle()
    bench.github.merge(SHOP, back, author="ann")
    bench.idle()

    assert [bench.record(pull).state for pull in (number, back)] == [PullState.PROMOTED] * 2
    assert "Prod shows it together with #" in bench.plan(number)
    assert bench.planner_state()["environments"]["prod"]["revision"] == 1


@pytest.mark.prove
def test_a_push_without_a_pull_request_is_held_too(make_bench: Make) -> None:
    """Nobody reviewed its plan: the commit's check says so, and an approved merge that holds it lets both in."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    pushed = bench.github.commit(SHOP, "main", COLUMN, "Straight to main", author="ann")
    bench.idle()
    check = bench.checks(pushed)["promotion"]
    assert (check.conclusion, check.title) == ("action_required", "Pushed; promotion on hold")

    number = open_pull(bench, {"models/more.sql": "SELECT 3 AS x\n"})
    assert "shop.orders" in bench.plan(number)
    review(bench, number, "bob")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]


def test_a_freeze_holds_the_promotion_and_says_until_when(make_bench: Make) -> None:
    """The check fails while it lasts; when it ends the timer lets the merge in."""
    end = NOW + timedelta(days=1)
    freeze = {"start": str(NOW - timedelta(days=1)), "end": str(end), "reason": "the year's end"}
    bench = bench_with_rules(make_bench, {"freeze": [freeze]})
    number = open_pull(bench)
    assert approval(bench, number)[0] == "action_required"
    assert f"Prod is frozen until {end:%a} {end.day} {end:%b %Y %H:%M} (UTC): the year's end." in bench.plan(number)
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).rules.held


def test_a_category_that_the_rules_block_stays_out(make_bench: Make) -> None:
    """By a tag, which the pull request cannot take away; no approval lets it in."""
    bench = bench_with_rules(make_bench, {"models": "tag:pii", "block": ["breaking"]})
    bench.knobs(tags={"shop.orders": ["pii"]})
    number = open_pull(bench, FILTER)

    assert approval(bench, number) == ("action_required", "Blocked by a rule: shop.orders is breaking")
    assert "`shop.orders` is breaking, which this project's rules keep out of prod." in bench.plan(number)


def test_who_edits_the_rules_needs_the_approval_that_they_ask_for(make_bench: Make) -> None:
    """Behaviour 10: also when no model of the rule is touched; and after another push of the text, once more."""
    bench = bench_with_rules(make_bench, {"models": "shop.orders", "approvals": 1})
    number = open_pull(bench, {"config.yaml": "gateways: {}\n", "models/more.sql": "SELECT 3 AS x\n"})
    assert "is missing for the edit of the rules" in bench.plan(number)
    review(bench, number, "bob")
    assert approval(bench, number)[0] == "success"
    bench.github.commit(SHOP, "change", {"README.md": "# More\n"}, "Words", author="wim")
    bench.idle()
    assert approval(bench, number)[0] == "action_required"


def test_the_bots_own_required_checks_do_not_keep_it_from_its_work(make_bench: Make) -> None:
    """Behaviour 27: branch protection asks for all of them; merged by hand after the approval, it is promoted."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    names = ("tests", "plan", "environment", "approval", "promotion")
    bench.github.require_checks(SHOP, "main", [f"mergeplan / {name}" for name in names])
    number = open_pull(bench)
    with pytest.raises(Exception, match="is expected"):
        bench.github.merge(SHOP, number, author="ann")
    review(bench, number, "bob")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED


def test_where_prods_rules_cannot_be_read_nothing_is_promoted_by_itself(
    make_bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade to a version that refuses a key of them."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)

    def refuse_rules(*_: object) -> None:
        raise ProjectError("`cicd_bot.rules` has an unknown key.")

    monkeypatch.setattr("mergeplan.bot.context.config_of", refuse_rules)
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()

    assert (bench.record(number).state, bench.record(number).rules.held) == (PullState.MERGED, True)
    assert "so the required approvals are not known: `cicd_bot.rules` has an unknown key." in bench.plan(number)


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_commit_that_is_merged_before_its_plan_is_made_needs_an_approval_of_its_own(
    make_bench: Make, cancelled: bool
) -> None:
    """The plan that is stored, and approved, is of the commit before it."""
    bench = bench_with_rules(make_bench, {"approvals": 1})
    number = open_pull(bench)
    review(bench, number, "bob")
    bench.knobs(ponder="pr")
    bench.github.commit(SHOP, "change", FILTER, "More", author="wim")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the second plan")
    if cancelled:
        bench.github.comment(SHOP, number, "/cancel", author="wim")
        until(lambda: bench.record(number).state is PullState.CANCELLED, what="the end of the plan")
    bench.github.merge(SHOP, number, author="ann")
    until(lambda: bench.record(number).state in AFTER_MERGE, what="the merge")
    bench.knobs()
    bench.idle()

    assert bench.record(number).rules.held
    assert "WHERE true" in bench.plan(number)


def test_a_plan_that_prod_overtook_decides_on_no_merge(make_bench: Make) -> None:
    """Another one was being made; the merge is planned, and that plan is judged."""
    bench = bench_with_rules(make_bench, {"models": "shop.orders", "approvals": 1})
    number = open_pull(bench)
    review(bench, number, "bob")
    other = bench.open({"models/totals.sql": "SELECT count(*) + 1 AS n FROM shop.orders\n"}, "other")
    bench.idle()
    bench.knobs(ponder="pr")
    bench.github.merge(SHOP, other, author="ann")
    until(lambda: len(bench.calls("plan", "pr_1")) == 2, what="the second plan")
    bench.github.merge(SHOP, number, author="ann")
    until(lambda: bench.record(number).state in AFTER_MERGE, what="the merge")
    bench.knobs()
    bench.idle()

    assert [call["argv"] for call in bench.calls("plan", "prod") if "--auto-apply" not in call["argv"]]
    assert bench.record(number).rules.held  # `shop.totals` gets another table than in the approved plan
