"""A check: its name, what it shows, and which of the commands that are offered now are its buttons. Pure."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from mergeplan.bot.records import PullRecord
from mergeplan.bot.report.markdown import CHECK_LIMIT, clip_text, fit_lines
from mergeplan.bot.report.offers import Button, Offer
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.words import failure_title, problem_line
from mergeplan.bot.results import PlannerOutcome, Problem

ANNOTATIONS_MOST = 200
TITLE_MOST = 140
RUNNING = "The result is shown here when this ends."
NO_MODELS = "This pull request touches no models."
# The conclusion of a check without a result: GitHub counts `skipped` and `neutral` as passed, also where required.
NOT_RUN = "cancelled"
SEE_PLAN = "There is no plan: its check says why."  # in that check alone, each error once


@dataclass(frozen=True)
class CheckAnnotation:
    path: str
    line: int
    message: str
    level: str = "failure"
    column: int = 0


@dataclass(frozen=True)
class CheckView:
    """What one check shows; `conclusion` is '' until it is completed."""

    name: str
    title: str
    summary: str
    status: str = "completed"
    conclusion: str = "success"
    annotations: tuple[CheckAnnotation, ...] = ()
    actions: tuple[Button, ...] = ()

    @property
    def is_completed(self) -> bool:
        return self.status == "completed"

    @property
    def digest(self) -> str:
        """Equal for two views that say the same."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Check:
    """One check of a pull request.

    `view` is what it shows where the state leaves that to each check (`states.StateRow.checks`). Branch protection
    names checks: a name never changes.
    """

    name: str
    view: Callable[[Shown], CheckView]
    turn: int = 9  # checks are written in this order: first what a reader waits for most
    page: str = "plan"  # of the service: where its Details link leads
    progress: Callable[[PullRecord], CheckView] | None = None  # while the plan is made; None: as all checks
    has_button: Callable[[Offer], bool] = lambda _: False  # True for an offer that is a button of this check
    is_wanted: Callable[[PullRecord], bool] = lambda _: True  # False where the project does not have it


def running_view(name: str, text: str, summary: str = "", status: str = "in_progress") -> CheckView:
    return CheckView(name, fit_title(text), clip_text(summary or RUNNING), status, "")


def failure_view(name: str, outcome: PlannerOutcome, annotations: tuple[CheckAnnotation, ...]) -> CheckView:
    title = failure_title(outcome)
    summary = fit_summary("\n".join(map(problem_line, outcome.problems)) or f"{title}.")
    return CheckView(name, title.replace("`", ""), summary, conclusion="failure", annotations=annotations)


def make_annotations(problems: Iterable[Problem], level: str = "failure") -> tuple[CheckAnnotation, ...]:
    placed = [problem for problem in problems if problem.path]
    return tuple(
        CheckAnnotation(
            problem.path, max(problem.line, 1), f"{problem.message} {problem.hint}".strip(), level, problem.column
        )
        for problem in placed[:ANNOTATIONS_MOST]
    )


def fit_title(text: str) -> str:
    """Return a title within GitHub's limit; a longer one ends after a whole word.

    >>> fit_title(f"{'x' * 133}; tables")
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    """
    if len(text) <= TITLE_MOST:
        return text
    whole = text[: TITLE_MOST - 1]
    return f"{(whole.rpartition(' ')[0] or whole).rstrip(' ,;:·')}…"


def fit_summary(text: str) -> str:
    return "\n".join(fit_lines(text.splitlines(), CHECK_LIMIT - 600)) or "Nothing to report."
