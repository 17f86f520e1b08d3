"""The table of states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mergeplan.bot.policy.approvals import Decision, Need
from mergeplan.bot.pull_parts import Layer, Reversal, StackBase
from mergeplan.bot.records import PullState
from mergeplan.bot.report.checks.table import checks
from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.replies import state_sentence
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import HELD_MERGE, STATES, headline, state_row
from tests.bot.report.test_comment import show


def test_what_waits_for_two_people_is_said_as_a_person_would() -> None:
    """And by no check as if it were ready."""
    need = Need(models=("shop.orders",), approvers=("ann", "bob", "eve"), left=2)
    view = show(decision=Decision(missing=(need,)))
    promotion = next(check for check in checks(view) if check.name == "mergeplan / promotion")

    text = plan_comment(view) or ""
    assert "> - 2 approvals by `ann`, `bob` or `eve` are missing for `shop.orders`." in text
    assert "> A merge before that does not change prod. Once allowed, merging points 1 view" in text
    assert promotion.title.startswith("Ready when it is allowed: ")


def test_what_the_headline_says_is_not_said_again_at_the_end() -> None:
    for state in (PullState.HELD, PullState.CANCELLED, PullState.SKIPPED, PullState.FAILED):
        assert "What blocks promotion" not in (plan_comment(show(state)) or "")


def test_a_merge_behind_a_commit_that_the_rules_hold_says_so() -> None:
    view = show(PullState.MERGED, merge_sha="b" * 40)

    waiting = replace(view, prod=replace(view.prod, held="c" * 40))

    assert "Prod waits at the commit `ccccccc` of its branch" in (plan_comment(waiting) or "")
    assert "Prod waits" not in (plan_comment(view) or "")


def test_every_state_has_a_row() -> None:
    assert set(STATES) == set(PullState)


def test_a_merge_that_the_rules_hold_has_a_row_of_its_own() -> None:
    view = show(PullState.MERGED, held=True)

    assert state_row(view.record) is HELD_MERGE
    assert headline(view) == "### ✋ Merged; promotion on hold"
    assert headline(show(PullState.MERGED)) == "### 🚚 Merged: promoting to prod"


def test_the_verdict_stands_before_ids_and_counts() -> None:
    text = plan_comment(show()) or ""

    assert text.index("**Ready.**") < text.index("1 breaking") < text.index("head `aaaaaaa`")


def test_a_merge_on_hold_names_what_it_takes_from_prod() -> None:
    removed = {"name": "shop.orders", "change": "removed", "category": None, "kind": "FULL"}
    view = show(PullState.MERGED, models=[removed], held=True)

    assert headline(view) == "### ✋ Merged; promotion on hold · ⚠️ Drops table `shop.orders`"
    assert state_sentence(view) == "merged; the project's rules keep it from prod; see the plan comment."


def test_an_approval_that_is_missing_is_counted_in_the_headline() -> None:
    everybody = Decision(missing=(Need(models=("shop.orders",), left=2), Need(models=("shop.totals",))))
    owner = Decision(missing=(Need(models=("shop.orders",), approvers=("ann",)),))

    assert headline(show(decision=everybody)).startswith("### ✋ Waits for 2 approvals, and 1 more · replaces 1 table")
    assert headline(show(decision=owner)).startswith("### ✋ Waits for an approval by ann · replaces 1 table of prod")
    assert "- 2 approvals by people with `write` are missing for `shop.orders`." in (
        plan_comment(show(decision=everybody)) or ""
    )


def test_a_rollback_says_first_what_is_left_to_do() -> None:
    back = Reversal(who="ann", revision=1, number=9)
    view = show(PullState.ROLLED_BACK, reversal=back, reason="ann pointed prod back.")
    lines = [line for line in (plan_comment(view) or "").splitlines() if line.startswith("> ")]

    assert lines[1].startswith("> **The branch still holds this change**: merge #9, which reverts it")
    assert lines[2] == "> ann pointed prod back."


def test_the_checks_of_a_deleted_environment_say_the_command_once() -> None:
    view = show(PullState.CANCELLED, reason="wim dropped its environment; `/plan` builds it again.")

    assert {check.summary for check in checks(view)} == {"Prod is unchanged."}


def layer(*, is_level: bool, models: list[dict[str, Any]] | None = None) -> Shown:
    return show(models=models, planned_on=StackBase((Layer(6, "c" * 40),)), is_level=is_level)


def test_the_headline_of_a_layer_is_of_the_stack() -> None:
    assert headline(layer(is_level=True)) == (
        "### ✅ Ready after #6, or together with it · the stack replaces 1 table of prod"
    )


def test_a_layer_that_is_behind_is_nowhere_ready() -> None:
    """Neither in its promotion check nor under a loss."""
    removed = {"name": "shop.orders", "change": "removed", "category": None, "kind": "FULL"}
    behind = {check.name: check.title for check in checks(layer(is_level=False))}

    assert behind["mergeplan / promotion"] == "Behind #6: the stack replaces 1 table of prod"
    assert headline(layer(is_level=False, models=[removed])) == "### ⚠️ Drops table `shop.orders` · ✋ Behind #6"
