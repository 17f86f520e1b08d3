"""A data diff: what an environment's changes do to the rows, over the time that both tables hold, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.options import DataDiffOptions, PlanOptions
from mergeplan.planner.session.session import Session

WHOLE = "MODEL (name shop.total, kind FULL{});\nSELECT a AS id, b AS email FROM VALUES {} AS t(a, b)"
GRAIN, TAGGED = ", grain id", ", grain id, tags (pii)"
BEFORE, AFTER = "(1, 'ann@x.io'), (2, 'bob@x.io'), (3, 'eve@x.io')", "(1, 'ann@x.io'), (2, 'bo@x.io'), (4, 'joe@x.io')"
DAILY = """MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day), grain id);
SELECT id, day, price {} AS price FROM shop.items WHERE day BETWEEN @start_date AND @end_date"""
SUM = "MODEL (name shop.sum, kind FULL);\nSELECT sum(price) AS price FROM shop.daily"
EMPTY = dict.fromkeys(("shown", "apart", "total", "daily", "items"), "")


def edit(folder: Path, name: str, text: str) -> None:
    (folder / "models" / name).write_text(text)


@pytest.fixture
def total(shop: Callable[..., Session], tmp_path: Path) -> Session:
    """A shop whose only model has other rows in `dev`."""
    session = shop(**EMPTY | {"total": WHOLE.format(GRAIN, BEFORE)})
    session.plan().apply()
    edit(tmp_path, "total.sql", WHOLE.format(GRAIN, AFTER))
    session.plan("dev").apply()
    return session


def test_rows_are_counted_by_key_and_shown_only_where_that_is_allowed(total: Session) -> None:
    """Behaviours 15, 47: numbers alone, or some rows of which only named columns are readable."""
    (counted,) = total.data_diff("dev")
    (shown,) = total.data_diff("dev", DataDiffOptions((("*", "sample"),), unmasked=("ID",)))
    (off,) = total.data_diff("dev", DataDiffOptions((("*", "sample"), ("shop.*", "off"))))

    assert counted.rows is not None
    assert (counted.key, counted.counts, counted.rows.only) == (("id",), (3, 3), (1, 1))
    assert (counted.rows.changed, counted.rows.columns, counted.samples.changed.rows) == (1, (("email", 1),), ())
    assert shown.samples.changed.rows == ((2, "b*** (8)", "b*** (7)"),)
    assert shown.samples.only_second.rows == ((4, "j*** (8)"),)
    assert (off.rows, off.counts, off.note) == (None, None, "not compared: `data_diff` is off for it")


@pytest.mark.prove
def test_a_condition_narrows_it_and_does_nothing_else(total: Session) -> None:
    (difference,) = listed = total.data_diff("dev", DataDiffOptions(models=("shop.total",), where="id < 3"))

    assert difference.rows is not None
    assert (difference.counts, difference.rows.only, difference.rows.changed) == ((2, 2), (0, 0), 1)
    assert "<td>1 changed</td>" in listed._repr_html_()
    for where in ("id IN (SELECT id FROM shop.total)", "id = 1; DROP TABLE x", "reflect('a', 'b') = 1", "id"):
        with pytest.raises(RequestError, match=r"(?i)condition"):
            total.data_diff("dev", DataDiffOptions(where=where))
    with pytest.raises(RequestError, match=r"no column `emall`.*email"):
        total.data_diff("dev", DataDiffOptions(where="emall = 'x'"))
    with pytest.raises(RequestError, match=r"`shop\.sum` has no table here"):
        total.data_diff("dev", DataDiffOptions(models=("shop.sum",)))


def test_what_it_may_cost_is_bounded_and_what_it_did_not_reach_is_told(total: Session) -> None:
    (many,) = total.data_diff("dev", DataDiffOptions(rows=5))
    (late,) = total.data_diff("dev", DataDiffOptions(seconds=0))

    assert (many.counts, many.rows, many.note) == (
        (3, 3),
        None,
        "not compared: more than 5 rows in both tables together",
    )
    assert (late.rows, late.note) == (None, "not compared: the 0 seconds for comparing rows were over")
    assert total.fetch("SELECT 1 AS x").rows == ((1,),)  # Spark is as it was


def test_a_tag_taken_away_shows_no_more_than_before(shop: Callable[..., Session], tmp_path: Path) -> None:
    """Behaviour 15: the rule that shows less wins."""
    session = shop(**EMPTY | {"total": WHOLE.format(TAGGED, BEFORE)})
    session.plan().apply()
    edit(tmp_path, "total.sql", WHOLE.format(GRAIN, AFTER))
    session.plan("dev").apply()

    (difference,) = session.data_diff("dev", DataDiffOptions((("*", "sample"), ("tag:pii", "counts"))))

    assert difference.rows is not None
    assert (difference.rows.changed, difference.samples.changed.rows) == (1, ())


@pytest.mark.prove
def test_only_days_that_both_hold_are_compared(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(shown="", apart="", total="", daily=DAILY.format("* 1"), sum=SUM)
    session.plan().apply()
    edit(tmp_path, "daily.sql", DAILY.format("* 2"))
    session.plan("dev", PlanOptions(start="2026-01-03")).apply()

    daily, summed = session.data_diff("dev")

    assert daily.rows is not None
    assert [str(day) for day in daily.days] == ["2026-01-03 - 2026-01-05"]
    assert (daily.counts, daily.rows.only, daily.rows.changed, daily.rows.columns) == (
        (1, 1), (0, 0), 1, (("price", 1), ("day", 0)),
    )  # fmt: skip
    assert summed.note == "its inputs hold fewer days here than in prod; whole rows: no `grain` is declared"


def test_tables_known_to_hold_the_same_rows_are_not_read(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(
        shown="",
        apart="",
        total="",
        daily=DAILY.format("* 1"),
        sum="MODEL (name shop.sum, kind FULL);\nSELECT * FROM shop.daily",
    )
    session.plan().apply()
    edit(tmp_path, "daily.sql", DAILY.format("+ 0 * id"))
    session.plan("dev").apply()

    (daily,) = session.data_diff("dev", DataDiffOptions(models=("shop.daily",)))

    assert daily.rows is not None
    assert (daily.counts, daily.rows.common, daily.rows.same, daily.seconds) == ((3, 3), 3, True, 0.0)
    assert daily.note == "by hashes of their rows"
