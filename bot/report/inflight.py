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
    lines = [
        *(_undoing_line(entry) for entry in record.nearby.undoes),
        *(_meeting_line(entry) for entry in record.nearby.meets[:MEETINGS_MOST]),
    ]
    if len(record.nearby.meets) > MEETINGS_MOST:
        lines.append(
            f"- {count_noun(len(record.nearby.meets) - MEETINGS_MOST, 'more pull request')} change the same models."
        )
    return ["\n".join(["**Also in flight**", "", *lines])] if lines else []


def _undoing_line(undoing: Undoing) -> str:
    if undoing.whole:
        return f"- ↩️ It reverts #{undoing.number}: {_join_names(undoing.models)} become what they were before."
    return f"- ↩️ It reverts #{undoing.number} in {_join_names(undoing.models)}."


def _meeting_line(meeting: Meeting) -> str:
    shared = []
    if meeting.edited:
        where = f" (the same columns: {_join_names(meeting.columns)})" if meeting.columns else ""
        shared.append(f"edits {_join_names(meeting.edited)} too{where}")
    if meeting.computed:
        shared.append(f"changes {_join_names(meeting.computed)} too")
    consequence = "Whichever is merged second is planned again."
    return f"- #{meeting.number} {' and '.join(shared)}. {consequence}"


def _join_names(names: Sequence[str]) -> str:
    return first_names([code(name) for name in names], NAMES_MOST)
