"""`mergeplan / lint`: the rules of the linter. What breaks one stops the plan; a warning does not. Pure."""

from mergeplan.bot.report.checks.check import (
    NO_MODELS,
    NOT_RUN,
    SEE_PLAN,
    Check,
    CheckView,
    fit_summary,
    make_annotations,
)
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.words import problem_line
from mergeplan.planner.wording import count_noun

NAME = "mergeplan / lint"


def lint_view(pull_view: Shown) -> CheckView:
    outcome = pull_view.record.outcome
    if outcome is None:
        return CheckView(NAME, "Nothing to do", NO_MODELS)
    broken, warned = outcome.broken_rules, outcome.warnings
    if outcome.plan is None and not outcome.ok and not broken:
        return CheckView(NAME, "Not run", SEE_PLAN, conclusion=NOT_RUN)
    counts = [count_noun(len(broken), "error"), count_noun(len(warned), "warning")]
    title = ", ".join(count for count in counts if not count.startswith("0 ")) or "No rule is broken"
    lines = [problem_line(problem) for problem in (*broken, *warned)] or ["Every model keeps the rules of the linter."]
    return CheckView(
        NAME,
        title,
        fit_summary("\n".join(lines)),
        conclusion="failure" if broken else "success",
        annotations=make_annotations(broken) + make_annotations(warned, "warning"),
    )


LINT = Check(NAME, lint_view, turn=6)
