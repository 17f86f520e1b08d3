"""The surroundings of a pull request in words: other open ones, reverts, and its stack. Pure."""

from collections.abc import Sequence

from mergeplan.bot.inflight import Meeting, Undoing
from mergeplan.bot.pull_parts import LayerChange
from mergeplan.bot.records import AFTER_MERGE, PullRecord, PullState
from mergeplan.bot.report.markdown import NAMES, code, details_block, fence, format_table, inert_text, tag_text
from mergeplan.bot.report.rows import rows_blocks, rows_title
from mergeplan.bot.results import unpack_outcome
from mergeplan.planner.wording import count_noun, first_names

MEETINGS_MOST = 8
NAMES_MOST = 4
DIFFS_MAX = 6  # that are shown of one layer
DIFF_ROOM = 3_000


def inflight_block(record: PullRecord) -> list[str]:
    reverts = ["\n".join(map(_undoing_line, record.nearby.undoes))] if record.nearby.undoes else []
    meets = [entry for entry in record.nearby.meets if entry.number not in record.stack.line]
    lines = [_meeting_line(entry) for entry in meets[:MEETINGS_MOST]]
    if len(meets) > MEETINGS_MOST:
        lines.append(f"- {count_noun(len(meets) - MEETINGS_MOST, 'more pull request')} change the same models.")
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


# --- the stack ---


def below_name(record: PullRecord) -> str:
    """Return the layer below, such as `#7`; '' for a pull request into the prod branch."""
    layers = record.stack.planned_on.layers
    return f"#{layers[-1].number}" if layers else ""


def is_behind(record: PullRecord) -> bool:
    """Return True for a layer whose branch lacks commits of those below: its merge would not give the planned tree."""
    return bool(record.stack.planned_on.layers) and not record.stack.is_level


def behind_words(record: PullRecord) -> str:
    return (
        f"{below_name(record)} has commits that this branch lacks, so this plan is of both together, and a merge of "
        f"this branch alone would not give it. Rebase the stack, or merge the branch of {below_name(record)} into it."
    )


def stack_promise(record: PullRecord, promise: str) -> str:
    """Return what the merge of a layer does, which is never one of it alone; the promise of any other as it is."""
    if not (below := below_name(record)):
        return promise
    words = promise.replace("Merging", "Merged up to here, the stack", 1)
    return f"Its merge comes after that of {below}, or with it in one. {words}"


def is_waiting_for_layer(record: PullRecord) -> bool:
    return record.state is PullState.WAITING and record.stack.waits_since > 0


def layer_wait_words(record: PullRecord) -> str:
    return f"{below_name(record)}, the layer below, is planned first. This one is planned on it at once afterwards."


def stack_blocks(record: PullRecord) -> list[str]:
    """Return the stack, and of a layer what it changes itself; nothing for a pull request in no stack."""
    line = record.stack.line
    if len(line) < 2 or record.number not in line or record.state in AFTER_MERGE or record.state is PullState.CLOSED:
        return []
    place = f"**Layer {line.index(record.number) + 1} of {len(line)} of a stack**, the lowest first:"
    rows = [
        f"{position}. #{number}" + (" ← this one" if number == record.number else "")
        for position, number in enumerate(line, start=1)
    ]
    return ["\n".join([place, "", *rows]), *_layer_blocks(record)]


def _layer_blocks(record: PullRecord) -> list[str]:
    if not record.stack.planned_on.layers or record.state is not PullState.PLANNED:
        return []
    below, changes = below_name(record), record.stack.changes
    rest = "All else in this comment is what the layers up to this one change in prod together."
    if changes is None:
        return [f"What this layer changes itself is shown when {below} has a plan that is built. {rest}"]
    if not changes:
        return [f"**This layer changes no model** of what {below} gives. {rest}"]
    rows = (
        (code(change.model), NAMES.get(change.category, change.category), inert_text(change.reason))
        for change in changes
    )
    table = format_table(("Model", "Change", "Why"), rows)
    title = f"**This layer changes {count_noun(len(changes), 'model')}** of what {below} gives:"
    return [f"{title}\n\n{table}", *_row_blocks(record), *_diff_blocks(changes), rest]


def _row_blocks(record: PullRecord) -> list[str]:
    outcome = unpack_outcome(record.stack.rows)
    blocks, title = rows_blocks(outcome), rows_title(outcome)
    return [details_block(f"This layer's rows: {title}", "\n\n".join(blocks))] if blocks and title else []


def _diff_blocks(changes: tuple[LayerChange, ...]) -> list[str]:
    titles = {
        change: f"This layer's diff of <code>{tag_text(change.model)}</code>" for change in changes if change.diff
    }
    diffs = [(title, fence(change.diff, "diff", DIFF_ROOM)) for change, title in titles.items()]
    return [details_block(title, diff) for title, diff in diffs[:DIFFS_MAX]]
