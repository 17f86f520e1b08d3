"""A live pull request and what we know of it -> what should be done next. Pure: no clock, no network, no database."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from mergeplan.bot.inflight import is_concerned
from mergeplan.bot.pull_parts import NOT_RESTATED, RESTATED
from mergeplan.bot.records import AFTER_MERGE, News, ProdRecord, Pull, PullRecord, PullState


class Action(Enum):
    """The next step of a pull request, except a plan, which has a reason; a value is the name in the log."""

    REST = "Rest"  # all is as it should be
    LEAVE = "Leave"  # it is none of our business
    HOLD = "Hold"  # a fork's head that no maintainer has allowed: no code of it runs
    SKIP = "Skip"  # it has the label against plans, and nobody requested one of this head
    WAIT_FOR_PROD = "WaitForProd"  # there is nothing to compare with yet
    WAIT_FOR_LAYER = "WaitForLayer"  # the pull request below it in its stack is planned first
    LEAVE_STACK = "LeaveStack"  # no open pull request leads from its base to the prod branch any more
    # Prod moved, but not in what this plan changes or reads, so the plan is valid against prod as it is now.
    CARRY_OVER = "CarryOver"
    DROP_ENVIRONMENT = "DropEnvironment"  # drop the environment and what only it used
    HAND_TO_PROD = "HandToProd"  # it is merged: prod's job promotes it
    OPEN_REVERT = "OpenRevert"  # prod went back to before it: its merge is to be reverted on the branch
    PLAN_GROUP = "PlanGroup"  # plan what the merge queue would make of the branch, and build it
    DROP_GROUP = "DropGroup"  # the merge queue's group is over: so is its environment
    KEEP = "Keep"  # it is over, and its environment is retained for some days more
    DESTROY = "Destroy"  # a request to drop the environment, whatever the state of the pull request


@dataclass(frozen=True)
class MakePlan:
    """Plan this head and build its environment; `reason` is shown to the reader."""

    reason: str = ""
    value: ClassVar[str] = "MakePlan"


Next = Action | MakePlan
ACTIONS = {RESTATED: "restated rows", NOT_RESTATED: "took a restatement back"}
LAYER_WAIT = 1800.0  # seconds until a layer is planned whatever becomes of the one below


def decide_action(pull: Pull, record: PullRecord, prod: ProdRecord, prod_branch: str, now: float = 0.0) -> Next:
    """Return the next step; it is called again after each one until it is REST, KEEP or LEAVE."""
    if record.environment.destroy_by:
        return Action.DESTROY
    action = _decide_pull(pull, record, prod, prod_branch)
    if isinstance(action, MakePlan) and pull.stack.waits_for and not 0 < record.stack.waits_since <= now - LAYER_WAIT:
        waits = record.state is PullState.WAITING and record.head == pull.head and record.stack.waits_since
        action = Action.REST if waits else Action.WAIT_FOR_LAYER
    if action is Action.REST:
        return _decide_group(pull, record) or action
    return Action.KEEP if action is Action.DROP_ENVIRONMENT and now < record.environment.keep_until else action


def _decide_group(pull: Pull, record: PullRecord) -> Next | None:
    states = (PullState.PLANNED, PullState.FAILED, PullState.CANCELLED, PullState.HELD, PullState.SKIPPED)
    still = record.state in states
    if record.group.head and pull.is_open and still and record.group.state not in ("planned", "failed"):
        return Action.PLAN_GROUP
    over = not record.group.head or record.state is PullState.PROMOTED or record.state is PullState.CLOSED
    return Action.DROP_GROUP if over and record.environment.group_exists else None


def _decide_pull(pull: Pull, record: PullRecord, prod: ProdRecord, prod_branch: str) -> Next:
    if pull.merged and (pull.base_ref == prod_branch or pull.landed or record.state in AFTER_MERGE):
        return _decide_merged(record)
    if not pull.is_open or not pull.goes_into(prod_branch):
        was_layer = record.stack.planned_on.layers and record.state is not PullState.CLOSED
        return Action.LEAVE_STACK if was_layer and (pull.is_open or pull.merged) else _decide_closed(record)
    if pull.is_fork and record.permits.allowed_head != pull.head:
        is_held = record.state is PullState.HELD and record.head == pull.head
        return Action.REST if is_held else Action.HOLD
    if record.state is PullState.CANCELLED and record.head == pull.head and not record.wishes.again:
        return Action.REST
    action = _decide_planning(pull, record, prod)
    would_plan = isinstance(action, MakePlan) or action is Action.WAIT_FOR_PROD
    if would_plan and pull.bears(prod.skip_label) and not _is_asked_for(pull, record):
        skipped = record.state is PullState.SKIPPED and record.head == pull.head
        return Action.REST if skipped and record.rules.skip_label == prod.skip_label else Action.SKIP
    return action


def _is_asked_for(pull: Pull, record: PullRecord) -> bool:
    """Return True if a person requested a plan of this head, or its plan has begun: no label undoes that."""
    begun = record.head == pull.head and record.state in (PullState.PLANNING, PullState.HELD)
    return begun or record.wishes.again or any(override.head == pull.head for override in record.wishes.overrides)


def _decide_planning(pull: Pull, record: PullRecord, prod: ProdRecord) -> Next:
    if prod.is_to_come:
        waits = record.state is PullState.WAITING and record.head == pull.head
        return Action.REST if waits else Action.WAIT_FOR_PROD
    return _decide_open(pull, record, prod)


def _decide_open(pull: Pull, record: PullRecord, prod: ProdRecord) -> Next:
    if record.head != pull.head or record.state in (
        PullState.NEW,
        PullState.PLANNING,
        PullState.WAITING,
        PullState.HELD,
    ):
        return MakePlan(record.reason if record.head == pull.head else "")
    if record.state is PullState.CLOSED:
        return MakePlan("It merges into this branch again." if record.reason else "Reopened.")
    if record.state in AFTER_MERGE:
        return Action.REST
    if record.state is PullState.SKIPPED and not record.wishes.again:
        return MakePlan("No label keeps it from being planned any more.")
    if record.wishes.overrides:
        first = record.wishes.overrides[0]
        return MakePlan(f"{first.who} {ACTIONS.get(first.category, 'categorized a change')}.")
    if record.wishes.again:
        return MakePlan("Requested again.")
    if record.wishes.sources_moved and record.state in (PullState.PLANNED, PullState.FAILED):
        return MakePlan("Planned again, since another project changed tables that it reads.")
    if record.is_unreadable:
        return MakePlan("Another version of mergeplan made the plan.")
    if record.state in (PullState.PLANNED, PullState.FAILED) and (reason := _stack_reason(pull, record)):
        return MakePlan(reason)
    if (
        record.state is PullState.PLANNED
        and not pull.stack.layers
        and prod.revision != record.base.prod_revision
        and _is_passed_by(record, prod)
    ):
        return Action.CARRY_OVER
    if record.state in (PullState.PLANNED, PullState.FAILED) and prod.revision != record.base.prod_revision:
        return MakePlan(f"Planned again, since prod has moved on to revision {prod.revision}.")
    return Action.REST


def _stack_reason(pull: Pull, record: PullRecord) -> str:
    """Return why the plan is not of the stack as it is; '' where it is. A layer that is being planned changes none."""
    old, new = record.stack.planned_on, pull.stack
    if old.layers == new.layers:
        moved = old.plan != new.plan and not new.waits_for
        return f"Planned again on the new plan of #{new.layers[-1].number}, the layer below." if moved else ""
    if not new.layers:
        return f"It merges into `{pull.base_ref}` now, and no longer into the branch of #{old.layers[-1].number}."
    pushed = [layer.number for layer in new.layers if layer not in old.layers]
    numbers = [layer.number for layer in old.layers]
    if numbers == [layer.number for layer in new.layers]:
        return f"Planned again, since #{pushed[0]} below it has other commits."
    return f"It is planned on #{new.layers[-1].number} now, the layer below."


def _is_passed_by(record: PullRecord, prod: ProdRecord) -> bool:
    """Return True when prod moved only in models that this plan does not touch."""
    plan = record.outcome.plan if record.outcome else None
    return plan is not None and not is_concerned(plan, prod.moves, record.base.prod_revision, prod.revision)


def _decide_merged(record: PullRecord) -> Next:
    if record.rollback.reversal.to_open:
        return Action.OPEN_REVERT
    if record.state is PullState.PROMOTED and record.environment.exists:
        return Action.DROP_ENVIRONMENT
    if record.state in (PullState.UNPROMOTED, PullState.ROLLED_BACK) and record.wishes.again:
        return Action.HAND_TO_PROD
    return (
        Action.REST
        if record.state in (PullState.MERGED, PullState.PROMOTED, PullState.UNPROMOTED, PullState.ROLLED_BACK)
        else Action.HAND_TO_PROD
    )


def _decide_closed(record: PullRecord) -> Next:
    if record.state is PullState.NEW and not record.environment.exists and not record.comment.id and not record.checks:
        return Action.LEAVE
    if record.state is PullState.CLOSED and not record.environment.exists:
        return Action.REST
    return Action.DROP_ENVIRONMENT


def interrupt_reason(news: Sequence[News], head: str) -> str:
    """Return the reason why news during a run of that head ends it; '' if they do not."""
    for event in news:
        if event.kind == "pull_request.closed":
            return "closed"
        if event.kind.startswith("pull_request.") and event.head and event.head != head:
            return f"superseded:{event.head}"
    return ""
