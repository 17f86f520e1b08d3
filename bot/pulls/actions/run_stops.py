"""Reasons to stop a run of the planner: a newer head, a close, a command."""

import time

import structlog

from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.pulls.arguments import pending_overrides
from mergeplan.bot.pulls.decide import interrupt_reason
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.pulls.talk import answer_all, carry_out
from mergeplan.bot.records import AFTER_MERGE, News, PullRecord, PullState

log = structlog.get_logger(__name__)
MOVED = "moved"  # the base branch is another one: a success would be of what is not merged
COMMANDING = frozenset({"issue_comment.created", "issue_comment.edited", "check_run.requested_action"}) | {
    "pull_request.opened",  # with their descriptions
    "pull_request.edited",
}


class RunStops:
    """What ends one run: it knows the overrides and the selectors that the run was started with."""

    def __init__(self, current: PullPass, record: PullRecord) -> None:
        self._current = current
        self._select = record.wishes.select
        self.used = frozenset[tuple[str, str]]()  # the overrides that the run was given

    def use(self, record: PullRecord) -> None:
        self.used = _override_pairs(record)

    def is_other_selection(self, record: PullRecord) -> bool:
        return record.wishes.select != self._select

    def reason(self) -> str:
        """Return why the run must end: a newer head, a close, a /cancel, a /categorize; '' to go on."""
        current = self._current
        news = current.inbox.deliveries.news(current.job.key, current.seen)
        reason = interrupt_reason(news, current.record.head)
        if reason.startswith("superseded"):
            reason = self._look_again(unreachable=reason)  # webhooks come out of order: its head may be an older one
        if not reason and any(event.kind == "pull_request.edited" for event in news):
            reason = self._look_again()
        if not reason and any(event.kind in COMMANDING for event in news):
            self._judge_commands(news)
        if news:
            current.seen = news[-1].id
        if not reason and time.monotonic() - current.looked_at > current.context.settings.sweep_seconds:
            reason = self._look_again()
        return reason or self._record_reason(current.record)

    def late_reason(self) -> str:
        """Return why the result of a run must not be shown; of a layer, GitHub is asked for its base once more."""
        return self.reason() or (self._look_again() if self._current.record.stack.planned_on.layers else "")

    def _judge_commands(self, news: tuple[News, ...]) -> None:
        """Judge commands that come during a run at once, by the head as it is at that moment."""
        current = self._current
        try:
            current.refresh()
            carry_out(current.context, current.gateway, current.pull, current.config)
            answer_all(current.context, current.gateway, current.pull.number, current.config)
        except (ForgeFailed, ForgePaused) as error:
            log.warning("commands_put_off", key=current.job.key, why=str(error), news=len(news))

    def _look_again(self, unreachable: str = "") -> str:
        """Return why the pull request itself ends the run: webhooks are lost or late; `unreachable` without GitHub."""
        current = self._current
        try:
            current.refresh()
        except (ForgeFailed, ForgePaused):
            current.looked_at = time.monotonic()
            return unreachable
        if not current.pull.is_open:
            return "closed"
        if current.pull.base_ref != current.record.source.base_ref:
            return MOVED
        return f"superseded:{current.pull.head}" if current.pull.head != current.record.head else ""

    def _record_reason(self, record: PullRecord) -> str:
        if record.state is PullState.CANCELLED:
            return "cancelled"
        if record.state in AFTER_MERGE:
            return "closed"
        if record.environment.destroy_by:
            return "destroyed"
        if self.is_other_selection(record):
            return "selected"
        return "categorized" if _override_pairs(record) - self.used else ""


def _override_pairs(record: PullRecord) -> frozenset[tuple[str, str]]:
    return frozenset((override.model, override.category) for override in pending_overrides(record))
