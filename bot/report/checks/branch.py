"""The check on a commit of a branch that has an environment of its own. Pure."""

from mergeplan.bot.report.checks.check import CheckView, fit_summary, make_annotations, running_view
from mergeplan.bot.report.words import estimate_words, problem_line, promotion_summary, work_words
from mergeplan.bot.results import PlannerOutcome

NAME = "mergeplan / branch environment"


def branch_running(environment: str) -> CheckView:
    return running_view(NAME, f"Bringing {environment} to this commit")


def branch_waiting(environment: str, why: str) -> CheckView:
    return running_view(NAME, f"{environment} waits: {why}")


def branch_overtaken(environment: str, newer: str) -> CheckView:
    return branch_given_up(environment, f"{newer[:7]} overtook it")


def branch_given_up(environment: str, why: str) -> CheckView:
    text = f"{environment} does not get this commit: {why}."
    return CheckView(NAME, text, "The environment keeps what it shows.", conclusion="cancelled")


def branch_check(environment: str, outcome: PlannerOutcome) -> CheckView:
    if outcome.ok:
        work = f" Computed: {work_words(outcome.plan)}." if outcome.plan and outcome.plan.models else ""
        return CheckView(NAME, f"{environment} shows this commit", f"{promotion_summary(outcome)}{work}")
    lines = [problem_line(problem) for problem in outcome.problems] or ["Internal error in mergeplan."]
    if outcome.is_too_costly and outcome.plan:
        lines.append(f"The estimate is over the project's budget: {estimate_words(outcome.plan.models)}.")
    title = f"{environment} was not changed"
    marks = make_annotations(outcome.problems)
    return CheckView(NAME, title, fit_summary("\n".join(lines)), conclusion="failure", annotations=marks)
