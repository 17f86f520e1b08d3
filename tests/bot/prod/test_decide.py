"""What is done next for prod, as a table: one row a rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mergeplan.bot.prod.decide import (
    Action,
    AdoptProd,
    Move,
    ProdFacts,
    PromoteMerge,
    PromotePush,
    RefuseRollback,
    RollBack,
    SettleMerge,
    SkipStep,
    Step,
    StopPlan,
    build_wait,
    decide_prod,
    may_retry,
    prod_steps,
    sweep_is_due,
)
from mergeplan.bot.records import Prod, ProdRecord, PullRecord, PullState
from mergeplan.bot.results import PlannerOutcome, read_outcome
from mergeplan.planner.contract.lines import ErrorLine
from mergeplan.planner.contract.result import EnvironmentRow, ResultLine
from tests.bot.changing import change_record

HEAD, OLD = "a" * 40, "b" * 40
READY = ProdRecord("ann/shop", Prod.READY, "main", HEAD, HEAD, 3)
FAILED = replace(READY, state=Prod.FAILED, revision=0, promoted_commit="")
NEW = ProdRecord("ann/shop")
MERGE, PUSH = Step(HEAD, 7), Step(HEAD)
MERGED = change_record(PullRecord("ann/shop", 7, PullState.MERGED), merge_sha=OLD)
UNPROMOTED = change_record(MERGED, state=PullState.UNPROMOTED)
ROLLED_BACK = replace(UNPROMOTED, state=PullState.ROLLED_BACK)
PROMOTED = change_record(MERGED, state=PullState.PROMOTED, promotion_revision=3, rollback_by="rea")
ROW = EnvironmentRow(name="prod", revision=3, plan_id="p1")


def facts(prod: ProdRecord, **more: Any) -> ProdFacts:
    return ProdFacts(prod, "main", HEAD, **{"now": 100.0, **more})


@pytest.mark.parametrize(
    ("now", "action"),
    [
        (facts(READY), Move.REST),
        (facts(READY, sweep_is_due=True), Move.RUN_JANITOR),
        (facts(READY, sweep_is_due=True, steps=(PUSH,)), PromotePush(HEAD)),
        (facts(FAILED, sweep_is_due=True), Move.REST),
        (replace(facts(READY), branch="trunk"), Move.FOLLOW_BRANCH),
        (facts(NEW), Move.LOOK_FOR_PROD),
        (facts(NEW, looked=True, planned_prod=ROW), AdoptProd(ROW)),
        (facts(NEW, looked=True), Move.BUILD_PROD),
        (facts(NEW, looked=True, steps=(MERGE,)), PromoteMerge(7, HEAD)),  # it brings the first project
        (facts(NEW, looked=True, steps=(PUSH,)), Move.BUILD_PROD),
        (facts(NEW, looked=True, built=True), Move.REST),
        (facts(NEW, looked=True, taken=1), Move.REST),
        (facts(FAILED), Move.REST),
        (facts(replace(FAILED, commit=OLD)), Move.LOOK_FOR_PROD),
        (facts(FAILED, again=True), Move.LOOK_FOR_PROD),
        (facts(replace(FAILED, again_at=99.0)), Move.LOOK_FOR_PROD),
        (facts(replace(FAILED, again_at=101.0)), Move.REST),
        (facts(replace(FAILED, revision=3, again_at=99.0)), Move.REST),
        (facts(READY, pulls=(PROMOTED,), steps=(MERGE,)), RollBack(7, "rea", 2)),
        (facts(replace(READY, revision=4), pulls=(change_record(PROMOTED, rollback_start=3),)), RollBack(7, "rea", 2)),
        (facts(replace(READY, revision=4), pulls=(PROMOTED,)), RefuseRollback(7, "Prod has moved on to revision 4.")),
        (
            facts(replace(READY, revision=1), pulls=(change_record(PROMOTED, promotion_revision=1),)),
            RefuseRollback(7, "Prod has moved on to revision 1."),
        ),
        (facts(READY, steps=(MERGE,)), PromoteMerge(7, HEAD)),
        (facts(READY, steps=(PUSH,)), PromotePush(HEAD)),
        (facts(READY, steps=(MERGE,), is_untouched=True), SkipStep(MERGE)),
        (facts(FAILED, steps=(MERGE,), is_untouched=True), PromoteMerge(7, HEAD)),
        (facts(READY, steps=(MERGE,), pulls=(change_record(MERGED, state=PullState.PLANNING),)), StopPlan(7)),
        (facts(replace(READY, promoted_commit=OLD), again=True), PromotePush(HEAD)),
        (facts(replace(READY, promoted_commit=OLD), again=True, taken=1), Move.REST),
        (facts(READY, again=True), Move.REST),
        (facts(READY, pulls=(UNPROMOTED,)), Move.REST),
        (facts(READY, pulls=(change_record(UNPROMOTED, again=True),)), PromoteMerge(7, HEAD)),
        (
            facts(READY, pulls=(change_record(UNPROMOTED, state=PullState.ROLLED_BACK, again=True),)),
            PromoteMerge(7, HEAD),
        ),
        (facts(READY, pulls=(MERGED,)), Move.REST),
        (facts(READY, pulls=(MERGED,), behind=frozenset({7})), PromoteMerge(7, HEAD)),
        (facts(READY, pulls=(UNPROMOTED,), behind=frozenset({7})), Move.REST),
        (facts(READY, pulls=(MERGED,), shown=frozenset({7})), SettleMerge(7)),
        (facts(READY, pulls=(UNPROMOTED,), shown=frozenset({7})), SettleMerge(7)),
    ],
)
def test_the_next_action_follows_from_what_is(now: ProdFacts, action: Action) -> None:
    assert decide_prod(now) == action


def test_each_merge_is_a_step_and_the_pushes_after_the_last_are_one() -> None:
    """Pushes between two merges go with the later one."""
    assert prod_steps(["1", "2", "3", "4", "5"], {"2": 7, "3": 8}) == (Step("2", 7), Step("3", 8), Step("5"))
    assert prod_steps(["1", "2"], {"2": 7}) == (Step("2", 7),)
    assert prod_steps([], {"2": 7}) == ()


def outcome(kind: str, *, retry: bool) -> PlannerOutcome:
    return read_outcome([ErrorLine(kind=kind, message="no", retry=retry), ResultLine(ok=False)], 1)


def test_what_may_pass_later_is_tried_again_and_a_mistake_is_not() -> None:
    held, mistake = outcome("LeaseHeld", retry=True), outcome("ProjectError", retry=False)

    assert [build_wait(held, 2), build_wait(mistake, 2)] == [4.0, 0.0]
    assert [may_retry(held, 29), may_retry(held, 30), may_retry(mistake, 1)] == [True, False, False]


@pytest.mark.parametrize(
    ("swept_at", "hours", "due"), [(0.0, 24.0, False), (1.0, 24.0, True), (50_000.0, 24.0, False), (1.0, 0.0, False)]
)
def test_the_janitor_is_due_so_many_hours_after_it_was_at_work(swept_at: float, hours: float, due: bool) -> None:
    assert sweep_is_due(replace(READY, swept_at=swept_at), hours, 86_401.0) == due
