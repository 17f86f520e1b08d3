"""`mergeplan / promotion`: what a merge will change in prod, and after the merge what it changed. Pure."""

from mergeplan.bot.records import AFTER_MERGE, PullRecord, PullState
from mergeplan.bot.report import words
from mergeplan.bot.report.approval import hold_lines
from mergeplan.bot.report.checks.check import (
    SEE_PLAN,
    Check,
    CheckView,
    fit_summary,
    fit_title,
    make_annotations,
    running_view,
)
from mergeplan.bot.report.inflight import below_name, is_behind, stack_promise
from mergeplan.bot.report.losses import find_losses, loss_lines, loss_title
from mergeplan.bot.report.markdown import code
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import blockers
from mergeplan.bot.results import has_effect, is_free, view_changes
from mergeplan.planner.contract.plan import PlanView

NAME = "mergeplan / promotion"
SELECTED = "Not ready: only selected models are planned"


def promotion_view(pull_view: Shown) -> CheckView:
    record, outcome = pull_view.record, pull_view.record.outcome
    plan = outcome.plan if outcome else None
    if record.state in AFTER_MERGE:
        return promotion_check(record)
    if plan and plan.not_selected:
        lines = "\n".join(words.problem_line(problem) for problem in blockers(record))
        return CheckView(NAME, SELECTED, fit_summary(lines), conclusion="action_required")
    if record.state is PullState.FAILED or (plan and plan.blockers) or (outcome and outcome.is_too_costly):
        no_plan = record.state is PullState.FAILED and plan is None
        lines = SEE_PLAN if no_plan else "\n".join(words.problem_line(problem) for problem in blockers(record))
        return CheckView(NAME, "Blocked: merging would not change prod", fit_summary(lines), conclusion="failure")
    if plan is None or not has_effect(plan):
        return CheckView(NAME, "Nothing to do", "A merge changes nothing in prod.")
    losses = find_losses(outcome)
    allowed = record.rules.decision.is_ok
    after = f" after {below_name(record)}, or together with it" if below_name(record) else ""
    effect = f"the stack {words.prod_words(plan)}" if after else words.prod_words(plan)
    ready = "" if is_behind(record) else f"Ready{after}: " if allowed else f"Ready{after} when it is allowed: "
    title = (
        f"⚠️ {loss_title(losses, record.nearby.readers)} by the merge".replace("`", "") if losses else f"{ready}{effect}"
    )
    promise = stack_promise(record, words.promise_sentence(plan, outcome))
    text = "\n".join(
        [promise, "", *loss_lines(plan, losses, record.nearby.readers), *([""] if losses else []), *_view_lines(plan)]
    )
    return CheckView(NAME, fit_title(title), fit_summary(text))


def _view_lines(plan: PlanView) -> list[str]:
    nouns = ((model, "view" if model.kind.upper() == "VIEW" else "table") for model in view_changes(plan))
    return [
        f"- {code(model.name)} {'is new' if model.change == 'added' else f'gets another {noun}'}"
        for model, noun in nouns
    ]


def promotion_check(record: PullRecord) -> CheckView:
    """Return the promotion check after the merge, for the head and the merge commit."""
    if record.state is PullState.MERGED:
        return (
            _hold_view(record) if record.rules.held else running_view(NAME, record.run.progress or "Promoting to prod.")
        )
    if record.state is PullState.UNPROMOTED:
        problems = record.promotion.outcome.problems if record.promotion.outcome else ()
        lines = "\n".join(words.problem_line(problem) for problem in problems) or "Internal error in mergeplan."
        marks = make_annotations(problems)
        return CheckView(NAME, "Prod was not changed", fit_summary(lines), conclusion="failure", annotations=marks)
    if record.state is PullState.ROLLED_BACK:
        return CheckView(NAME, "Rolled back", _strip_alert(words.promotion_status(record)), conclusion="neutral")
    done = record.promotion.outcome.promotion if record.promotion.outcome else None
    jobs = "" if done is None else " Nothing was computed." if is_free(done) else f" {words.cost_words(done)}."
    title = f"{words.view_words(done)}{jobs}" if done else "Prod needed no change"
    return CheckView(NAME, fit_title(title), _strip_alert(words.promotion_status(record)))


def _hold_view(record: PullRecord) -> CheckView:
    lines = "\n".join(f"- {line}" for line in hold_lines(record))
    return CheckView(NAME, "Merged; promotion on hold", fit_summary(lines), conclusion="action_required")


def _strip_alert(text: str) -> str:
    """Return a status paragraph without its alert box, which check pages do not draw."""
    return "\n".join(
        line.removeprefix(">").removeprefix(" ") for line in text.splitlines() if not line.startswith("> [!")
    )


PROMOTION = Check(NAME, promotion_view, turn=3, page="promotion", has_button=lambda offer: offer.moves_prod)
