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
    """The open pull requests that meet this one, and the merges that it takes back; nothing for none."""
    lines = [
        *(_undoing(entry) for entry in record.nearby.undoes),
        *(_meeting(entry) for entry in record.nearby.meets[:MEETINGS_MOST]),
    ]
    if len(record.nearby.meets) > MEETINGS_MOST:
        lines.append(
            f"- {count_noun(len(record.nearby.meets) - MEETINGS_MOST, 'more pull request')} change the same models."
        )
    return ["\n".join(["**Also in flight**", "", *lines])] if lines else []


def _undoing(each: Undoing) -> str:
    if each.whole:
        return f"- ↩️ It reverts #{each.number}: {_some(each.models)} become what they were before."
    return f"- ↩️ It reverts #{each.number} in {_some(each.models)}."


def _meeting(each: Meeting) -> str:
    shared = []
    if each.edited:
        where = f" (the same columns: {_some(each.columns)})" if each.columns else ""
        shared.append(f"edits {_some(each.edited)} too{where}")
    if each.computed:
        shared.append(f"changes {_some(each.computed)} too")
    then = "Whichever is merged second is planned again."
    return f"- #{each.number} {' and '.join(shared)}. {then}"


def _some(names: Sequence[str]) -> str:
    return first_names([code(name) for name in names], NAMES_MOST)
