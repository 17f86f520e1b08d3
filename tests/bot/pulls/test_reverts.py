"""Which pull request reverts another, and where none is opened."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from mergeplan.bot.github.gateway import is_revert
from mergeplan.bot.pull_parts import Reversal
from mergeplan.bot.pulls.actions.steps import open_revert
from mergeplan.bot.records import Pull, PullRecord
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.settings import ACTIONS_LOGIN
from tests.bot.changing import change_record

MERGED = Pull(41, "A change", "wim", False, True, "c" * 40, "a" * 40, False, "main", "", "change")
REVERT = replace(MERGED, number=50, is_open=True, merged=False, head_ref="revert-41-change")
RECORD = change_record(PullRecord("ann/shop", 41), reversal=Reversal("ann", 1, to_open=True))


@dataclass(frozen=True)
class Silent:
    """A gateway that may not be asked."""

    login: str


@pytest.mark.parametrize(
    ("pull", "is_one"),
    [
        (REVERT, True),
        (replace(REVERT, head_ref="revert-41-change-1"), True),
        (replace(REVERT, head_ref="revert-41-changes"), False),
        (replace(REVERT, head_ref="revert-4-change"), False),
        (replace(REVERT, is_fork=True), False),
        (replace(REVERT, base_ref="other"), False),
        (replace(REVERT, is_open=False), False),
    ],
)
def test_a_revert_is_known_by_github_s_name_for_its_branch_in_the_same_repository(pull: Pull, is_one: bool) -> None:
    assert is_revert(pull, MERGED) == is_one


@pytest.mark.parametrize(
    ("login", "config", "why"),
    [(ACTIONS_LOGIN, BotConfig(), "starts no workflow"), ("bot", BotConfig(open_revert=False), "")],
)
def test_none_is_opened_by_a_workflow_s_own_token_or_where_it_is_off(login: str, config: BotConfig, why: str) -> None:
    done = open_revert(Silent(login), MERGED, RECORD, config, 0)  # type: ignore[arg-type]

    assert (done.to_open, done.number, why in done.why) == (False, 0, True)
