from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.intervals import (
    Cron,
    Interval,
    add_lookback,
    batches,
    cron_error,
    merge_intervals,
    subtract_intervals,
)

from .building import day

HOURS = st.integers(0, 200)
INTERVALS = st.lists(
    st.tuples(HOURS, st.integers(1, 40)).map(
        lambda pair: Interval(
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=pair[0]),
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=pair[0] + pair[1]),
        )
    ),
    max_size=8,
)


def hours(timeline: object) -> set[datetime]:
    return {
        interval.start + timedelta(hours=n)
        for interval in timeline  # type: ignore[attr-defined]
        for n in range(int((interval.end - interval.start).total_seconds() // 3600))
    }


@given(INTERVALS)
def test_merging_keeps_the_same_time_in_intervals_that_do_not_touch(intervals: list[Interval]) -> None:
    merged = merge_intervals(intervals)

    assert hours(merged) == hours(intervals)
    assert all(left.end < right.start for left, right in pairwise(merged))


@given(INTERVALS, INTERVALS)
def test_what_is_left_after_subtracting_lies_in_the_whole_and_not_in_what_was_taken(
    whole: list[Interval], taken: list[Interval]
) -> None:
    assert hours(subtract_intervals(whole, taken)) == hours(whole) - hours(taken)


@given(INTERVALS, st.integers(1, 5))
def test_batches_cover_the_timeline_without_overlap(intervals: list[Interval], size: int) -> None:
    timeline = merge_intervals(intervals)

    cut = batches(Cron("@hourly"), timeline, size)

    assert merge_intervals(cut) == timeline
    assert sum(len(hours([batch])) for batch in cut) == len(hours(timeline))
    assert all(len(hours([batch])) <= size for batch in cut)


def test_without_a_batch_size_each_interval_is_one_batch() -> None:
    timeline = (Interval(day("2026-01-01"), day("2026-03-01")),)

    assert batches(Cron("@daily"), timeline, None) == timeline


def test_an_interval_reads_with_its_last_day_inside() -> None:
    assert str(Interval(day("2020-01-01"), day("2020-01-08"))) == "2020-01-01 - 2020-01-07"


def test_a_lookback_reaches_back_but_not_before_the_start() -> None:
    missing = (Interval(day("2026-01-05"), day("2026-01-06")),)

    assert add_lookback(Cron("@daily"), missing, 2, day("2026-01-04"))[0].start == day("2026-01-04")
    assert add_lookback(Cron("@daily"), missing, 2, day("2026-01-01"))[0].start == day("2026-01-03")


def test_a_monthly_beat_falls_on_the_first() -> None:
    assert Cron("@monthly").floor(day("2024-02-29")) == day("2024-02-01")
    assert Cron("@monthly").next_tick(day("2024-02-01")) == day("2024-03-01")


def test_a_beat_is_its_own_floor() -> None:
    assert Cron("@daily").floor(day("2026-01-10")) == day("2026-01-10")


def test_a_cron_that_cannot_be_read_says_why() -> None:
    assert cron_error("@daily") is None
    assert cron_error("0 0 31 2 *")
    assert cron_error("every day")


def test_a_cron_within_the_day_still_computes_whole_days() -> None:
    at_five = Cron("0 5 * * *")

    assert at_five.due(datetime(2026, 1, 10, 4, tzinfo=UTC)) == day("2026-01-09")
    assert at_five.due(datetime(2026, 1, 10, 5, tzinfo=UTC)) == day("2026-01-10")


def test_a_weekly_cron_counts_its_time_in_days_from_the_very_start() -> None:
    weekly, wednesday = Cron("@weekly"), day("2020-01-01")

    assert weekly.cut(wednesday) == wednesday
    assert len(list(weekly.cuts(Interval(wednesday, day("2020-01-08"))))) == 7


def test_a_monthly_cron_counts_its_time_in_months() -> None:
    assert list(Cron("@monthly").cuts(Interval(day("2024-01-15"), day("2024-04-01")))) == [
        day("2024-02-01"),
        day("2024-03-01"),
    ]


@pytest.mark.parametrize(
    ("cron", "zone", "gap_hours", "age_hours"),
    [
        ("@hourly", "", 1, 1),
        ("@daily", "", 24, 24),
        ("0 6 * * *", "", 24, 30),  # a run at six fills up to midnight
        ("0 7 * * 1-5", "", 72, 79),  # over a weekend
        ("0 8-18 * * *", "Europe/Berlin", 14, 14),
        ("0 0 1 * *", "", 31 * 24, 31 * 24),
        ("0 0 1 1 *", "", 366 * 24, 366 * 24),
        ("*/5 * * * *", "", 1 / 12, 1 / 12),
    ],
)
def test_the_longest_time_between_two_runs(cron: str, zone: str, gap_hours: float, age_hours: float) -> None:
    schedule = Cron(cron, zone)

    assert schedule.longest_gap == timedelta(hours=gap_hours)
    assert schedule.longest_age == timedelta(hours=age_hours)
