"""How the age of a table is judged."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mergeplan.planner.checks.freshness import FreshnessStatus, Measure, check_intervals, judge_age
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.metadata import Freshness
from tests.planner.building import NOW, day, model

HOUR = 3_600
LIMITS = Freshness(6 * HOUR, 24 * HOUR)
TABLE = model("s.t")


def judge(hours: float, freshness: Freshness = LIMITS) -> str:
    return str(judge_age(TABLE, freshness, Measure.ROWS, NOW - timedelta(hours=hours), NOW).status)


def test_a_table_is_late_when_it_is_older_than_its_limit() -> None:
    assert [judge(hours) for hours in (0, 6, 6.01, 24, 24.01)] == ["pass", "pass", "warn", "warn", "error"]
    assert [judge(30, Freshness(warn_after=HOUR)), judge(30, Freshness(error_after=HOUR))] == ["warn", "error"]


def test_rows_of_the_future_do_not_make_a_table_fresh() -> None:
    assert [judge(hours) for hours in (-1, -24, -25)] == ["pass", "pass", "warn"]  # a day is that of time zones


@pytest.mark.parametrize(("freshness", "status"), [(LIMITS, "error"), (Freshness(warn_after=HOUR), "warn")])
def test_a_table_that_nothing_has_filled_is_late(freshness: Freshness, status: str) -> None:
    assert str(check_intervals(TABLE, freshness, (), NOW).status) == status
    assert str(judge_age(TABLE, freshness, Measure.ROWS, None, NOW).status) == status
    assert judge_age(TABLE, freshness, Measure.LAST_WRITE, None, NOW).status is FreshnessStatus.UNKNOWN


def test_a_filled_table_is_as_old_as_the_end_of_its_last_interval() -> None:
    filled = (
        Interval(day("2026-01-01"), day("2026-01-04")),
        Interval(day("2026-01-09"), day("2026-01-10")),
    )

    result = check_intervals(TABLE, LIMITS, filled, NOW)

    assert (str(result.status), result.age, result.newest_at) == ("warn", timedelta(hours=12), day("2026-01-10"))
