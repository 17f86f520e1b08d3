"""What is so about a repository's prod -> what is done next. Pure: no clock, no network, no database.

Prod follows its branch: each merge of a pull request is a step of its own, and a push that belongs to none is one too.
A commit that prod already shows is never promoted again: prod does not go back by accident.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mergeplan.bot.records import Prod, ProdRecord, PullRecord, PullState
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.result import EnvironmentRow

DEFECT_TRIES = 3
LONGEST_BACKOFF = 300.0


@dataclass(frozen=True)
class Step:
    """One promotion to come: the tree of `commit`; of pull request `number`, or (0) of a push."""

    commit: str
    number: int = 0


@dataclass(frozen=True)
class Gate:
    is_open: bool = True
    noted: bool = True  # what they say is shown already
    through: int = 0  # a later step that may be taken with all before it: 1 for the second; 0 for none


OPEN = Gate()


@dataclass(frozen=True)
class ProdFacts:
    prod: ProdRecord
    branch: str  # that prod should follow
    head: str  # of the branch
    now: float = 0.0
    pulls: tuple[PullRecord, ...] = ()
    steps: tuple[Step, ...] = ()  # what the branch holds that prod was not yet brought to
    is_untouched: bool = False  # the first step changes no model
    gate: Gate = OPEN
    closed: frozenset[int] = frozenset()  # of `behind` and of what is asked for again: the rules do not let it in
    shown: frozenset[int] = frozenset()  # the pull requests whose merge prod shows
    behind: frozenset[int] = frozenset()  # those whose merge was taken on once and is not in prod
    again: bool = False  # somebody asked, before this pass, for what failed to be tried again
    looked: bool = False  # this pass has asked the planner for prod
    planned_prod: EnvironmentRow | None = None  # prod as the planner had it
    built: bool = False  # this pass has tried to build prod
    taken: int = 0  # steps of this pass
    sweep_is_due: bool = False  # the janitor has not been at work for long


class Move(Enum):
    """An action that needs no facts; the value is its name in the log."""

    REST = "ProdAtRest"  # all is as it should be
    FOLLOW_BRANCH = "FollowBranch"  # the rules name another prod branch
    LOOK_FOR_PROD = "LookForProd"  # ask the planner whether prod exists
    BUILD_PROD = "BuildProd"  # plan and apply the branch for the first time
    RUN_JANITOR = "RunJanitor"  # drop what has expired and what is unused


class TargetedAction:
    """An action that needs facts."""


@dataclass(frozen=True)
class PullAction(TargetedAction):
    number: int


@dataclass(frozen=True)
class StepAction(TargetedAction):
    step: Step


@dataclass(frozen=True)
class Refusal(PullAction):
    reason: str


@dataclass(frozen=True)
class AdoptProd(TargetedAction):
    """Prod exists, and we did not know."""

    row: EnvironmentRow


@dataclass(frozen=True)
class RollBack(PullAction):
    """Point prod back at the revision before a pull request's own."""

    who: str
    revision: int


@dataclass(frozen=True)
class PromoteMerge(PullAction):
    """Promote the merge of a pull request, with the tree of `commit`."""

    commit: str


@dataclass(frozen=True)
class PromotePush(TargetedAction):
    """Plan and apply a push that no pull request brought."""

    commit: str


class RefuseRollback(Refusal):
    pass


class RefuseDeploy(Refusal):
    pass


class StopPlan(PullAction):
    """A plan of a merged pull request still runs: it ends first."""


class DeployPull(PullAction):
    """Promote a pull request, then merge it: /deploy."""


class SettleMerge(PullAction):
    """Prod shows the merge already, with a later commit."""


class SkipStep(StepAction):
    """Nothing to promote: the step changes no model."""


class HoldStep(StepAction):
    """The rules do not let the first step into prod: it waits, and all that came after it."""


class PassOver(StepAction):
    """The first steps are taken with a later one: that gives what may be shown."""


Action = Move | TargetedAction


def decide_prod(facts: ProdFacts) -> Action:
    """Return the next action; it is called again after each one until it is REST.

    First come requests to undo, then what the branch has that prod does not, then retries of failures. The janitor
    comes when nothing else is left to do.
    """
    if facts.prod.branch and facts.prod.branch != facts.branch:
        return Move.FOLLOW_BRANCH
    action = (
        _decide_build(facts)
        or _resume_deploy(facts)
        or _roll_back(facts)
        or _decide_settlement(facts)
        or _decide_step(facts)
        or _decide_deploy(facts)
    )
    if action is None and (not facts.steps or facts.gate.is_open):  # nothing goes around a merge that is held
        action = _decide_retry(facts)
    sweep = Move.RUN_JANITOR if facts.sweep_is_due and facts.prod.state is Prod.READY else Move.REST
    return action or sweep


def _decide_build(facts: ProdFacts) -> Action | None:
    """Return the first build, decided once in a pass and before its first step."""
    if facts.built or facts.taken or not is_to_build(facts):
        return None
    if not facts.looked:
        return Move.LOOK_FOR_PROD
    if facts.planned_prod is not None:
        return AdoptProd(facts.planned_prod)
    if any(step.number for step in facts.steps):
        return None  # the merge that came brings the first project: it is promoted as a step
    return Move.BUILD_PROD


def is_to_build(facts: ProdFacts) -> bool:
    """Return True before the first build, and when a failed one is due: a commit, a request, or its time."""
    prod = facts.prod
    if prod.state in (Prod.UNKNOWN, Prod.BUILDING):
        return True
    is_due = prod.commit != facts.head or facts.again or 0 < prod.again_at <= facts.now
    return prod.state is Prod.FAILED and not prod.revision and is_due


def _roll_back(facts: ProdFacts) -> Action | None:
    for record in facts.pulls:
        if not record.rollback.by:
            continue
        target_revision = record.rollback.to or record.promotion.revision - 1
        if record.rollback.start:
            return RollBack(record.number, record.rollback.by, target_revision)
        moved = (
            facts.prod.revision <= target_revision
            if record.rollback.to
            else facts.prod.revision != record.promotion.revision
        )
        if moved or target_revision < 1:
            return RefuseRollback(record.number, f"Prod has moved on to revision {facts.prod.revision}.")
        return RollBack(record.number, record.rollback.by, target_revision)
    return None


def _decide_step(facts: ProdFacts) -> Action | None:
    if not facts.steps:
        return None
    step = facts.steps[0]
    if any(record.number == step.number and record.state is PullState.PLANNING for record in facts.pulls):
        return StopPlan(step.number)
    if facts.prod.state is Prod.READY and facts.is_untouched:
        return SkipStep(step)
    if facts.prod.state is Prod.READY and not facts.gate.is_open:
        if facts.gate.through:
            return PassOver(facts.steps[facts.gate.through])
        return None if facts.gate.noted else HoldStep(step)
    return PromoteMerge(step.number, step.commit) if step.number else PromotePush(step.commit)


def _resume_deploy(facts: ProdFacts) -> Action | None:
    """Continue a deploy that was begun before anything else moves prod."""
    return next((DeployPull(record.number) for record in facts.pulls if record.deploy.stage), None)


def _decide_deploy(facts: ProdFacts) -> Action | None:
    number = next((record.number for record in facts.pulls if record.deploy.head), 0)
    if not number or facts.prod.state is not Prod.READY:
        return None
    if facts.steps:
        return RefuseDeploy(number, "An earlier merge waits before prod: the rules do not let it in yet.")
    return DeployPull(number)


def _decide_retry(facts: ProdFacts) -> Action | None:
    prod = facts.prod
    for record in facts.pulls:
        is_behind = record.number in facts.behind
        is_requested = is_asked_again(record) or (facts.again and is_behind and record.state is PullState.UNPROMOTED)
        if record.number in facts.closed:
            if is_requested:
                return HoldStep(Step(facts.head, record.number))
            continue
        if is_requested or (record.state is PullState.MERGED and is_behind):
            return PromoteMerge(record.number, facts.head)
    is_due = facts.again and not (facts.taken or facts.closed) and prod.promoted_commit != facts.head
    if is_due and prod.state is Prod.READY:
        return PromotePush(facts.head)
    return None


def is_asked_again(record: PullRecord) -> bool:
    """Return True for a merge that did not reach prod, or was taken back, and is to be promoted."""
    return record.state in (PullState.UNPROMOTED, PullState.ROLLED_BACK) and record.wishes.again


def _decide_settlement(facts: ProdFacts) -> Action | None:
    waiting = (record for record in facts.pulls if record.state in (PullState.MERGED, PullState.UNPROMOTED))
    return next((SettleMerge(record.number) for record in waiting if record.number in facts.shown), None)


def prod_steps(commits: Sequence[str], merges: Mapping[str, int]) -> tuple[Step, ...]:
    """Return the promotions that a branch's new commits ask for, oldest first.

    Each merge of a pull request is one step, so that its own plan is compared with what it promised; pushes after the
    last merge are one step together, and pushes between two merges go with the later one.
    """
    steps = [Step(commit, merges[commit]) for commit in commits if commit in merges]
    if commits and commits[-1] not in merges:
        steps.append(Step(commits[-1]))
    return tuple(steps)


def sweep_is_due(prod: ProdRecord, hours: float, now: float) -> bool:
    """Return True when the janitor last ran that many hours ago; 0 hours turn it off."""
    return prod.state is Prod.READY and hours > 0 and 0 < prod.swept_at <= now - hours * 3600


def build_wait(outcome: PlannerOutcome, attempts: int) -> float:
    """Return the seconds until a first build that failed for the nth time is tried again; 0.0 if that is no use."""
    return backoff(attempts) if outcome.may_pass_later or outcome.is_defect else 0.0


def may_retry(outcome: PlannerOutcome, attempts: int) -> bool:
    """Return True while an immediate retry may help: prod is locked, or the fault was ours."""
    passing = outcome.may_pass_later and attempts < 10 * DEFECT_TRIES
    return passing or (outcome.is_defect and attempts < DEFECT_TRIES)


def backoff(attempts: int) -> float:
    """Return the seconds until a job that failed for the nth time is tried again.

    >>> [backoff(number) for number in (1, 2, 5, 20)]
    [2.0, 4.0, 32.0, 300.0]
    """
    return min(LONGEST_BACKOFF, 2.0 ** min(attempts, 10))
