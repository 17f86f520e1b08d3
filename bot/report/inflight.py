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
    reverts = ["\n".join(map(_undoing_line, record.nearby.undoes))] if record.nearby.undoes else []
    lines = [_meeting_line(entry) for entry in record.nearby.meets[:MEETINGS_MOST]]
    if len(record.nearby.meets) > MEETINGS_MOST:
        lines.append(
            f"- {count_noun(len(record.nearby.meets) - MEETINGS_MOST, 'more pull request')} change the same models."
        )
    meetings = ["\n".join(["**Open pull requests that change the same models**", "", *lines])] if lines else []
    return reverts + meetings


def _undoing_line(undoing: Undoing) -> str:
    if undoing.whole:
        verb = "is as it was" if len(undoing.models) == 1 else "are as they were"
        return f"- ↩️ This reverts #{undoing.number}: {_join_names(undoing.models)} {verb} before that merge."
    return f"- ↩️ This reverts #{undoing.number} in {_join_names(undoing.models)}."


def _meeting_line(meeting: Meeting) -> str:
    shared = []
    if meeting.edited:
        where = f" (the same columns: {_join_names(meeting.columns)})" if meeting.columns else ""
        shared.append(f"edits {_join_names(meeting.edited)} too{where}")
    if meeting.computed:
        shared.append(f"changes {_join_names(meeting.computed)} too")
    consequence = "The one that is merged second is planned again."
    return f"- #{meeting.number} {' and '.join(shared)}. {consequence}"


def _join_names(names: Sequence[str]) -> str:
    return first_names([code(name) for name in names], NAMES_MOST)
