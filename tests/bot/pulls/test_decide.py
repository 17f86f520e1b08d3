"""What follows from a live pull request and what we know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.pulls.decide import DropEnvironment, HandToProd, Hold, Leave, MakePlan, Rest, WaitForProd, decide, interrupts
from bot.records import News, PendingWord, Prod, ProdRecord, Pull, PullRecord, PullState

HEAD, OLD = "a" * 40, "b" * 40
PULL = Pull(7, "A change", "wim", True, False, "", HEAD, "ann/shop", "main", "")
PLANNED = PullRecord("ann/shop", 7, PullState.PLANNED, HEAD, prod_revision=3, environment_exists=True)
READY = ProdRecord("ann/shop", Prod.READY, "main", "c" * 40, "c" * 40, 3)
MERGED = replace(PULL, is_open=False, merged=True, merge_sha="d" * 40)
CLOSED = replace(PULL, is_open=False)
FORK = replace(PULL, head_repository="rea/shop")


@pytest.mark.parametrize(
    ("pull", "record", "prod", "action"),
    [
        (PULL, PLANNED, READY, Rest),
        (PULL, replace(PLANNED, head=OLD), READY, MakePlan),
        (PULL, replace(PLANNED, again=True), READY, MakePlan),
        (PULL, replace(PLANNED, words=(PendingWord("a.b", "breaking", "wim", HEAD),)), READY, MakePlan),
        (PULL, replace(PLANNED, prod_revision=2), READY, MakePlan),
        (PULL, replace(PLANNED, state=PullState.FAILED, prod_revision=2), READY, MakePlan),
        (PULL, replace(PLANNED, state=PullState.FAILED), READY, Rest),
        (PULL, replace(PLANNED, run_lines='{"exit_code": 0, "lines": ["of another version"]}'), READY, MakePlan),
        (PULL, replace(PLANNED, state=PullState.CANCELLED, prod_revision=2), READY, Rest),
        (PULL, replace(PLANNED, state=PullState.PLANNING), READY, MakePlan),
        (PULL, replace(PLANNED, state=PullState.CANCELLED), READY, Rest),
        (PULL, replace(PLANNED, state=PullState.CLOSED), READY, MakePlan),
        (PULL, PullRecord("ann/shop", 7), replace(READY, state=Prod.UNKNOWN), WaitForProd),
        (PULL, PullRecord("ann/shop", 7), replace(READY, state=Prod.FAILED), MakePlan),
        (FORK, PullRecord("ann/shop", 7), READY, Hold),
        (FORK, PullRecord("ann/shop", 7, allowed_head=OLD), READY, Hold),
        (FORK, PullRecord("ann/shop", 7, allowed_head=HEAD), READY, MakePlan),
        (CLOSED, PLANNED, READY, DropEnvironment),
        (CLOSED, PullRecord("ann/shop", 7), READY, Leave),
        (CLOSED, replace(PLANNED, state=PullState.CLOSED, environment_exists=False), READY, Rest),
        (replace(PULL, base_ref="other"), PLANNED, READY, DropEnvironment),
        (replace(PULL, base_ref="other"), PullRecord("ann/shop", 7), READY, Leave),
        (MERGED, PLANNED, READY, HandToProd),
        (MERGED, replace(PLANNED, state=PullState.MERGED), READY, Rest),
        (MERGED, replace(PLANNED, state=PullState.PROMOTED), READY, DropEnvironment),
        (MERGED, replace(PLANNED, state=PullState.PROMOTED, environment_exists=False), READY, Rest),
        (MERGED, replace(PLANNED, state=PullState.UNPROMOTED), READY, Rest),
        (MERGED, replace(PLANNED, state=PullState.UNPROMOTED, again=True), READY, HandToProd),
    ],
)
def test_the_next_step_follows_from_what_is(pull: Pull, record: PullRecord, prod: ProdRecord, action: type) -> None:
    """One row a rule."""
    assert type(decide(pull, record, prod, "main", "ann/shop")) is action


@pytest.mark.parametrize(
    ("news", "reason"),
    [
        ([News(1, "pull_request.synchronize", OLD)], f"superseded:{OLD}"),
        ([News(1, "pull_request.synchronize", HEAD)], ""),
        ([News(1, "pull_request.closed", HEAD)], "closed"),
        ([News(1, "issue_comment.created", "")], ""),
        ([News(1, "check_run.rerequested", OLD)], ""),
    ],
)
def test_only_a_newer_head_or_a_close_interrupts_a_run(news: list[News], reason: str) -> None:
    """Behaviours 20, 21: talk does not."""
    assert interrupts(news, HEAD) == reason
