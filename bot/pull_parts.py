"""The parts of a pull request's record, one noun each. Pure data."""

from dataclasses import dataclass

from mergeplan.bot.inflight import Meeting, Undoing
from mergeplan.bot.policy.approvals import Decision, PlanShown
from mergeplan.bot.readers.impact import ReaderSummary
from mergeplan.bot.results import PlannerOutcome, unpack_outcome

UNRULED = Decision()


@dataclass(frozen=True)
class PullSource:
    author: str = ""
    base_ref: str = ""
    forward_only: bool = False  # its branch asks for forward-only plans


@dataclass(frozen=True)
class ProjectPlace:
    site: str = ""  # the repository's page
    folder: str = "."  # the project's, in the repository
    project: str = ""  # the same where the repository has several, for people to distinguish them


@dataclass(frozen=True)
class PlanBase:
    sha: str = ""  # the commit that the head was merged into
    tree: str = ""  # the merge, as it was planned
    prod_revision: int = 0


@dataclass(frozen=True)
class PlanRun:
    id: str = ""
    lines: str = ""  # as `pack_outcome` packs them
    fresh: bool = False  # while planning: `lines` already holds the new plan, whose tables are being built
    progress: str = ""
    spark_ui: str = ""  # the address of Spark's own pages, while tables are computed
    planned_at: str = ""  # ISO 8601
    attempts: int = 0  # runs of this head that ended by a defect
    spark_losses: int = 0  # runs of this head during which Spark ended

    @property
    def outcome(self) -> PlannerOutcome | None:
        return unpack_outcome(self.lines)


@dataclass(frozen=True)
class PullEnvironment:
    name: str = ""
    exists: bool = False
    keep_until: float = 0.0  # seconds of the epoch: it is not dropped before
    destroy_by: str = ""  # who drops it
    group_exists: bool = False  # the group's may be there

    @property
    def group_name(self) -> str:
        return f"{self.name}_queue"


@dataclass(frozen=True)
class ShownPlan:
    """What the comment shows, planned or held, and since when: commands and reviews are of this."""

    head: str = ""
    since: str = ""  # ISO 8601, GitHub's clock
    plan: str = ""
    revision: int = 0  # of prod
    plans: tuple[PlanShown, ...] = ()  # what it promised until now


@dataclass(frozen=True)
class PlanComment:
    id: int = 0
    node: str = ""  # its GraphQL id
    digest: str = ""


RESTATED = "restated"
NOT_RESTATED = "not_restated"  # that is taken back


@dataclass(frozen=True)
class PendingOverride:
    """A person's category that the planner has not stored yet.

    With the category `restated`, `model` is a selector of unedited models, and `days` (`START..END`, '' for all) are
    computed again in new tables.
    """

    model: str
    category: str
    who: str
    head: str
    days: str = ""


@dataclass(frozen=True)
class PlanWishes:
    again: bool = False  # another plan of the same head
    sources_moved: bool = False  # the same, since another project changed tables that it reads
    overrides: tuple[PendingOverride, ...] = ()
    backfill: str = ""  # "skip" or "full", whatever the rules say of new tables
    select: tuple[str, ...] = ()  # selectors of the models whose changes are planned, until `/plan` without them


@dataclass(frozen=True)
class Permits:
    """What people allowed, each for one head."""

    cost: tuple[int, float] = (0, 0.0)  # bytes and seconds
    cost_head: str = ""
    destructive: tuple[str, ...] = ()  # models that may lose columns
    destructive_head: str = ""
    allowed_head: str = ""  # a fork's head that may be planned


@dataclass(frozen=True)
class PullRules:
    """What the project's rules say of the pull request, and whether it edits them."""

    decision: Decision = UNRULED  # of the plan
    held: bool = False  # merged, and prod waits until the rules let it in
    skip_label: str = ""  # while it is skipped: the label that asks for that
    shows_deployments: bool = False  # the project wants them on GitHub
    edits_rules: bool = False  # it changes the configuration, whose rules come from the base branch
    changes_rules: bool = False  # and `cicd_bot` in it


@dataclass(frozen=True)
class MovedTable:
    """A table of another project that its own tables were made from, and when that changed."""

    name: str
    at: str  # ISO 8601


@dataclass(frozen=True)
class Nearby:
    meets: tuple[Meeting, ...] = ()  # other open pull requests
    undoes: tuple[Undoing, ...] = ()  # merges that it takes back
    readers: tuple[ReaderSummary, ...] = ()  # of other projects, in what it changes
    moved: tuple[MovedTable, ...] = ()


@dataclass(frozen=True)
class Layer:
    """An open pull request in whose branch another one stands, directly or over others; and its head."""

    number: int
    head: str


@dataclass(frozen=True)
class StackBase:
    """The layers below a pull request, the lowest first, and the plan of the highest of them."""

    layers: tuple[Layer, ...] = ()  # none: it goes into the prod branch
    plan: str = ""  # the id of that plan
    environment: str = ""  # shows what the layers give; '' when none does
    waits_for: int = 0  # the layer that is to be planned first


NO_LAYERS = StackBase()


@dataclass(frozen=True)
class LayerChange:
    model: str
    category: str  # or how it came in
    reason: str = ""
    diff: str = ""


@dataclass(frozen=True)
class PullStack:
    """The stack of a pull request, and the share of its plan that its own layer has."""

    below: int = 0  # the pull request whose branch is its base
    above: tuple[int, ...] = ()  # those whose base is its branch
    line: tuple[int, ...] = ()  # all of the stack, the lowest first
    planned_on: StackBase = NO_LAYERS
    is_level: bool = True  # merging its head alone into prod's commit gives the planned tree
    changes: tuple[LayerChange, ...] | None = None  # None: not known
    rows: str = ""  # a comparison of its tables with those of the layer below, as `pack_outcome` packs it
    waits_since: float = 0.0  # seconds of the epoch: for the layer below; 0 when it waits for none


@dataclass(frozen=True)
class PullPromotion:
    merge_sha: str = ""
    lines: str = ""  # of its run, as `pack_outcome` packs them
    revision: int = 0  # of prod since then
    unlock_by: str = ""  # who stops it

    @property
    def outcome(self) -> PlannerOutcome | None:
        return unpack_outcome(self.lines)


@dataclass(frozen=True)
class Reversal:
    """A rollback that took a pull request back, and the pull request that reverts its merge on the branch."""

    who: str = ""
    revision: int = 0  # of prod, that it went back to; 0: prod did not go back from it
    others: tuple[int, ...] = ()  # where it was asked for: the pull requests that it took back with this one
    to_open: bool = False  # the revert is still to be opened
    number: int = 0  # of the revert; 0 for none
    why: str = ""  # why none was opened, as a sentence


NOT_REVERSED = Reversal()


@dataclass(frozen=True)
class PullRollback:
    by: str = ""
    to: int = 0  # the revision that was named; 0 for the one before its own
    start: int = 0  # prod's revision when it was begun: with another one it is done, and not written down
    reversal: Reversal = NOT_REVERSED


@dataclass(frozen=True)
class PullDeploy:
    """A deploy: a promotion before the merge, or of a merge that the rules hold."""

    by: str = ""  # who wants it: for a held merge an administrator
    head: str = ""  # the head that is promoted before it is merged
    stage: str = ""  # "", "promoting", "promoted": what was begun
    start: int = 0  # prod's revision before, where it goes back to
    result: str = ""  # why the last one changed nothing
