"""What the bot knows: one record a pull request, one a repository's prod, one a command. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated

from pydantic import AliasChoices, Field

from mergeplan.bot.branches import BranchRecord
from mergeplan.bot.inflight import Move
from mergeplan.bot.policy.approvals import Decision, PlanShown, promises
from mergeplan.bot.policy.roles import Role
from mergeplan.bot.pull_parts import (
    NO_LAYERS,
    NOT_RESTATED,
    RESTATED,
    UNRULED,
    Nearby,
    Permits,
    PlanBase,
    PlanComment,
    PlanRun,
    PlanWishes,
    ProjectPlace,
    PullDeploy,
    PullEnvironment,
    PullPromotion,
    PullRollback,
    PullRules,
    PullSource,
    PullStack,
    ShownPlan,
    StackBase,
)
from mergeplan.bot.results import PlannerOutcome, unpack_outcome
from mergeplan.planner.contract.plan import PlanView


class PullState(StrEnum):
    NEW = "new"  # seen, nothing decided for this head
    HELD = "held"  # from a fork, and nobody has allowed this head
    SKIPPED = "skipped"  # it bears the label that asks for no plan
    WAITING = "waiting"  # prod is being built for the first time
    PLANNING = "planning"
    PLANNED = "planned"
    FAILED = "failed"
    CANCELLED = "cancelled"  # by /cancel
    MERGED = "merged"  # prod's job has it now
    PROMOTED = "promoted"
    UNPROMOTED = "unpromoted"  # merged, and its promotion failed
    ROLLED_BACK = "rolled_back"
    CLOSED = "closed"


SETTLED = frozenset(
    {
        PullState.PLANNED,
        PullState.FAILED,
        PullState.CANCELLED,
        PullState.PROMOTED,
        PullState.UNPROMOTED,
        PullState.ROLLED_BACK,
        PullState.CLOSED,
        PullState.HELD,
        PullState.SKIPPED,
    }
)
AFTER_MERGE = frozenset({PullState.MERGED, PullState.PROMOTED, PullState.UNPROMOTED, PullState.ROLLED_BACK})


class Prod(StrEnum):
    UNKNOWN = "unknown"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"  # the first build failed; unless it is tried again, pull requests are planned against nothing


# Stored as `said` by earlier builds: a plan that is not found in its record would look like one of no model.
RunLines = Annotated[str, Field(validation_alias=AliasChoices("run_lines", "said"))]


@dataclass(frozen=True)
class Repository:
    """A repository as GitHub knows it: its name now, and the number that it keeps (0: not known)."""

    name: str
    number: int = 0


@dataclass(frozen=True)
class Pull:
    number: int
    title: str
    author: str
    is_open: bool
    merged: bool
    merge_sha: str
    head: str
    is_fork: bool  # its head is in another repository, or in one that is gone
    base_ref: str
    updated_at: str
    head_ref: str = ""  # the branch it comes from
    labels: tuple[str, ...] = ()
    repository_id: int = 0  # GitHub's number of the repository that it is in
    stack: StackBase = NO_LAYERS  # the layers that lead from its base to the prod branch
    landed: bool = False  # it was merged as a layer, and the prod branch holds that merge
    body: str = ""  # its description

    def goes_into(self, prod_branch: str) -> bool:
        """Return True when its changes are on their way to prod, by itself or with the layers below it."""
        return self.base_ref == prod_branch or bool(self.stack.layers)

    def bears(self, label: str) -> bool:
        """Return True for a pull request with that label; GitHub ignores the case of labels."""
        return any(is_label(own_label, label) for own_label in self.labels)


def is_label(one: str, other: str) -> bool:
    """Return True when both name one label; '' names none."""
    return bool(one) and one.casefold() == other.casefold()


@dataclass(frozen=True)
class Posted:
    id: int
    author: str
    body: str
    at: str
    updated_at: str
    by_bot: bool
    edited: bool
    node_id: str = ""


@dataclass(frozen=True)
class News:
    id: int
    kind: str
    head: str


@dataclass(frozen=True)
class CheckRef:
    """A check on GitHub that we wrote, and a digest of what it last showed; id 0 where GitHub refused it."""

    name: str
    sha: str
    id: int
    digest: str = ""
    done: bool = False
    url: str = ""
    node: str = ""  # its GraphQL id, by which several are written in one call


@dataclass(frozen=True)
class DeploymentRef:
    """A deployment on GitHub that we wrote, and the state that it last got; id 0 where we may not write any."""

    environment: str
    sha: str
    id: int
    state: str


@dataclass(frozen=True)
class MergeGroup:
    """A group of GitHub's merge queue whose last pull request this is, and its plan."""

    head: str = ""  # '' when there is none
    state: str = ""  # "", "planning", "planned", "failed"
    run_lines: RunLines = ""  # the plan's lines, as `packed` packs them
    tree: str = ""
    base_sha: str = ""


NO_GROUP = MergeGroup()


@dataclass(frozen=True)
class PullRecord:
    """What we know of a pull request; everything shown on GitHub is made from this."""

    repository: str
    number: int
    state: PullState = PullState.NEW
    head: str = ""  # the head that `state` is about
    reason: str = ""  # why it was planned again, or why it stands still
    source: PullSource = field(default_factory=PullSource)
    place: ProjectPlace = field(default_factory=ProjectPlace)
    base: PlanBase = field(default_factory=PlanBase)
    run: PlanRun = field(default_factory=PlanRun)
    environment: PullEnvironment = field(default_factory=PullEnvironment)
    shown: ShownPlan = field(default_factory=ShownPlan)
    comment: PlanComment = field(default_factory=PlanComment)
    checks: tuple[CheckRef, ...] = ()
    refused_at: float = 0.0  # when GitHub last refused one, in seconds of the epoch
    deployments: tuple[DeploymentRef, ...] = ()
    group: MergeGroup = NO_GROUP
    wishes: PlanWishes = field(default_factory=PlanWishes)
    permits: Permits = field(default_factory=Permits)
    rules: PullRules = field(default_factory=PullRules)
    nearby: Nearby = field(default_factory=Nearby)
    stack: PullStack = field(default_factory=PullStack)
    promotion: PullPromotion = field(default_factory=PullPromotion)
    rollback: PullRollback = field(default_factory=PullRollback)
    deploy: PullDeploy = field(default_factory=PullDeploy)

    @property
    def outcome(self) -> PlannerOutcome | None:
        return self.run.outcome

    @property
    def last_plan(self) -> PlanView | None:
        """Return the plan that was promoted; before that its own."""
        last = self.promotion.outcome if self.state is PullState.PROMOTED else self.outcome
        return last.plan if last else None

    def forget_refusals(self) -> PullRecord:
        checks = tuple(ref if ref.id else replace(ref, digest="") for ref in self.checks)
        return replace(self, refused_at=0.0, checks=checks)

    @property
    def restates(self) -> bool:
        """True if it computes rows of unedited models again: it changes prod even if it touches no file of a model."""
        plan = self.outcome.plan if self.outcome else None
        is_asked = any(override.category in (RESTATED, NOT_RESTATED) for override in self.wishes.overrides)
        return is_asked or any(override.restates for override in (plan.overrides if plan else ()))

    @property
    def is_unreadable(self) -> bool:
        """True when another version kept the last run: nothing may be concluded from what cannot be read."""
        return bool(self.run.lines) and self.outcome is None

    @property
    def may_be_destructive(self) -> tuple[str, ...]:
        """The models that may lose columns in a plan of the head as it is."""
        return self.permits.destructive if self.permits.destructive_head == self.head else ()

    @property
    def is_settled(self) -> bool:
        """True while nothing runs or is about to run, so that a request for a run can be answered."""
        return self.state in SETTLED or (self.state is PullState.MERGED and self.rules.held)

    def is_kept(self, now: float) -> bool:
        """Return True while its environment must not expire."""
        return self.environment.exists or now < self.environment.keep_until

    @property
    def promises(self) -> tuple[str, ...]:
        """What the plan that is shown promises: reviews are of this."""
        return promises(self.outcome.plan if self.outcome else None, self.rules_text)

    @property
    def comment_plan(self) -> PlanShown | None:
        """The entry of the shown plans for the stored plan; None while the comment shows another one."""
        last = self.shown.plans[-1] if self.shown.plans else None
        is_shown = last is not None and last.head == self.head and bool(set(last.promises) & set(self.promises))
        return last if is_shown else None

    @property
    def rules_text(self) -> str:
        """The planned tree where the rules themselves are edited: a review is of every word then."""
        return self.base.tree if self.rules.changes_rules else ""

    @property
    def cost_approval(self) -> tuple[int, float]:
        """The bytes and seconds that a person approved for the present head."""
        return self.permits.cost if self.permits.cost_head == self.head else (0, 0.0)

    @property
    def group_record(self) -> PullRecord:
        """The record as if it were of the merge queue's group: its checks are made of this."""
        group = self.group
        state = PullState(group.state) if group.state else PullState.PLANNING
        return replace(
            self,
            state=state,
            head=group.head,
            base=replace(self.base, sha=group.base_sha, tree=group.tree),
            run=replace(self.run, lines=group.run_lines, fresh=False, progress=""),
            stack=PullStack(),
            rules=replace(self.rules, held=False),
        )

    def check(self, name: str, sha: str) -> CheckRef | None:
        return next((ref for ref in self.checks if ref.name == name and ref.sha == sha), None)

    def deployment(self, environment: str) -> DeploymentRef | None:
        return next((ref for ref in self.deployments if ref.environment == environment), None)

    def add_check(self, ref: CheckRef) -> PullRecord:
        other_checks = tuple(check for check in self.checks if (check.name, check.sha) != (ref.name, ref.sha))
        return replace(self, checks=(*other_checks, ref))


@dataclass(frozen=True)
class UnwrittenCheck:
    """The result of a promotion's check that GitHub refused to take, without its annotations."""

    commit: str
    title: str
    summary: str
    conclusion: str


@dataclass(frozen=True)
class ProdRecord:
    repository: str
    state: Prod = Prod.UNKNOWN
    branch: str = ""
    commit: str = ""  # the last commit of the prod branch that was taken on
    promoted_commit: str = ""  # the last one that prod shows
    revision: int = 0
    plan_id: str = ""
    run_lines: RunLines = ""  # of the first build, when it failed
    attempts: int = 0
    again: bool = False  # somebody asked for what failed to be tried again, or the service has started since
    swept_at: float = 0.0  # seconds of the epoch: when the janitor was last at work; 0 before the clock runs
    namespace: str = ""  # what commands begin with, by the rules as they were last read
    needs: tuple[tuple[str, Role], ...] = ()  # the roles that those rules ask for otherwise than by default
    deploys: bool = False  # by those rules `/deploy` is on
    skip_label: str = ""  # by those rules a pull request with this label is planned only when somebody asks
    held: str = ""  # the commit of a push that the rules do not let in
    moves: tuple[Move, ...] = ()  # what its last revisions changed
    held_by: Decision = UNRULED
    again_at: float = 0.0  # seconds of the epoch: when a first build that failed is tried again; 0 when that is no use
    folder: str = ""  # of the project that it was promoted from
    branches: tuple[BranchRecord, ...] = ()  # other branches, which have environments of their own
    unwritten: tuple[UnwrittenCheck, ...] = ()  # checks whose results are still to be shown

    def follows(self, branch: str, number: int) -> bool:
        """Return True for a pull request into a branch that has, or had, an environment."""
        previews = (preview.number for record in self.branches for preview in record.previews)
        return any(record.branch == branch for record in self.branches) or number in previews

    @property
    def is_to_come(self) -> bool:
        """True while the first build is under way, or will be tried again by itself."""
        waits = self.state is Prod.FAILED and not self.revision and self.again_at > 0
        return waits or self.state in (Prod.UNKNOWN, Prod.BUILDING)

    @property
    def outcome(self) -> PlannerOutcome | None:
        """How the first build failed."""
        return unpack_outcome(self.run_lines)


@dataclass(frozen=True)
class Answer:
    """What became of one command; `waits_for` says which run still has to end before it is answered."""

    text: str
    ok: bool
    sentence: str
    waits_for: str = ""  # "", "plan", "rollback", "answer"
    model: str = ""  # of a /categorize
    category: str = ""
    asked: tuple[str, ...] = ()  # the planner's arguments, of a command that only asks


@dataclass(frozen=True)
class Press:
    """A button that was pressed or a box that was ticked in place of a written comment.

    `keys` is a button's identifier, with the `head` of the check that contains it; or the boxes of the plan comment,
    each its line before it was ticked.
    """

    keys: tuple[str, ...]
    head: str = ""


@dataclass(frozen=True)
class CommandRow:
    """A comment with commands in it, or a press or an edit of the description in place of one, until it is answered.

    The `comment_id` of the last two is below zero, and of no comment.
    """

    comment_id: int
    repository: str
    number: int
    author: str
    body: str
    said_at: str
    state: str = "new"  # new, accepted, answered
    seen: bool = False  # has our eyes on it
    proven: bool = True  # nobody edited it, or the comment whose box it is, as far as can be known here
    answers: tuple[Answer, ...] = ()
    press: Press | None = None
    description: str | None = None  # as that edit left it; not `proven` if a command was there before in other text
    lines: tuple[str, ...] | None = None  # those of its commands that this project answers; None: not decided yet
