"""`mergeplan / plan`: whether the plan was made, what it changes and what it computes. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from mergeplan.bot.readers.impact import ReaderSummary
from mergeplan.bot.report.checks.check import Check, CheckView, failure_view, fit_summary, fit_title, make_annotations
from mergeplan.bot.report.losses import find_losses, loss_lines, loss_title, reader_blocks
from mergeplan.bot.report.markdown import CHECK_LIMIT
from mergeplan.bot.report.models import COMPUTED, TO_COMPUTE, model_table
from mergeplan.bot.report.selection import selection_words
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.words import change_words, open_words, refusal_words, skip_summary, work_words
from mergeplan.bot.results import RULE_BROKEN, PlannerOutcome, changes_nothing, problems_of
from mergeplan.planner.contract.plan import PlanView
from mergeplan.planner.wording import count_noun

NAME = "mergeplan / plan"
BUTTONS = frozenset({"plan", "ok-to-plan", "categorize"})


def plan_view(pull_view: Shown) -> CheckView:
    outcome = pull_view.record.outcome
    if outcome is None or changes_nothing(outcome):
        refused = refusal_words(outcome.plan if outcome else None)
        return CheckView(NAME, "Nothing to do", fit_summary(f"No model changes.\n\n{refused}".strip()))
    readers = pull_view.record.nearby.readers
    view = _models_view(outcome, outcome.plan, readers) if outcome.plan else _failure_view(outcome)
    words = selection_words(pull_view.record)
    if not words or view.conclusion == "failure":
        return view
    unplanned_count = len(outcome.plan.not_selected) if outcome.plan else 0
    title = f"Plan of selected models: {count_noun(unplanned_count, 'changed model')} not planned"
    return replace(view, title=title, summary=fit_summary(f"{words}\n\n{view.summary}"), conclusion="action_required")


def _failure_view(outcome: PlannerOutcome) -> CheckView:
    """Return the reason why there is no plan; the linter's own check annotates its rules."""
    problems = [problem for problem in outcome.problems if problem.kind != RULE_BROKEN]
    return failure_view(NAME, outcome, make_annotations(problems))


def _models_view(outcome: PlannerOutcome, plan: PlanView, readers: Sequence[ReaderSummary]) -> CheckView:
    losses = find_losses(outcome)
    verb = "A merge would take" if plan.blockers else "The merge takes"
    lost = (
        "\n".join([f"**{verb} something away from prod:**", "", *loss_lines(plan, losses, readers)]) if losses else ""
    )
    notes = (lost, *reader_blocks(readers), skip_summary(plan), open_words(plan), refusal_words(plan))
    warning = f"⚠️ {loss_title(losses, readers)}; " if losses else ""
    work = COMPUTED if outcome.applied else TO_COMPUTE
    title = f"{warning}{change_words(plan)}; {work.lower()}: {work_words(plan)}".replace("`", "")
    text = "\n\n".join([*filter(None, notes), model_table(plan.models, CHECK_LIMIT - 12_000, work=work)]) + "\n"
    if plan.blockers:
        marks = make_annotations(problems_of(plan.blockers))
        title = plan.blockers[0].message.replace("`", "")
        return CheckView(NAME, fit_title(title), text, conclusion="failure", annotations=marks)
    return CheckView(NAME, fit_title(title), text)


# After the merge `/plan` moves prod, and is a button of the promotion.
PLAN = Check(NAME, plan_view, turn=4, has_button=lambda offer: offer.verb in BUTTONS and not offer.moves_prod)
