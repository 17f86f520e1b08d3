"""The pull request that reverts a merge once prod went back: its text, and the sentences about it. Pure."""

from collections.abc import Sequence

from mergeplan.bot.records import PullRecord
from mergeplan.bot.report.markdown import MARKER, clip_text, code, inert_text
from mergeplan.planner.wording import join_names


def revert_body(record: PullRecord, branch: str) -> str:
    back, of = record.rollback.reversal, f"#{record.number}"
    blocks = [
        f"{MARKER}:revert:{record.number} -->",
        f"Reverts {of}, which {code(back.who)} took back in prod with `/rollback`: prod shows the tables of revision "
        f"{back.revision} again, and {code(branch)} still holds the change.",
    ]
    if back.others:
        blocks.append(
            f"**The rollback took back {_join_numbers(back.others)} too, and {code(branch)} holds that as well.** "
            "This pull request does not revert it: merged alone, it brings it to prod again. See the plan."
        )
    else:
        blocks.append(
            f"Merging this makes {code(branch)} what prod shows already: nothing is computed, and no view moves. The "
            f"plan of this pull request confirms that. Until then the next promotion brings {of} back."
        )
    if record.place.project:
        blocks.append(
            f"It is about the project {code(record.place.project)}. The changes of {of} in other projects of this "
            "repository are reverted too: each of them plans that here."
        )
    return "\n\n".join(blocks)


def revert_words(record: PullRecord) -> str:
    """Return what the branch holds of a merge that was rolled back, and what to do about it."""
    back, holds = record.rollback.reversal, "**The branch still holds this change**"
    if back.to_open:
        return f"{holds}: a pull request that reverts it is being opened."
    too = f" {_join_numbers(back.others)} went with it: revert that too." if back.others else ""
    if back.number:
        all_of_it = " in other projects too" if record.place.project else ""
        return f"{holds}: merge #{back.number}, which reverts it{all_of_it}, or the next promotion brings it back.{too}"
    failure_text = f" No pull request was opened: {inert_text(clip_text(back.why, 300))}" if back.why else ""
    return f"{holds}: press *Revert* on this pull request, or the next promotion brings it back.{too}{failure_text}"


def _join_numbers(numbers: Sequence[int]) -> str:
    return join_names([f"#{number}" for number in numbers])
