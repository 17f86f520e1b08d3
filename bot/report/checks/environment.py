"""`mergeplan / environment`: whether the tables of the pull request's environment are built. Pure."""

from mergeplan.bot.records import PullRecord
from mergeplan.bot.report.checks.check import (
    ANNOTATIONS_MOST,
    NOT_RUN,
    RUNNING,
    SEE_PLAN,
    Check,
    CheckAnnotation,
    CheckView,
    failure_view,
    fit_summary,
    fit_title,
    make_annotations,
    running_view,
)
from mergeplan.bot.report.markdown import code
from mergeplan.bot.report.models import computation_words, table_words
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import PLANNING
from mergeplan.bot.report.words import cost_sentence, skip_summary, spark_link, work_words
from mergeplan.bot.results import PlannerOutcome, audit_subject, changes_nothing, unreported_audits
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.wording import count_noun

NAME = "mergeplan / environment"
BUTTONS = frozenset({"approve-cost", "skip-backfill", "backfill"})


def environment_view(pull_view: Shown) -> CheckView:
    outcome = pull_view.record.outcome
    if outcome is None or changes_nothing(outcome):
        return CheckView(NAME, "Nothing to do", "No environment is needed: no model changes.")
    if outcome.plan is None:
        return CheckView(NAME, "Not built", SEE_PLAN, conclusion=NOT_RUN)
    if outcome.ok:
        return _success_view(outcome, outcome.plan)
    if outcome.is_too_costly:
        over = f"The estimate is over the project's budget. {cost_sentence(outcome)}"
        text = f"{over} `/approve-cost` lets it be computed."
        return CheckView(NAME, "Waits for an approval of its cost", text, conclusion="action_required")
    if outcome.failed or outcome.is_blocked:
        reason = "Unit tests failed." if outcome.failed else "The plan is blocked."
        return CheckView(NAME, "Not built", reason, conclusion=NOT_RUN)
    annotations = make_annotations(outcome.problems) + _audit_annotations(outcome, "failure")
    return failure_view(NAME, outcome, annotations)


def progress_view(record: PullRecord) -> CheckView:
    doing = record.run.progress or PLANNING
    return running_view(NAME, doing, f"{RUNNING} {spark_link(record)}".rstrip())


def _success_view(outcome: PlannerOutcome, plan: PlanView) -> CheckView:
    built = (
        f"is built. Computed: {work_words(plan)}."
        if outcome.is_built
        else "is planned; its rows are computed at the merge."
    )
    title = f"{plan.environment} {built}"
    lines = [f"- {code(model.name)}: {computation_words(model)}; {table_words(model)}" for model in plan.models]
    marks = _audit_annotations(outcome, "warning")
    text = fit_summary("\n".join([*filter(None, [skip_summary(plan)]), *lines]))
    return CheckView(NAME, fit_title(title), text, annotations=marks)


def _audit_annotations(outcome: PlannerOutcome, level: str) -> tuple[CheckAnnotation, ...]:
    failures = [audit for audit in unreported_audits(outcome) if audit.path]
    return tuple(
        CheckAnnotation(
            audit.path,
            max(audit.line, 1),
            f"Audit {audit.name} of {audit_subject(audit)} found {count_noun(audit.count, 'row')}.",
            level,
        )
        for audit in failures[:ANNOTATIONS_MOST]
    )


ENVIRONMENT = Check(
    NAME,
    environment_view,
    turn=1,
    page="progress",
    progress=progress_view,
    has_button=lambda offer: offer.verb in BUTTONS,
)
