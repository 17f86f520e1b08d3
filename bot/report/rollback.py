"""What a rollback did to prod, or would do, in words. Pure."""

import re
from collections.abc import Sequence

from mergeplan.bot.report.markdown import clip_text, code, fit_lines, format_days, format_table, inert_text
from mergeplan.bot.report.words import WHOLE_KINDS, view_words
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.base import Spans
from mergeplan.planner.contract.history import BehindRow, RevisionRow, RollbackView
from mergeplan.planner.wording import count_noun

BEHIND_MOST = 3  # tables that are named in a sentence; of more the number is
VIEWS_MOST = 50
LINES_MOST = 6_000  # characters
PULL = re.compile(r"#\d{1,9}")


def rollback_words(view: RollbackView) -> str:
    until = f"{view.until[:16].replace('T', ' ')} UTC"
    first = (
        f"Prod is at revision {view.revision} and would show revision {view.target.revision} again, which it showed "
        f"until {until}. Nothing was changed, and nothing would be computed."
    )
    blocks = [first]
    if view.views:
        rows = [
            [code(change.view), f"{_short_name(change.before)}<br>→ {_short_name(change.after)}"]
            for change in view.views[:VIEWS_MOST]
        ]
        hidden_count = len(view.views) - VIEWS_MOST
        blocks.append(
            format_table(["View", "Table now → after"], rows)
            + (f"\n\n… and {hidden_count} more" if hidden_count > 0 else "")
        )
    else:
        blocks.append("No view would move.")
    if view.behind:
        lines = [f"- {behind_words(gap)}" for gap in view.behind]
        blocks.append("\n".join(["**Rows that prod would lack:**", "", *fit_lines(lines, LINES_MOST)]))
    blocks.append(
        "\n".join(["**Taken back:**", "", *fit_lines([_revision_line(row) for row in view.since], LINES_MOST)])
    )
    return "\n\n".join(blocks)


def rollback_outcome_words(who: str, revision: int, outcome: PlannerOutcome | None) -> str:
    """Return what a rollback did, in sentences; None means that an interrupted run did it."""
    sentences = [f"{code(who)} pointed prod back at the tables of revision {revision}."]
    if outcome and outcome.rollback and not outcome.rollback.views:
        sentences.append("It showed them already.")
    elif outcome and outcome.promotion:
        sentences.append(view_words(outcome.promotion))
    behind = outcome.rollback.behind if outcome and outcome.rollback else ()
    sentences += [behind_words(gap) for gap in behind[:BEHIND_MOST]]
    if len(behind) > BEHIND_MOST:
        sentences.append(f"{count_noun(len(behind) - BEHIND_MOST, 'more table')} lack rows too.")
    return " ".join(sentences)


def behind_words(behind: BehindRow) -> str:
    if behind.kind.upper() in WHOLE_KINDS:
        ends = [timeline[-1][1] for timeline in (behind.held, behind.lacks) if timeline]
        lag = (
            f"was computed up to {ends[0]}, the later table up to {ends[1]}"
            if len(ends) == 2
            else "has no rows that are up to date"
        )
        return (
            f"{code(behind.model)} {lag}; {'the next run computes it again' if behind.due else 'no run is due for it'}."
        )
    if not behind.lacks:
        return f"{code(behind.model)} comes back; the next run computes {format_days(behind.due)}."
    # ISO texts in UTC compare as their moments do
    is_covered = all(any(start <= span[0] and span[1] <= end for start, end in behind.due) for span in behind.lacks)
    next_step = "the next run computes them" if is_covered else _due_words(behind.due)
    days = format_days(behind.lacks)
    return f"{code(behind.model)} lacks up-to-date rows of {days}, which the later table holds; {next_step}."


def _due_words(due: Spans) -> str:
    return f"of them the next run computes what is due of {format_days(due)}" if due else "no run is due for them"


def _short_name(name: str | None) -> str:
    return code(name.rpartition(".")[2]) if name else "nothing"


def _revision_line(row: RevisionRow) -> str:
    at = f"{row.at[:16].replace('T', ' ')} UTC"
    note = row.note if PULL.fullmatch(row.note) else inert_text(clip_text(row.note, 200))
    facts: Sequence[str] = (row.action.replace("_", " "), at, code(row.who) if row.who else "", note)
    return f"- revision {row.revision}: {', '.join(fact for fact in facts if fact)}"
