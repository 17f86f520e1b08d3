"""What follows from a live pull request and what we know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mergeplan.bot.pull_parts import Layer, PendingOverride, StackBase
from mergeplan.bot.pulls.decide import LAYER_WAIT, Action, MakePlan, decide_action, interrupt_reason
from mergeplan.bot.records import MergeGroup, News, Prod, ProdRecord, Pull, PullRecord, PullState
from tests.bot.changing import change_record

HEAD, OLD = "a" * 40, "b" * 40
PULL = Pull(7, "A change", "wim", True, False, "", HEAD, False, "main", "")
PLANNED = change_record(PullRecord("ann/shop", 7, PullState.PLANNED, HEAD), prod_revision=3, environment_exists=True)
READY = ProdRecord("ann/shop", Prod.READY, "main", "c" * 40, "c" * 40, 3)
MERGED = replace(PULL, is_open=False, merged=True, merge_sha="d" * 40)
CLOSED = replace(PULL, is_open=False)
FORK = replace(PULL, is_fork=True)
LABELED = replace(PULL, labels=("urgent", "No-Plan"))
RULED = replace(READY, skip_label="no-plan")
LABELED_FORK = replace(LABELED, is_fork=True)
SKIPPED = change_record(PLANNED, state=PullState.SKIPPED, skip_label="no-plan")
BELOW = Layer(6, "e" * 40)
LAYER = replace(PULL, base_ref="other", stack=StackBase((BELOW,), "p1"))
WAITS = replace(LAYER, stack=StackBase((BELOW,), "p1", waits_for=6))
ON_LAYER = change_record(PLANNED, planned_on=LAYER.stack)
WORD = PendingOverride("a.b", "breaking", "wim", HEAD)
Step = Action | type[MakePlan]


def decide_step(pull: Pull, record: PullRecord, prod: ProdRecord) -> Step:
    action = decide_action(pull, record, prod, "main")
    return action if isinstance(action, Action) else MakePlan


@pytest.mark.parametrize(
    ("pull", "record", "prod", "action"),
    [
        (PULL, PLANNED, READY, Action.REST),
        (PULL, change_record(PLANNED, head=OLD), READY, MakePlan),
        (PULL, change_record(PLANNED, again=True), READY, MakePlan),
        (PULL, change_record(PLANNED, overrides=(WORD,)), READY, MakePlan),
        (PULL, change_record(PLANNED, prod_revision=2), READY, MakePlan),
        (PULL, change_record(PLANNED, state=PullState.FAILED, prod_revision=2), READY, MakePlan),
        (PULL, change_record(PLANNED, state=PullState.FAILED), READY, Action.REST),
        (PULL, change_record(PLANNED, run_lines='{"exit_code": 0, "lines": ["of another version"]}'), READY, MakePlan),
        (PULL, change_record(PLANNED, state=PullState.CANCELLED, prod_revision=2), READY, Action.REST),
        (PULL, change_record(PLANNED, state=PullState.PLANNING), READY, MakePlan),
        (PULL, change_record(PLANNED, state=PullState.CANCELLED), READY, Action.REST),
        (PULL, change_record(PLANNED, state=PullState.CLOSED), READY, MakePlan),
        (PULL, PullRecord("ann/shop", 7), replace(READY, state=Prod.UNKNOWN), Action.WAIT_FOR_PROD),
        (PULL, PullRecord("ann/shop", 7), replace(READY, state=Prod.FAILED), MakePlan),
        (FORK, PullRecord("ann/shop", 7), READY, Action.HOLD),
        (FORK, change_record(PullRecord("ann/shop", 7), allowed_head=OLD), READY, Action.HOLD),
        (FORK, change_record(PullRecord("ann/shop", 7), allowed_head=HEAD), READY, MakePlan),
        (CLOSED, PLANNED, READY, Action.DROP_ENVIRONMENT),
        (CLOSED, PullRecord("ann/shop", 7), READY, Action.LEAVE),
        (CLOSED, change_record(PLANNED, state=PullState.CLOSED, environment_exists=False), READY, Action.REST),
        (replace(PULL, base_ref="other"), PLANNED, READY, Action.DROP_ENVIRONMENT),
        (LAYER, PLANNED, READY, MakePlan),
        (LAYER, ON_LAYER, READY, Action.REST),
        (LAYER, change_record(ON_LAYER, state=PullState.FAILED), READY, Action.REST),
        (LAYER, change_record(ON_LAYER, prod_revision=2), READY, MakePlan),
        (LAYER, change_record(PLANNED, planned_on=StackBase((BELOW,), "p0")), READY, MakePlan),
        (LAYER, change_record(PLANNED, planned_on=StackBase((replace(BELOW, head=OLD),), "p1")), READY, MakePlan),
        (WAITS, PullRecord("ann/shop", 7), READY, Action.WAIT_FOR_LAYER),
        (WAITS, change_record(ON_LAYER, head=OLD), READY, Action.WAIT_FOR_LAYER),
        (WAITS, change_record(ON_LAYER, planned_on=StackBase((BELOW,), "p0")), READY, Action.REST),
        (WAITS, change_record(ON_LAYER, state=PullState.WAITING, waits_since=50.0), READY, Action.REST),
        (replace(LAYER, is_fork=True), ON_LAYER, READY, Action.HOLD),
        (PULL, ON_LAYER, READY, MakePlan),
        (replace(PULL, base_ref="other"), ON_LAYER, READY, Action.LEAVE_STACK),
        (replace(MERGED, base_ref="other"), ON_LAYER, READY, Action.LEAVE_STACK),
        (replace(MERGED, base_ref="other", landed=True), ON_LAYER, READY, Action.HAND_TO_PROD),
        (replace(CLOSED, base_ref="other"), ON_LAYER, READY, Action.DROP_ENVIRONMENT),
        (replace(PULL, base_ref="other"), PullRecord("ann/shop", 7), READY, Action.LEAVE),
        (MERGED, PLANNED, READY, Action.HAND_TO_PROD),
        (MERGED, change_record(PLANNED, state=PullState.MERGED), READY, Action.REST),
        (MERGED, change_record(PLANNED, state=PullState.PROMOTED), READY, Action.DROP_ENVIRONMENT),
        (MERGED, change_record(PLANNED, state=PullState.PROMOTED, environment_exists=False), READY, Action.REST),
        (MERGED, change_record(PLANNED, state=PullState.UNPROMOTED), READY, Action.REST),
        (MERGED, change_record(PLANNED, state=PullState.UNPROMOTED, again=True), READY, Action.HAND_TO_PROD),
    ],
)
def test_the_next_step_follows_from_what_is(
    pull: Pull, record: PullRecord, prod: ProdRecord, action: Action | type[MakePlan]
) -> None:
    """One row a rule."""
    assert decide_step(pull, record, prod) is action


def test_a_layer_waits_for_half_an_hour_at_most() -> None:
    """Whatever becomes of the one below, its checks do not stay in progress."""
    waiting = change_record(ON_LAYER, state=PullState.WAITING, waits_since=50.0)

    assert isinstance(decide_action(WAITS, waiting, READY, "main", 50.0 + LAYER_WAIT), MakePlan)


@pytest.mark.parametrize(
    ("pull", "record", "action"),
    [
        (LABELED, PullRecord("ann/shop", 7), Action.SKIP),
        (LABELED, change_record(PLANNED, head=OLD), Action.SKIP),
        (LABELED, change_record(PLANNED, head=OLD, overrides=(replace(WORD, head=OLD),)), Action.SKIP),
        (LABELED, change_record(PLANNED, head=OLD, state=PullState.PLANNING), Action.SKIP),
        (LABELED, change_record(PLANNED, prod_revision=2), Action.SKIP),
        (LABELED, change_record(PLANNED, state=PullState.FAILED, prod_revision=2), Action.SKIP),
        (LABELED, change_record(PLANNED, state=PullState.CLOSED), Action.SKIP),
        (LABELED, change_record(PLANNED, run_lines='{"exit_code": 0, "lines": ["of another version"]}'), Action.SKIP),
        (LABELED, change_record(SKIPPED, skip_label="draft"), Action.SKIP),
        (LABELED, SKIPPED, Action.REST),
        (LABELED, PLANNED, Action.REST),
        (LABELED, change_record(PLANNED, state=PullState.CANCELLED), Action.REST),
        (LABELED, change_record(PLANNED, state=PullState.PLANNING), MakePlan),
        (LABELED, change_record(PLANNED, overrides=(WORD,)), MakePlan),
        (LABELED, change_record(SKIPPED, again=True), MakePlan),
        (PULL, SKIPPED, MakePlan),
        (LABELED_FORK, PullRecord("ann/shop", 7), Action.HOLD),
        (LABELED_FORK, change_record(SKIPPED, state=PullState.HELD, allowed_head=HEAD), MakePlan),
        (LABELED_FORK, change_record(SKIPPED, head=OLD, allowed_head=OLD), Action.HOLD),
        (replace(LABELED, is_open=False), SKIPPED, Action.DROP_ENVIRONMENT),
        (replace(MERGED, labels=("no-plan",)), SKIPPED, Action.HAND_TO_PROD),
    ],
)
def test_a_label_keeps_what_nobody_asked_for_from_being_planned(
    pull: Pull, record: PullRecord, action: Action | type[MakePlan]
) -> None:
    """It takes back nothing that somebody asked for or that has begun, and holds back no merge."""
    assert decide_step(pull, record, RULED) is action


def test_the_label_comes_before_prods_first_build_and_a_group_of_it_is_answered() -> None:
    """It waits for nothing; the merge queue gets its answer all the same."""
    to_come = replace(RULED, state=Prod.UNKNOWN)
    grouped = change_record(SKIPPED, group=MergeGroup(OLD))

    assert decide_step(LABELED, PullRecord("ann/shop", 7), to_come) is Action.SKIP
    assert decide_step(LABELED, change_record(SKIPPED, again=True), to_come) is Action.WAIT_FOR_PROD
    assert decide_step(LABELED, grouped, RULED) is Action.PLAN_GROUP
    assert decide_step(LABELED, change_record(SKIPPED, group_exists=True), RULED) is Action.DROP_GROUP


@pytest.mark.parametrize(
    ("news", "reason"),
    [
        ([News(1, "pull_request.synchronize", OLD)], f"superseded:{OLD}"),
        ([News(1, "pull_request.synchronize", HEAD)], ""),
        ([News(1, "pull_request.closed", HEAD)], "closed"),
        ([News(1, "issue_comment.created", "")], ""),
        ([News(1, "pull_request.labeled", "")], ""),
        ([News(1, "check_run.rerequested", OLD)], ""),
    ],
)
def test_only_a_newer_head_or_a_close_interrupts_a_run(news: list[News], reason: str) -> None:
    """Behaviours 20, 21: talk does not."""
    assert interrupt_reason(news, HEAD) == reason
