"""What else is in flight around a pull request: open ones that meet it, and merges that it takes back."""

from __future__ import annotations

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inflight import Meeting, Undoing, meeting, undoing
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.planner.contract.plan import PlanView

UNDONE_MOST = 20  # merges that a plan is compared with


def look_around(inbox: Inbox, record: PullRecord) -> None:
    """Notes what is in flight; whoever meets this plan, or met it before, looks around too."""
    plan = record.outcome.plan if record.outcome and record.state is PullState.PLANNED else None
    meets = _meetings(inbox, record, plan) if plan else ()
    undoes = _undone(inbox, record, plan) if plan else ()
    if (meets, undoes) != (record.meets, record.undoes):
        inbox.pulls.change(record.repository, record.number, meets=meets, undoes=undoes)
        for number in {each.number for each in (*meets, *record.meets)}:
            inbox.queue.wake(record.repository, number)


def _meetings(inbox: Inbox, record: PullRecord, plan: PlanView) -> tuple[Meeting, ...]:
    others = inbox.pulls.in_state(record.repository, PullState.PLANNED)
    plans = ((each.number, each.outcome.plan) for each in others if each.number != record.number and each.outcome)
    found = (meeting(number, plan, other) for number, other in plans if other)
    return tuple(each for each in found if each)


def _undone(inbox: Inbox, record: PullRecord, plan: PlanView) -> tuple[Undoing, ...]:
    merged = inbox.pulls.in_state(record.repository, PullState.PROMOTED)
    last = sorted(merged, key=lambda each: each.promoted_revision)[-UNDONE_MOST:]
    found = (undoing(each.number, plan, each.outcome.plan) for each in last if each.outcome and each.outcome.plan)
    return tuple(each for each in found if each)
