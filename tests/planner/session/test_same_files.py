"""Tables of two environments over the same files: said to be so, and no row of them is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.session.options import PlanOptions, TableDiffOptions
from mergeplan.planner.session.session import Session

EMPTY = dict.fromkeys(("shown", "apart", "total"), "")
DAILY = """MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day));
SELECT id, day, price{} FROM shop.items WHERE day BETWEEN @start_date AND @end_date"""


@pytest.fixture
def forward(shop: Callable[..., Session], tmp_path: Path) -> Session:
    """A shop whose `dev` shows the table of which prod's has taken over the files, and has a column more."""
    session = shop(**EMPTY | {"daily": DAILY.format("")})
    session.plan().apply()
    session.plan("dev").apply()
    (tmp_path / "models/daily.sql").write_text(DAILY.format(", 7 AS seven"))
    session.plan(options=PlanOptions(forward_only=True)).apply()
    return session


def test_no_row_is_read_of_a_forward_only_change_nor_of_one_table_in_two_environments(
    forward: Session, engine: SparkEngine
) -> None:
    before = engine.jobs()

    (diff,) = forward.table_diff("dev", "prod")
    (alike,) = forward.table_diff("dev", "prod", "shop.items")

    assert engine.jobs() == before
    assert (diff.model, diff.same_files, diff.rows.same, diff.same) == ("shop.daily", True, True, False)
    assert diff.schema.added == (("seven", "int"),)
    assert (alike.same_files, alike.same) == (True, True)
    (counted,) = forward.data_diff("dev")
    assert (counted.same_files, counted.counts, counted.note) == (True, (3, 3), "")
    assert counted.rows is not None
    assert (counted.rows.same, counted.rows.common) == (True, 3)


@pytest.mark.prove
@pytest.mark.parametrize(
    "asked",
    [TableDiffOptions(where="rand() < 0.5"), TableDiffOptions(rename={"price": "seven"}), TableDiffOptions(on=("id",))],
    ids=["a condition", "a renamed column", "a key"],
)
def test_rows_are_read_where_not_all_are_compared_as_they_are(forward: Session, asked: TableDiffOptions) -> None:
    (diff,) = forward.table_diff("dev", "prod", "shop.daily", asked)

    assert diff.same_files is bool(asked.on)


@pytest.mark.prove
def test_rows_are_read_once_a_day_was_computed_anew(forward: Session) -> None:
    forward.restate(["shop.daily"], start="2026-01-02", end="2026-01-02").apply()

    (diff,) = forward.table_diff("dev", "prod")

    assert (diff.same_files, diff.rows.same, diff.rows.counts) == (False, True, (3, 3))
