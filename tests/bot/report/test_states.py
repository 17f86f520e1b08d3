"""The table of states."""

from __future__ import annotations

from dataclasses import replace

from mergeplan.bot.policy.approvals import Decision, Need
from mergeplan.bot.records import PullState
from mergeplan.bot.report.checks.table import checks
from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.states import HELD_MERGE, STATES, headline, state_row
from tests.bot.report.test_comment import show


def test_what_waits_for_two_people_is_said_as_a_person_would() -> None:
    """And by no check as if it were ready."""
    need = Need(models=("shop.orders",), approvers=("ann", "bob", "eve"), left=2)
    view = show(decision=Decision(missing=(need,)))
    promotion = next(check for check in checks(view) if check.name == "mergeplan / promotion")

    text = plan_comment(view) or ""
    assert "> - 2 more approvals of `ann`, `bob` or `eve` are missing for `shop.orders`." in text
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
