"""What became of prod, for people who do not look at GitHub, as `notifications` delivers it: events and sentences."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.projects import title_of
from mergeplan.bot.report.approval import missing_lines
from mergeplan.bot.report.words import first_problem, promotion_summary, view_words
from mergeplan.bot.results import PlannerOutcome


@dataclass(frozen=True)
class Notice(ABC):
    repository: str  # the project's key

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What happened."""

    @property
    def text(self) -> str:
        """What happened, and in which repository."""
        return f"{title_of(self.repository)}: {self.sentence}".strip()


@dataclass(frozen=True)
class ProdBuilt(Notice):
    outcome: PlannerOutcome

    @property
    def sentence(self) -> str:
        done = self.outcome.promotion
        return f"Prod was built for the first time. {view_words(done) if done else ''}"


@dataclass(frozen=True)
class ProdNotBuilt(Notice):
    """The first build of prod failed; `is_retried` without another commit."""

    commit: str
    outcome: PlannerOutcome
    is_retried: bool

    @property
    def sentence(self) -> str:
        return f"Prod could not be built from {self.commit[:7]}: {first_problem(self.outcome)} {self.outlook}"

    @property
    def outlook(self) -> str:
        """When the build is tried again."""
        if self.is_retried:
            return "The build is tried again automatically."
        return "It is tried again with the next commit, or by Re-run."


@dataclass(frozen=True)
class MergePromoted(Notice):
    number: int
    outcome: PlannerOutcome

    @property
    def sentence(self) -> str:
        return f"#{self.number} is in prod. {promotion_summary(self.outcome)}"


@dataclass(frozen=True)
class MergeNotPromoted(Notice):
    number: int
    outcome: PlannerOutcome

    @property
    def sentence(self) -> str:
        return f"#{self.number} is merged and not in prod: {first_problem(self.outcome)}"


@dataclass(frozen=True)
class MergeHeld(Notice):
    """A pull request is merged, and the rules do not let it into prod yet."""

    number: int
    decision: Decision

    @property
    def sentence(self) -> str:
        return f"#{self.number} is merged and waits: {missing_lines(self.decision)[0]}"


@dataclass(frozen=True)
class PullDeployed(Notice):
    number: int
    who: str

    @property
    def sentence(self) -> str:
        return f"{self.who} deployed #{self.number}. It is merged and in prod."


@dataclass(frozen=True)
class PushPromoted(Notice):
    """A commit that no pull request brought reached prod."""

    commit: str
    outcome: PlannerOutcome

    @property
    def sentence(self) -> str:
        return f"{self.commit[:7]} is in prod. {promotion_summary(self.outcome)}"


@dataclass(frozen=True)
class PushNotPromoted(Notice):
    """A commit that no pull request brought is on the branch, and its promotion failed."""

    commit: str
    outcome: PlannerOutcome

    @property
    def sentence(self) -> str:
        return f"{self.commit[:7]} was pushed and is not in prod: {first_problem(self.outcome)}"


@dataclass(frozen=True)
class ProdRolledBack(Notice):
    number: int
    who: str
    revision: int

    @property
    def sentence(self) -> str:
        return f"{self.who} rolled prod back to revision {self.revision} (#{self.number})."
