"""The table of states."""

from __future__ import annotations

from mergeplan.bot.records import PullState
from mergeplan.bot.report.states import HELD_MERGE, STATES, headline, state_row
from tests.bot.report.test_comment import show


def test_every_state_has_a_row() -> None:
    assert set(STATES) == set(PullState)


def test_a_merge_that_the_rules_hold_has_a_row_of_its_own() -> None:
    view = show(PullState.MERGED, held=True)

    assert state_row(view.record) is HELD_MERGE
    assert headline(view) == "### ✋ Merged; promotion on hold"
    assert headline(show(PullState.MERGED)) == "### 🚚 Merged: promoting to prod"
