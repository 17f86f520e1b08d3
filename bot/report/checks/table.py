"""The checks of a pull request, in one table, and what they show now. Pure."""

from dataclasses import replace

from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.report.checks.approval import APPROVAL
from mergeplan.bot.report.checks.check import Check, CheckView, fit_summary, fit_title, running_view
from mergeplan.bot.report.checks.environment import ENVIRONMENT
from mergeplan.bot.report.checks.lint import LINT
from mergeplan.bot.report.checks.plan import PLAN
from mergeplan.bot.report.checks.promotion import PROMOTION
from mergeplan.bot.report.checks.unit_tests import UNIT_TESTS
from mergeplan.bot.report.inflight import behind_words, below_name, is_behind
from mergeplan.bot.report.offers import BUTTONS_MOST, list_offers
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import state_row

CHECKS = (LINT, UNIT_TESTS, PLAN, ENVIRONMENT, APPROVAL, PROMOTION)
BY_NAME = {check.name: check for check in CHECKS}


def checks(pull_view: Shown) -> tuple[CheckView, ...]:
    views = (_choose_view(check, pull_view) for check in CHECKS if check.is_wanted(pull_view.record))
    return tuple(_hold_back(view, pull_view.record) for view in views)


def _hold_back(view: CheckView, record: PullRecord) -> CheckView:
    """Return no success for a layer that is behind: its merge would not give what was planned."""
    if record.state is not PullState.PLANNED or not is_behind(record) or view.conclusion != "success":
        return view
    title = fit_title(f"Behind {below_name(record)}: {view.title}")
    summary = fit_summary(f"{behind_words(record)}\n\n{view.summary}")
    return replace(view, title=title, summary=summary, conclusion="action_required")


def _choose_view(check: Check, pull_view: Shown) -> CheckView:
    if check.progress and pull_view.record.state in (PullState.NEW, PullState.PLANNING):
        return check.progress(pull_view.record)
    text = state_row(pull_view.record).checks(pull_view)
    if text is None:
        return check.view(pull_view)
    if text.status != "completed":
        return running_view(check.name, text.title, text.summary, text.status)
    return CheckView(check.name, text.title, text.summary, conclusion=text.conclusion)


def attach_buttons(view: CheckView, pull_view: Shown) -> CheckView:
    """Return a check with the buttons offered now; GitHub shows them on completed checks only."""
    if not view.is_completed:
        return view
    check = BY_NAME[view.name]
    buttons = (offer.button for offer in list_offers(pull_view.record, pull_view.prod) if check.has_button(offer))
    return replace(view, actions=tuple(button for button in buttons if button)[:BUTTONS_MOST])


def writing_turn(name: str) -> int:
    return BY_NAME[name].turn


def page_of(name: str) -> str:
    return BY_NAME[name].page if name in BY_NAME else "plan"


def final_check(name: str, newer: str) -> CheckView:
    """Return the end of a check whose head is no longer the newest."""
    title = f"Superseded by {newer[:7]}" if newer else "Stopped"
    text = f"The check of `{newer[:7]}` has the result." if newer else "The run was stopped before its end."
    return CheckView(name, title, text, conclusion="cancelled")
