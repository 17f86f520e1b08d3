"""Who must agree to a plan, and who has: the project's rules and the reviews of a pull request -> a decision. Pure.

A review is of the plan that was shown when it was written. It counts for every plan that promises the same, that is
puts the same tables in place of the same tables, whatever head it is of; and for no other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType

from mergeplan.bot.policy.freezes import Freeze, freeze_sentence, frozen_until, next_change
from mergeplan.planner.contract.plan import ModelChange, PlanView
from mergeplan.planner.model.selection import is_selected

DECISIVE = ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")  # a mere comment takes nothing back
NO_READERS: Mapping[str, Sequence[tuple[str, ...]]] = MappingProxyType({})
SHOWN_MOST = 50  # plans of one pull request that reviews are looked up in


@dataclass(frozen=True)
class ReviewRule:
    """What a change of some models needs; a rule without approvals only blocks or freezes."""

    models: tuple[str, ...] = ("*",)
    categories: tuple[str, ...] = ()  # it is about changes of these only; () about all
    approvals: int = 0
    approvers: tuple[str, ...] = ()  # logins and org/team; () everybody who may write
    code_owners: bool = False
    blocks: tuple[str, ...] = ()  # categories that are not promoted
    freezes: tuple[Freeze, ...] = ()
    reader_owners: bool = False  # of what reads the changed tables in other projects

    @property
    def asks(self) -> bool:
        """True if a person has to approve."""
        return bool(self.approvals or self.code_owners or self.reader_owners)


@dataclass(frozen=True)
class Review:
    author: str
    state: str
    commit: str
    at: str  # ISO 8601


@dataclass(frozen=True)
class PlanShown:
    """What the comment promised for a head, since when; a plan has two digests once tables were compared."""

    head: str
    promises: tuple[str, ...]
    since: str  # ISO 8601, GitHub's clock


@dataclass(frozen=True)
class Need:
    """A number of approvals by these people (() is anyone who may write), for these models; `left` are missing."""

    models: tuple[str, ...]
    approvers: tuple[str, ...] = ()
    left: int = 1
    owners: bool = False  # they are the models' code owners
    readers: bool = False  # they own what reads the models in other projects


@dataclass(frozen=True)
class Block:
    model: str
    category: str


@dataclass(frozen=True)
class ReviewSummary:
    """The reviews of a plan, summarized: the last decisive one of each reviewer, without the author."""

    approved: tuple[str, ...] = ()
    objecting: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()  # they approved another plan, or none


@dataclass(frozen=True)
class People:
    writers: frozenset[str] = frozenset()
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()  # teams whose members could not be read


@dataclass(frozen=True)
class Decision:
    ruled: bool = False  # there are rules: the check stands
    approved_by: tuple[str, ...] = ()
    missing: tuple[Need, ...] = ()
    objecting: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    blocked: tuple[Block, ...] = ()
    unread: tuple[str, ...] = ()
    frozen: str = ""  # a sentence
    changes_at: float = 0.0  # seconds of the epoch: when a freeze begins or ends next

    @property
    def is_ok(self) -> bool:
        return not (self.missing or self.objecting or self.blocked or self.frozen)


@dataclass(frozen=True)
class Asked:
    needs: tuple[Need, ...] = ()
    blocked: tuple[Block, ...] = ()
    freezes: tuple[Freeze, ...] = ()

    @property
    def teams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(approver for need in self.needs for approver in need.approvers if "/" in approver))


def reviewable_models(plan: PlanView) -> tuple[ModelChange, ...]:
    """Return the models that people decide about: edited, added, removed or recomputed ones."""
    return tuple(
        model for model in plan.models if model.recomputed or model.change in ("direct", "metadata", "removed")
    )


def promises(plan: PlanView | None, text: str = "") -> tuple[str, ...]:
    """Return what a plan promises; with `text`, the tree of edited rules, every word counts."""
    digests = dict.fromkeys(digest for digest in (plan.planned_digest, plan.digest) if digest) if plan else {}
    return tuple(f"{digest}{text}" for digest in digests)


def collect_needs(
    rules: Sequence[ReviewRule],
    plan: PlanView,
    owners: Mapping[str, tuple[str, ...]],
    readers: Mapping[str, Sequence[tuple[str, ...]]] = NO_READERS,
    *,
    edits_rules: bool = False,
) -> Asked:
    """Return what the rules require for a plan; an edit of the rules needs what any of them requires.

    `owners` are the code owners by the path of a model's file, `readers` the approvers of each reader in other projects
    by the model that it reads.
    """
    requirements = Asked()
    for rule in rules:
        models = [model for model in reviewable_models(plan) if _is_about(rule, model)]
        if models or (edits_rules and rule.asks):
            names = tuple(model.name for model in models)
            needs = [Need(names, rule.approvers, rule.approvals)] if rule.approvals else []
            needs += _owner_needs(models, owners) if rule.code_owners else ()
            blocked = tuple(Block(m.name, word) for m in models for word in rule.blocks if word in _model_categories(m))
            freezes = rule.freezes if models else ()
            requirements = Asked(
                (*requirements.needs, *needs), requirements.blocked + blocked, requirements.freezes + freezes
            )
    every_need = dict.fromkeys((*requirements.needs, *_reader_needs(rules, plan, readers)))
    return replace(requirements, needs=tuple(every_need), blocked=tuple(dict.fromkeys(requirements.blocked)))


def _is_about(rule: ReviewRule, model: ModelChange) -> bool:
    named = any(is_selected(selector, model.name, model.tags) for selector in rule.models)
    return named and (not rule.categories or bool(_model_categories(model) & set(rule.categories)))


def _model_categories(model: ModelChange) -> set[str]:
    return {model.change, model.category or ""}


def _owner_needs(models: Sequence[ModelChange], owners: Mapping[str, tuple[str, ...]]) -> tuple[Need, ...]:
    """Return the need for one approval of an owner of each file; files of the same owners share one."""
    by_owners: dict[tuple[str, ...], list[str]] = {}
    for model in models:
        if people := owners.get(model.path):
            by_owners.setdefault(people, []).append(model.name)
    return tuple(Need(tuple(names), people, 1, owners=True) for people, names in by_owners.items())


def _reader_needs(
    rules: Sequence[ReviewRule], plan: PlanView, readers: Mapping[str, Sequence[tuple[str, ...]]]
) -> tuple[Need, ...]:
    """Return the need for one approval of an owner of each reader; which models it reads may not be for all eyes.

    A view downstream counts too: its own plan computes nothing, and its readers see other rows.
    """
    asking = [rule for rule in rules if rule.reader_owners]
    models = (model for model in plan.models if any(_is_about(rule, model) for rule in asking))
    return tuple(Need((), people, 1, readers=True) for model in models for people in readers.get(model.name, ()))


def summarize_reviews(
    reviews: Sequence[Review], shown_plans: Sequence[PlanShown], now: Sequence[str], author: str
) -> ReviewSummary:
    """Summarize the reviews of the plan that promises `now`."""
    last: dict[str, Review] = {}
    for review in sorted(reviews, key=lambda entry: entry.at):
        if review.state in DECISIVE and review.author and review.author.lower() != author.lower():
            last[review.author.lower()] = review
    approving = [entry for entry in last.values() if entry.state == "APPROVED"]
    approved = [entry for entry in approving if set(_promises_at_review(entry, shown_plans)) & set(now)]
    return ReviewSummary(
        tuple(entry.author.lower() for entry in approved),
        tuple(entry.author.lower() for entry in last.values() if entry.state == "CHANGES_REQUESTED"),
        tuple(entry.author.lower() for entry in approving if entry not in approved),
    )


def _promises_at_review(review: Review, shown_plans: Sequence[PlanShown]) -> tuple[str, ...]:
    """Return the promises made for its commit before the review's second: GitHub's times are no finer."""
    earlier_plans = [view for view in shown_plans if view.head == review.commit and view.since < review.at]
    return earlier_plans[-1].promises if earlier_plans else ()


def decide_approval(request: Asked, reviews: ReviewSummary, people: People, at: datetime) -> Decision:
    """Decide if a plan may reach prod: enough approvals of the right people, no objection, no block, no freeze."""
    needs_approval = bool(request.needs)
    missing = tuple(unmet for need in request.needs if (unmet := _count_missing(need, reviews, people)).left > 0)
    frozen = frozen_until(request.freezes, at)
    change = next_change(request.freezes, at)
    return Decision(
        ruled=True,
        approved_by=reviews.approved if needs_approval else (),
        missing=missing,
        objecting=tuple(reviewer for reviewer in reviews.objecting if reviewer in people.writers)
        if needs_approval
        else (),
        outdated=reviews.outdated if missing else (),
        blocked=request.blocked,
        unread=tuple(sorted(people.unread)) if missing else (),
        frozen=freeze_sentence(*frozen) if frozen else "",
        changes_at=change.astimezone(UTC).timestamp() if change else 0.0,
    )


def _count_missing(need: Need, reviews: ReviewSummary, people: People) -> Need:
    if need.approvers:
        teams = (people.members.get(approver, frozenset()) for approver in need.approvers if "/" in approver)
        allowed = {approver for approver in need.approvers if "/" not in approver}.union(*teams)
    else:
        allowed = set(people.writers)
    return replace(need, left=need.left - len(allowed & set(reviews.approved)))
