"""What a rollback did or would do, in words."""

from __future__ import annotations

import pytest

from mergeplan.bot.report.rollback import behind_words, rollback_outcome_words, rollback_words
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.history import BehindRow, MovedViewRow, RevisionRow, RollbackView

DAYS = BehindRow(
    model="s.a",
    kind="INCREMENTAL_BY_TIME_RANGE",
    table="t",
    held=(("2026-01-01", "2026-01-05"),),
    lacks=(("2026-01-05", "2026-01-09"),),
    due=(("2026-01-05", "2026-01-10"),),
)
WHOLE = BehindRow(
    model="s.f",
    kind="FULL",
    table="t",
    held=(("1970-01-01", "2026-01-05"),),
    lacks=(("2026-01-05", "2026-01-09"),),
    due=(("1970-01-01", "2026-01-10"),),
)
ROW = RevisionRow(revision=1, action="promoted", at="2026-01-07T10:00:00+00:00")


@pytest.mark.parametrize(
    ("behind", "words"),
    [
        (
            DAYS,
            "`s.a` lacks up-to-date rows of 4 days, 2026-01-05 to 2026-01-08, which the later table holds; "
            "the next run computes them.",
        ),
        (
            DAYS.model_copy(update={"due": (("2026-01-07", "2026-01-10"),)}),
            "`s.a` lacks up-to-date rows of 4 days, 2026-01-05 to 2026-01-08, which the later table holds; "
            "of them the next run computes "
            "what is due of 3 days, 2026-01-07 to 2026-01-09.",
        ),
        (
            DAYS.model_copy(update={"due": ()}),
            "`s.a` lacks up-to-date rows of 4 days, 2026-01-05 to 2026-01-08, which the later table holds; "
            "no run is due for them.",
        ),
        (
            DAYS.model_copy(update={"lacks": ()}),
            "`s.a` comes back; the next run computes 5 days, 2026-01-05 to 2026-01-09.",
        ),
        (
            WHOLE,
            "`s.f` was computed up to 2026-01-05, the later table up to 2026-01-09; the next run computes it again.",
        ),
        (
            WHOLE.model_copy(update={"held": ()}),
            "`s.f` has no rows that are up to date; the next run computes it again.",
        ),
    ],
)
def test_what_a_table_lacks_and_what_a_run_computes_of_it(behind: BehindRow, words: str) -> None:
    assert behind_words(behind) == words


def test_a_view_that_goes_and_one_that_comes_back_and_foreign_words_stay_harmless() -> None:
    since = ROW.model_copy(update={"revision": 2, "who": "eve`s", "note": "@team <b>now</b>"})
    views = (
        MovedViewRow(model="s.n", view="s.n", before="p.n__1", after=None),
        MovedViewRow(model="s.o", view="s.o", before=None, after="p.o__1"),
    )
    view = RollbackView(environment="prod", revision=2, target=ROW, until=ROW.at, since=(since,), views=views)

    text = rollback_words(view)

    assert "| `s.n` | `n__1`<br>→ nothing |\n| `s.o` | nothing<br>→ `o__1` |" in text
    assert "@team" not in text and "<b>" not in text


def test_of_many_tables_that_are_behind_some_are_named_and_the_others_counted() -> None:
    back = RollbackView(environment="prod", revision=2, target=ROW, until=ROW.at, behind=(DAYS,) * 5)

    words = rollback_outcome_words("ann", 1, PlannerOutcome(0, True, rollback=back))

    assert (words.count("`s.a` lacks"), "2 more tables lack rows too." in words) == (3, True)
