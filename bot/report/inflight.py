"""What else is in flight, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mergeplan.bot.inflight import Meeting, Undoing
from mergeplan.bot.records import PullRecord
from mergeplan.bot.report.markdown import code
from mergeplan.planner.wording import count_noun, first_names

MEETINGS_MOST = 8
NAMES_MOST = 4


def inflight_block(record: PullRecord) -> list[str]:
    """Return the open pull requests that meet this one, and the merges that it takes back."""
    lines = [
        *(_undoing(entry) for entry in record.nearby.undoes),
        *(_meeting(entry) for entry in record.nearby.meets[:MEETINGS_MOST]),
    ]
    if len(record.nearby.meets) > MEETINGS_MOST:
        lines.append(
            f"- {count_noun(len(record.nearby.meets) - MEETINGS_MOST, 'more pull request')} change the same models."
        )
    return ["\n".join(["**Also in flight**", "", *lines])] if lines else []


def _undoing(undoing: Undoing) -> str:
    if undoing.whole:
        return f"- ↩️ It reverts #{undoing.number}: {_some(undoing.models)} become what they were before."
    return f"- ↩️ It reverts #{undoing.number} in {_some(undoing.models)}."


def _meeting(meeting: Meeting) -> str:
    shared = []
    if meeting.edited:
        where = f" (the same columns: {_some(meeting.columns)})" if meeting.columns else ""
        shared.append(f"edits {_some(meeting.edited)} too{where}")
    if meeting.computed:
        shared.append(f"changes {_some(meeting.computed)} too")
    consequence = "Whichever is merged second is planned again."
    return f"- #{meeting.number} {' and '.join(shared)}. {consequence}"


def _some(names: Sequence[str]) -> str:
    return first_names([code(name) for name in names], NAMES_MOST)
