"""What the rules say of a pull request's plan now: the rules as prod has them, reviews, roles and teams as GitHub does.

It is asked at each pass, before a merge and after it; nothing is concluded from what cannot be read.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.policy.approvals import (
    Asked,
    Decision,
    People,
    ReviewSummary,
    collect_needs,
    decide_approval,
    promises,
    reviewable_models,
    summarize_reviews,
)
from mergeplan.bot.policy.roles import ROLES
from mergeplan.bot.pulls.code_owners import read_code_owners
from mergeplan.bot.pulls.outside_readers import find_reading_projects
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.report.checks.approval import APPROVAL
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.transitions.promotion import set_decision
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.errors import ProjectError

T = TypeVar("T")
UNREAD = (
    "The configuration that prod shows cannot be read, so the required approvals are not known: {} "
    "Nothing is promoted automatically until that is repaired."
)
UNREAD_OWNERS = "The owners of the models' files cannot be read: {} Nothing is promoted until that is repaired."


class Reviewers:
    def __init__(self, context: BotContext, gateway: RepositoryGateway, checkout: Checkout, commit: str) -> None:
        self._context = context
        self._gateway = gateway
        self._checkout = checkout
        self._commit = commit
        self._config: BotConfig | None = None
        self._unread = ""
        self._roles: dict[str, bool] = {}

    @property
    def config(self) -> BotConfig:
        """The rules of that commit; `unread` says when they cannot be read."""
        if self._config is None:
            try:
                self._config = self._context.config(self._checkout, self._commit, "") or BotConfig()
            except ProjectError as error:  # as after an upgrade to a version that refuses a key
                self._config, self._unread = BotConfig(), UNREAD.format(error.message)
        return self._config

    @property
    def unread(self) -> str:
        """The reason why prod's rules are unknown; '' if they are read."""
        return self._unread if self.config else ""

    def decide(self, record: PullRecord, plan: PlanView | None = None) -> Decision:
        """Return what the rules say of a plan: of the one that is shown unless another is given."""
        shown = record.outcome.plan if record.outcome else None
        plan = plan or shown
        rules = self.config.review_rules
        if self.unread:
            return Decision(ruled=True, frozen=self.unread)
        if not rules or plan is None:
            return Decision(ruled=bool(rules or record.check(APPROVAL.name, record.head)))
        try:
            owners = self._file_owners(plan)
        except ProjectError as error:
            return Decision(ruled=True, frozen=UNREAD_OWNERS.format(error))
        readers = self._find_readers(record.repository, plan)
        requirements = collect_needs(rules, plan, owners, readers, edits_rules=record.rules.changes_rules)
        reviews = self._gateway.reviews(record.number) if requirements.needs and record.number else ()
        reviewed = summarize_reviews(
            reviews, record.shown.plans, promises(plan, record.rules_text), record.source.author
        )
        return decide_approval(requirements, reviewed, self._read_people(requirements, reviewed), datetime.now(UTC))

    def _file_owners(self, plan: PlanView) -> dict[str, tuple[str, ...]]:
        """Return the owners of each model's file by prod's CODEOWNERS, where a rule needs owners."""
        if not any(rule.code_owners for rule in self.config.review_rules):
            return {}
        paths = (model.path for model in reviewable_models(plan))
        return read_code_owners(self._context, self._checkout, self._commit, paths)

    def _find_readers(self, project: str, plan: PlanView) -> Mapping[str, Sequence[tuple[str, ...]]]:
        """Return the approvers of each reader in other projects, by model, where a rule needs them."""
        if not any(rule.reader_owners for rule in self.config.review_rules):
            return {}
        approvers: dict[str, list[tuple[str, ...]]] = {}
        for reading_project in find_reading_projects(self._context, project, plan):
            for reading, people in zip(reading_project.readings, reading_project.approvers, strict=True):
                if not reading.is_exposure:  # its models are readers themselves, directly or by others
                    approvers.setdefault(reading.model, []).append(people)
        return approvers

    def _read_people(self, request: Asked, reviews: ReviewSummary) -> People:
        who = (*reviews.approved, *reviews.objecting) if request.needs else ()
        writers = frozenset(login for login in who if self._can_write(login))
        members: dict[str, frozenset[str]] = {}
        unread = set[str]()
        for team in request.teams if reviews.approved else ():
            memberships = {login: self._gateway.is_member(team, login) for login in reviews.approved}
            members[team] = frozenset(login for login, inside in memberships.items() if inside)
            unread |= {team} if None in memberships.values() else set()
        return People(writers, members, frozenset(unread))

    def _can_write(self, login: str) -> bool:
        if login not in self._roles:
            role = self._gateway.role(login)
            self._roles[login] = role is not None and ROLES.index(role) >= ROLES.index("write")
        return self._roles[login]


def judge_record(reviewers: Reviewers, inbox: Inbox, record: PullRecord) -> None:
    """Store what the rules say of a plan now; prod's job looks again at a merge that waited for that."""
    waits = record.state is PullState.MERGED and record.rules.held
    if not waits and record.state is not PullState.PLANNED:
        return
    decision = reviewers.decide(record)
    if decision != record.rules.decision:
        inbox.pulls.update(record.repository, record.number, set_decision, decision)
        if waits:
            inbox.queue.wake(record.repository, 0)


def changes_rules(context: BotContext, checkout: Checkout, before: str, after: str) -> bool:
    """Return True where two commits differ in their rules, or in a file that rules made by code read."""
    sections = [_read_or_none(context.section, checkout, commit) for commit in (before, after)]
    if sections[1] is not None and sections[1].files:
        read = {path for section in sections if section is not None for path in section.files}
        return not read.isdisjoint(checkout.diff_paths(before, after))
    rules = [_read_or_none(lambda at, commit: context.config(at, commit, ""), checkout, sha) for sha in (before, after)]
    return rules[0] != rules[1]


def _read_or_none(read: Callable[[Checkout, str], T | None], checkout: Checkout, commit: str) -> T | None:
    """Read from a commit; None where that cannot be read, or there is nothing."""
    try:
        return read(checkout, commit)
    except ProjectError:
        return None


def find_rules_error(context: BotContext, checkout: Checkout, commit: str) -> ProjectError | None:
    try:  # merged, they would fail the plan of every pull request
        context.config(checkout, commit, "")
    except ProjectError as error:
        return error
    return None
