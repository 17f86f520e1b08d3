"""The checks of a pull request: what each shows in each state, with annotations at file and line. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace

from mergeplan.bot.approvals import Decision
from mergeplan.bot.projects import label_of, repository_of
from mergeplan.bot.records import (
    AFTER_MERGE,
    APPROVAL,
    ENVIRONMENT,
    LINT,
    PLAN,
    PROMOTION,
    TESTS,
    PullRecord,
    PullState,
)
from mergeplan.bot.report.approval import approval_title, hold_lines, missing_lines
from mergeplan.bot.report.comment import Shown, blockers, plan_comment, skip_words
from mergeplan.bot.report.markdown import CHECK_LIMIT, clip_text, count_noun, fitting
from mergeplan.bot.report.models import model_table
from mergeplan.bot.report.offers import Button, buttons
from mergeplan.bot.report.words import (
    change_words,
    cost_words,
    estimate_words,
    failure_title,
    open_words,
    problem_line,
    promise_sentence,
    promotion_status,
    refusal_words,
    skip_summary,
    spark_link,
    view_words,
    waiting_words,
    work_words,
)
from mergeplan.bot.results import RULE_BROKEN, PlannerOutcome, Problem, is_free, problems_of, subject, touches

ANNOTATIONS_MOST = 200
KEY = re.compile(r"mergeplan:([1-9]\d{0,9}):[a-z]+((?:~[A-Za-z0-9._-]+)*)")  # as `check_key` makes it
SEE_PLAN = "There is no plan: its check says why."  # in that check alone, each error once
PLANNING = "Being planned and built."  # true of a plan that stands, too


@dataclass(frozen=True)
class CheckAnnotation:
    """A remark at a line of the project."""

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


def checks(shown: Shown) -> tuple[CheckView, ...]:
    """The checks as they should stand on the record's head now."""
    record = shown.record
    names = record.every_check
    match record.state:
        case PullState.NEW | PullState.PLANNING:
            return tuple(_building(record) if name == ENVIRONMENT else _running(name, PLANNING) for name in names)
        case PullState.WAITING:
            text, failed = waiting_words(shown.prod), bool(shown.prod.outcome and shown.prod.outcome.problems)
            title = "Prod could not be built yet." if failed else "Waiting for prod's first build."
            return tuple(_running(name, title, "queued", text) for name in names)
        case PullState.HELD:
            return tuple(_fork_check(name, record) for name in names)
        case PullState.SKIPPED:
            return tuple(_skip_check(name, shown) for name in names)
        case PullState.CLOSED if record.reason:
            return tuple(CheckView(name, "Nothing to do", record.reason) for name in names)
        case PullState.CANCELLED | PullState.CLOSED:
            why = (
                "Closed: the environment was dropped."
                if record.state is PullState.CLOSED
                else record.reason or "Stopped."
            )
            return tuple(CheckView(name, why, why, conclusion="cancelled") for name in names)
        case _:
            approval = (_approval(record),) if APPROVAL in names else ()
            return (_lint(record), _tests(record), _plan(shown), _environment(record), *approval, _promotion(record))


def attach_buttons(view: CheckView, shown: Shown) -> CheckView:
    """A check with what may be pressed on it now; GitHub shows buttons on completed checks only."""
    return replace(view, actions=buttons(shown.record, shown.prod, view.name)) if view.is_completed else view


def check_key(project: str, number: int, name: str) -> str:
    """What distinguishes our check of a pull request, for the project of that key, from every other on its commit.

    >>> check_key("ann/shop~ads", 7, "mergeplan / plan")
    'mergeplan:7:plan~ads'
    """
    return f"mergeplan:{number}:{name.rpartition(' ')[2]}{project.removeprefix(repository_of(project))}"


def pull_of_key(key: str) -> tuple[int, str]:
    """The pull request that such a key names, and its project's label; (0, '') for another text.

    >>> pull_of_key("mergeplan:7:plan~ads"), pull_of_key("another's")
    ((7, 'ads'), (0, ''))
    """
    match = KEY.fullmatch(key)
    return (int(match[1]), label_of(match[2])) if match else (0, "")


def final_check(name: str, newer: str) -> CheckView:
    """The last word of a check whose head is no longer the newest."""
    text = f"Superseded by `{newer[:7]}`." if newer else "Stopped."
    return CheckView(name, text.replace("`", ""), text, conclusion="cancelled")


def _running(name: str, text: str, status: str = "in_progress", summary: str = "") -> CheckView:
    return CheckView(name, text[:140], clip_text(summary or text), status, "")


def _building(record: PullRecord) -> CheckView:
    doing = record.progress or PLANNING
    return _running(ENVIRONMENT, doing, summary=f"{doing} {spark_link(record)}".rstrip())


def _fork_check(name: str, record: PullRecord) -> CheckView:
    text = f"A maintainer types `/ok-to-plan {record.head}` to let this commit of a fork be planned."
    return CheckView(name, "A maintainer must let this commit be planned", text, conclusion="action_required")


def _skip_check(name: str, shown: Shown) -> CheckView:
    """No conclusion that lets a merge pass: GitHub takes `neutral` and `skipped` for a success."""
    title = f"Not planned: it has the label {shown.record.skip_label}"
    return CheckView(name, title, skip_words(shown), conclusion="action_required")


def _lint(record: PullRecord) -> CheckView:
    """The linter's rules: what breaks one is annotated here, and stops the plan; what is only a warning does not."""
    outcome = record.outcome
    if outcome is None:
        return CheckView(LINT, "Nothing to do", "This pull request touches no models.")
    broken, warned = outcome.broken_rules, outcome.warnings
    if outcome.plan is None and not outcome.ok and not broken:
        return CheckView(LINT, "Not run", SEE_PLAN, conclusion="skipped")
    marks = remarks(broken) + remarks(warned, "warning")
    counts = [count_noun(len(broken), "error"), count_noun(len(warned), "warning")]
    title = ", ".join(count for count in counts if not count.startswith("0 ")) or "No rule is broken"
    lines = [problem_line(problem) for problem in (*broken, *warned)] or ["Every model keeps the rules of the linter."]
    return CheckView(
        LINT, title, _fit("\n".join(lines)), conclusion="failure" if broken else "success", annotations=marks
    )


def _tests(record: PullRecord) -> CheckView:
    outcome = record.outcome
    if outcome is None:
        return CheckView(TESTS, "Nothing to do", "This pull request touches no models.")
    if outcome.failed:
        failed = [test for test in outcome.tests if not test.ok]
        marks = tuple(
            CheckAnnotation(test.path, test.line, f"{test.name}: {test.message or 'failed'}")
            for test in failed
            if test.path
        )
        lines = "\n".join(
            problem_line(Problem(test.message or "failed", test.path, test.line), test.name) for test in failed
        )
        return CheckView(
            TESTS, f"{count_noun(outcome.failed, 'test')} failed", _fit(lines), conclusion="failure", annotations=marks
        )
    if outcome.plan is None and not outcome.ok:
        return CheckView(TESTS, "Not run", SEE_PLAN, conclusion="skipped")
    if not outcome.passed:
        return CheckView(TESTS, "Nothing to do", "The project has no unit tests.")
    same = f" ({outcome.unchanged} unchanged since they passed)" if outcome.unchanged else ""
    return CheckView(
        TESTS, f"{count_noun(outcome.passed, 'test')} passed{same}", "Every unit test of the project passed."
    )


def _plan(shown: Shown) -> CheckView:
    outcome = shown.record.outcome
    if outcome is None or (outcome.ok and not touches(outcome.plan)):
        refused = refusal_words(outcome.plan if outcome else None)
        return CheckView(PLAN, "Nothing to do", _fit(f"No model changes.\n\n{refused}".strip()))
    if outcome.plan is None:
        lines = [problem_line(problem) for problem in outcome.problems] or [f"{failure_title(outcome)}."]
        return CheckView(
            PLAN,
            failure_title(outcome),
            _fit("\n".join(lines)),
            conclusion="failure",
            annotations=remarks(tuple(problem for problem in outcome.problems if problem.kind != RULE_BROKEN)),
        )
    plan = outcome.plan
    cut = "".join(f"\n\n{words}" for words in (skip_summary(plan), open_words(plan), refusal_words(plan)) if words)
    rows = model_table(plan.models, CHECK_LIMIT - 9_000)
    text = f"{change_words(plan)}; to compute: {work_words(plan)}.{cut}\n\n{rows}\n"
    if plan.blockers:
        marks = remarks(problems_of(plan.blockers))
        return CheckView(PLAN, plan.blockers[0].message[:140], text, conclusion="failure", annotations=marks)
    return CheckView(PLAN, f"{change_words(plan)}; to compute: {work_words(plan)}"[:140], text)


def _environment(record: PullRecord) -> CheckView:
    outcome, plan = record.outcome, record.outcome.plan if record.outcome else None
    if outcome is None or (outcome.ok and not touches(plan)):
        return CheckView(ENVIRONMENT, "Nothing to do", "No environment is needed: no model changes.")
    if plan is None:
        return CheckView(ENVIRONMENT, "Not built", SEE_PLAN, conclusion="skipped")
    if outcome.ok:
        built = "is built" if outcome.applied else "is planned; its rows are computed at the merge"
        title = f"`{plan.environment}` {built}. Computed: {work_words(plan)}."
        text = f"{title} {skip_summary(plan)}".rstrip()
        return CheckView(ENVIRONMENT, title.replace("`", "")[:140], text, annotations=_audit_marks(outcome, "warning"))
    if outcome.is_too_costly:
        over = f"The estimate is over the project's budget: {estimate_words(plan.models)}."
        text = f"{over} `/approve-cost` lets it be computed."
        return CheckView(ENVIRONMENT, "Waits for an approval of its cost", text, conclusion="action_required")
    if outcome.failed or outcome.is_blocked:
        why = "Unit tests failed." if outcome.failed else "The plan is blocked."
        return CheckView(ENVIRONMENT, "Not built", why, conclusion="skipped")
    lines = [problem_line(problem) for problem in outcome.problems] or [f"{failure_title(outcome)}."]
    return CheckView(
        ENVIRONMENT,
        failure_title(outcome).replace("`", ""),
        _fit("\n".join(lines)),
        conclusion="failure",
        annotations=remarks(outcome.problems) + _audit_marks(outcome, "failure"),
    )


def _approval(record: PullRecord) -> CheckView:
    """Who must still agree; what is in prod is past that."""
    decision, outcome = record.decision, record.outcome
    if record.state in AFTER_MERGE and not record.held:
        by = f"Approved by {', '.join(decision.approved_by)}." if decision.approved_by else "Nobody had to approve."
        return CheckView(APPROVAL, by.rstrip(".") if decision.is_ok else "Merged", _fit(by))
    if outcome is None or (outcome.ok and not touches(outcome.plan)):
        return CheckView(APPROVAL, "Nothing to do", "No model changes.")
    if outcome.plan is None:
        return CheckView(APPROVAL, "No plan to approve", SEE_PLAN, conclusion="skipped")
    title, lines = approval_title(decision)[:140], [f"- {line}" for line in missing_lines(decision)]
    if not decision.is_ok:
        return CheckView(APPROVAL, title, _fit("\n".join(lines)), conclusion="action_required")
    return CheckView(APPROVAL, title, f"{title}.")


def _promotion(record: PullRecord) -> CheckView:
    outcome, plan = record.outcome, record.outcome.plan if record.outcome else None
    if record.state in AFTER_MERGE:
        return promotion_check(record)
    if record.state is PullState.FAILED or (plan and plan.blockers) or (outcome and outcome.is_too_costly):
        no_plan = record.state is PullState.FAILED and plan is None
        lines = SEE_PLAN if no_plan else "\n".join(problem_line(problem) for problem in blockers(record))
        return CheckView(PROMOTION, "Blocked: merging would not change prod", _fit(lines), conclusion="failure")
    if plan is None or not touches(plan):
        return CheckView(PROMOTION, "Nothing to do", "A merge changes nothing in prod.")
    text = promise_sentence(plan, outcome)
    return CheckView(PROMOTION, f"Ready. {text}"[:140], text)


def promotion_check(record: PullRecord) -> CheckView:
    """What the promotion check shows after the merge, on the head and on the merge commit."""
    match record.state:
        case PullState.MERGED if record.held:
            lines = "\n".join(f"- {line}" for line in hold_lines(record))
            return CheckView(PROMOTION, "Merged; promotion on hold", _fit(lines), conclusion="action_required")
        case PullState.MERGED:
            return _running(PROMOTION, record.progress or "Promoting to prod.")
        case PullState.UNPROMOTED:
            ended = record.promotion_outcome
            problems = ended.problems if ended else ()
            lines = "\n".join(problem_line(problem) for problem in problems) or "Internal error in mergeplan."
            return CheckView(
                PROMOTION, "Prod was not changed", _fit(lines), conclusion="failure", annotations=remarks(problems)
            )
        case PullState.ROLLED_BACK:
            return CheckView(PROMOTION, "Rolled back", _strip_alert(promotion_status(record)), conclusion="neutral")
        case _:
            done = record.promotion_outcome.promotion if record.promotion_outcome else None
            jobs = "" if done is None else " Nothing was computed." if is_free(done) else f" {cost_words(done)}."
            title = f"{view_words(done)}{jobs}" if done else "Prod needed no change"
            return CheckView(PROMOTION, title[:140], _strip_alert(promotion_status(record)))


def prod_check(title: str, summary: str, outcome: PlannerOutcome | None, running: bool) -> CheckView:
    """The promotion check on a commit of the prod branch that belongs to no pull request."""
    if running:
        return _running(PROMOTION, title)
    problems = outcome.problems if outcome else ()
    text = "\n".join([summary, *(problem_line(problem) for problem in problems)])
    ok = bool(outcome and outcome.ok)
    return CheckView(
        PROMOTION, title[:140], _fit(text), conclusion="success" if ok else "failure", annotations=remarks(problems)
    )


def push_hold_check(decision: Decision) -> CheckView:
    """The promotion check on a push that the rules do not let into prod."""
    lines = [f"- {line}" for line in missing_lines(decision)]
    out = (
        "Nobody reviewed the plan of a push. Revert it, or merge a pull request whose plan holds it and is approved; "
        "`/deploy` by somebody with `admin` on such a merge lets both in."
    )
    return CheckView(
        PROMOTION, "Pushed; promotion on hold", _fit("\n".join([*lines, "", out])), conclusion="action_required"
    )


def remarks(problems: tuple[Problem, ...], level: str = "failure") -> tuple[CheckAnnotation, ...]:
    """The problems that have a place, as remarks at that place."""
    placed = [problem for problem in problems if problem.path]
    return tuple(
        CheckAnnotation(
            problem.path, max(problem.line, 1), f"{problem.message} {problem.hint}".strip(), level, problem.column
        )
        for problem in placed[:ANNOTATIONS_MOST]
    )


def _audit_marks(outcome: PlannerOutcome, level: str) -> tuple[CheckAnnotation, ...]:
    failures = [audit for audit in outcome.audits if not audit.ok and audit.path]
    return tuple(
        CheckAnnotation(
            audit.path,
            max(audit.line, 1),
            f"Audit {audit.name} of {subject(audit)} found {count_noun(audit.count, 'row')}.",
            level,
        )
        for audit in failures[:ANNOTATIONS_MOST]
    )


def _strip_alert(text: str) -> str:
    """A status paragraph without its alert box, which check pages do not draw."""
    return "\n".join(line.removeprefix("> ") for line in text.splitlines() if not line.startswith("> [!"))


def _fit(text: str) -> str:
    """Whole lines within what a check may hold."""
    return "\n".join(fitting(text.splitlines(), CHECK_LIMIT - 600)) or "Nothing to report."


__all__ = ["CheckAnnotation", "CheckView", "checks", "final_check", "plan_comment", "prod_check", "promotion_check"]
