"""Notices of prod for people who do not look at GitHub, one function for each event; `notifications` delivers them."""

from dataclasses import dataclass

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.projects import title_of
from mergeplan.bot.report.approval import missing_lines
from mergeplan.bot.report.words import first_problem, promotion_summary, view_words
from mergeplan.bot.results import PlannerOutcome


@dataclass(frozen=True)
class Notice:
    repository: str  # the project's key
    sentence: str

    @property
    def text(self) -> str:
        """What happened, and in which repository."""
        return f"{title_of(self.repository)}: {self.sentence}".strip()


def announce_build(repository: str, outcome: PlannerOutcome) -> Notice:
    words = view_words(outcome.promotion) if outcome.promotion else ""
    return Notice(repository, f"Prod was built for the first time. {words}")


def announce_build_failure(repository: str, commit: str, outcome: PlannerOutcome, *, is_retried: bool) -> Notice:
    problem, outlook = first_problem(outcome), build_outlook(is_retried=is_retried)
    return Notice(repository, f"Prod could not be built from {commit[:7]}: {problem} {outlook}")


def build_outlook(*, is_retried: bool) -> str:
    """Return when a failed build is tried again; `is_retried` without another commit."""
    if is_retried:
        return "The build is tried again automatically."
    return "It is tried again with the next commit, or by Re-run."


def announce_merge(repository: str, number: int, outcome: PlannerOutcome) -> Notice:
    return Notice(repository, f"#{number} is in prod. {promotion_summary(outcome)}")


def announce_merge_failure(repository: str, number: int, outcome: PlannerOutcome) -> Notice:
    return Notice(repository, f"#{number} is merged and not in prod: {first_problem(outcome)}")


def announce_hold(repository: str, number: int, decision: Decision) -> Notice:
    return Notice(repository, f"#{number} is merged and waits: {missing_lines(decision)[0]}")


def announce_deploy(repository: str, number: int, who: str) -> Notice:
    return Notice(repository, f"{who} deployed #{number}. It is merged and in prod.")


def announce_push(repository: str, commit: str, outcome: PlannerOutcome) -> Notice:
    return Notice(repository, f"{commit[:7]} is in prod. {promotion_summary(outcome)}")


def announce_push_failure(repository: str, commit: str, outcome: PlannerOutcome) -> Notice:
    return Notice(repository, f"{commit[:7]} was pushed and is not in prod: {first_problem(outcome)}")


def announce_rollback(repository: str, number: int, who: str, revision: int) -> Notice:
    return Notice(repository, f"{who} rolled prod back to revision {revision} (#{number}).")
