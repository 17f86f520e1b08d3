"""The promotion check on a commit of the prod branch that belongs to no pull request. Pure."""

from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.report.approval import missing_lines
from mergeplan.bot.report.checks.check import CheckView, fit_summary, fit_title, make_annotations, running_view
from mergeplan.bot.report.checks.promotion import NAME
from mergeplan.bot.report.words import problem_line
from mergeplan.bot.results import PlannerOutcome


def prod_check(title: str, summary: str, outcome: PlannerOutcome | None, running: bool) -> CheckView:
    if running:
        return running_view(NAME, title)
    problems = outcome.problems if outcome else ()
    text = fit_summary("\n".join([summary, *(problem_line(problem) for problem in problems)]))
    conclusion = "success" if outcome and outcome.ok else "failure"
    return CheckView(NAME, fit_title(title), text, conclusion=conclusion, annotations=make_annotations(problems))


def push_hold_check(decision: Decision) -> CheckView:
    lines = [f"- {line}" for line in missing_lines(decision)]
    out = (
        "The plan of a push was not reviewed. Revert it, or merge a pull request whose plan holds it and is approved; "
        "`/deploy` by someone with `admin` on such a merge lets both in."
    )
    text = fit_summary("\n".join([*lines, "", out]))
    return CheckView(NAME, "Pushed; promotion on hold", text, conclusion="action_required")
