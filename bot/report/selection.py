"""What is said of a plan of selected models (`/plan --select`), and of its merge. Pure."""

from mergeplan.bot.records import PullRecord
from mergeplan.bot.report.markdown import code, name_list
from mergeplan.bot.report.words import drift_sentence
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.wording import count_noun

AT_THE_MERGE = (
    "If it is merged like this, the merge is planned whole, judged by the project's rules and built, before prod "
    "changes."
)


def selection_words(record: PullRecord) -> str:
    """Return the changed models that the plan leaves out; '' for a plan of all."""
    plan = record.outcome.plan if record.outcome else None
    if plan is None or not plan.not_selected:
        return ""
    selectors = ", ".join(map(code, record.wishes.select))
    unplanned_text = count_noun(len(plan.not_selected), "changed model")
    return f"Only {selectors or 'some models'} was planned; {unplanned_text} not: {name_list(plan.not_selected)}."


def merge_sentence(record: PullRecord, planned_digest: str, outcome: PlannerOutcome) -> str:
    """Return the reason why a merge did not do what the pull request's plan said; '' if it did."""
    if selection_words(record):
        return "The plan was of selected models; the merge was planned whole, and built before any view moved."
    return drift_sentence(planned_digest, outcome)
