"""`mergeplan / tests`: the project's unit tests. Pure."""

from collections.abc import Sequence

from mergeplan.bot.report.checks.check import (
    NO_MODELS,
    NOT_RUN,
    SEE_PLAN,
    Check,
    CheckAnnotation,
    CheckView,
    fit_summary,
)
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.words import problem_line
from mergeplan.bot.results import Problem
from mergeplan.planner.contract.lines import TestLine
from mergeplan.planner.wording import count_noun

NAME = "mergeplan / tests"


def tests_view(pull_view: Shown) -> CheckView:
    outcome = pull_view.record.outcome
    if outcome is None:
        return CheckView(NAME, "Nothing to do", NO_MODELS)
    if outcome.failed:
        return _failure_view([test for test in outcome.tests if not test.ok], outcome.failed)
    if outcome.plan is None and not outcome.ok:
        return CheckView(NAME, "Not run", SEE_PLAN, conclusion=NOT_RUN)
    if not outcome.passed:
        return CheckView(NAME, "Nothing to do", "The project has no unit tests.")
    unchanged_text = f" ({outcome.unchanged} unchanged since they passed)" if outcome.unchanged else ""
    title = f"{count_noun(outcome.passed, 'test')} passed{unchanged_text}"
    return CheckView(NAME, title, "Every unit test of the project passed.")


def _failure_view(failures: Sequence[TestLine], number: int) -> CheckView:
    marks = tuple(
        CheckAnnotation(test.path, test.line, f"{test.name}: {test.message or 'failed'}")
        for test in failures
        if test.path
    )
    lines = (problem_line(Problem(test.message or "failed", test.path, test.line), test.name) for test in failures)
    title = f"{count_noun(number, 'test')} failed"
    return CheckView(NAME, title, fit_summary("\n".join(lines)), conclusion="failure", annotations=marks)


UNIT_TESTS = Check(NAME, tests_view, turn=5)
