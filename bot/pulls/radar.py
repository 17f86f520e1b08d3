"""What else is in flight around a pull request: open ones that meet it, and merges that it takes back."""

from dataclasses import replace

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inflight import Meeting, Undoing, find_meeting, find_undoing
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.planner.contract.plan import PlanView

UNDONE_MOST = 20  # merges that a plan is compared with
LOOKED_THROUGH = 100  # merged pull requests among which these are found


def look_around(inbox: Inbox, record: PullRecord) -> None:
    """Store what is in flight; pull requests that meet this plan, or met it before, look around too."""
    plan = record.outcome.plan if record.outcome and record.state is PullState.PLANNED else None
    meets = _find_meetings(inbox, record, plan) if plan else ()
    undoes = _find_undoings(inbox, record, plan) if plan else ()
    if (meets, undoes) != (record.nearby.meets, record.nearby.undoes):
        inbox.pulls.update(
            record.repository,
            record.number,
            lambda record: replace(record, nearby=replace(record.nearby, meets=meets, undoes=undoes)),
        )
        for number in {meet.number for meet in (*meets, *record.nearby.meets)}:
            inbox.queue.wake(record.repository, number)


def _find_meetings(inbox: Inbox, record: PullRecord, plan: PlanView) -> tuple[Meeting, ...]:
    open_pulls = inbox.pulls.filter_by_state(record.repository, PullState.PLANNED)
    plans = ((pull.number, pull.outcome.plan) for pull in open_pulls if pull.number != record.number and pull.outcome)
    meetings = (find_meeting(number, plan, other_plan) for number, other_plan in plans if other_plan)
    return tuple(encounter for encounter in meetings if encounter)


def _find_undoings(inbox: Inbox, record: PullRecord, plan: PlanView) -> tuple[Undoing, ...]:
    merged = inbox.pulls.last_promoted(record.repository, LOOKED_THROUGH)
    last = sorted(merged, key=lambda pull: pull.promotion.revision)[-UNDONE_MOST:]
    undoings = (
        find_undoing(pull.number, plan, pull.outcome.plan) for pull in last if pull.outcome and pull.outcome.plan
    )
    return tuple(undo for undo in undoings if undo)
