"""`mergeplan / approval`: who must still agree, where the project has rules. Pure."""

from mergeplan.bot.records import AFTER_MERGE, PullRecord
from mergeplan.bot.report.approval import approval_title, missing_lines
from mergeplan.bot.report.checks.check import NOT_RUN, SEE_PLAN, Check, CheckView, fit_summary, fit_title
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.results import changes_nothing

NAME = "mergeplan / approval"
APPROVED = "These approvals are of this plan. Another plan needs them again, as the project's rules say."
UNASKED = "No rule of the project asks for an approval of these changes."


def approval_view(pull_view: Shown) -> CheckView:
    """Return the check that lists the missing approvals; a plan in prod needs none."""
    record, decision = pull_view.record, pull_view.record.rules.decision
    outcome = record.outcome
    if record.state in AFTER_MERGE and not record.rules.held:
        return _merge_view(record)
    if outcome is None or changes_nothing(outcome):
        return CheckView(NAME, "Nothing to do", "No model changes.")
    if outcome.plan is None:
        return CheckView(NAME, "No plan to approve", SEE_PLAN, conclusion=NOT_RUN)
    title, lines = fit_title(approval_title(decision)), [f"- {line}" for line in missing_lines(decision)]
    if not decision.is_ok:
        return CheckView(NAME, title, fit_summary("\n".join(lines)), conclusion="action_required")
    return CheckView(NAME, title, APPROVED if decision.approved_by else UNASKED)


def _merge_view(record: PullRecord) -> CheckView:
    decision = record.rules.decision
    by = f"Approved by {', '.join(decision.approved_by)}." if decision.approved_by else "No approval was needed."
    title = by.rstrip(".") if decision.is_ok else "Merged"
    return CheckView(NAME, title, by if title == "Merged" else "The pull request is merged.")


APPROVAL = Check(NAME, approval_view, turn=2, is_wanted=lambda record: record.rules.decision.ruled)
