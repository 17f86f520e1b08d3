"""Laws of time: whatever the stretches, crons, zones and units are."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mergeplan.planner.intervals import (
    UNITS,
    Cron,
    Interval,
    Timeline,
    add_lookback,
    batches,
    build_timeline,
    intersect_intervals,
    merge_intervals,
    partitions,
    subtract_intervals,
)

ZONES = [
    "",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Casablanca",
]
TEXTS = [
    "@hourly",
    "@daily",
    "@weekly",
    "@monthly",
    "@yearly",
    "*/5 * * * *",
    "30 2 * * *",
    "0 5 * * 1-5",
    "15 1,13 * * *",
    "0 0 31 * *",
    "0 0 29 2 *",
]
CRONS = st.builds(Cron, st.sampled_from(TEXTS), st.sampled_from(ZONES), st.sampled_from(["", "hour", "five_minute"]))
MOMENTS = st.datetimes(datetime(2023, 1, 1), datetime(2028, 12, 31), timezones=st.just(UTC))
# the hours in which clocks are put forward and back, where most goes wrong
TURNS = st.sampled_from(
    [
        datetime(2026, 3, 29, tzinfo=UTC),
        datetime(2026, 10, 25, tzinfo=UTC),
        datetime(2026, 3, 8, tzinfo=UTC),
        datetime(2026, 11, 1, tzinfo=UTC),
    ]
)
NEAR_TURNS = st.builds(lambda turn, minutes: turn + timedelta(minutes=minutes), TURNS, st.integers(-120, 1600))
ANY = st.one_of(MOMENTS, NEAR_TURNS)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
PIECES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20)).map(
        lambda pair: Interval(FIRST + timedelta(days=pair[0]), FIRST + timedelta(days=pair[0] + pair[1]))
    ),
    max_size=6,
).map(merge_intervals)


@settings(deadline=None)
@given(PIECES, PIECES, PIECES)
def test_timelines_are_a_boolean_algebra(a: Timeline, b: Timeline, c: Timeline) -> None:
    union = merge_intervals((*a, *b))

    assert merge_intervals(a) == a
    assert union == merge_intervals((*b, *a))
    assert merge_intervals((*subtract_intervals(a, b), *intersect_intervals(a, b))) == a
    assert subtract_intervals(union, b) == subtract_intervals(a, b)
    assert intersect_intervals(a, b) == intersect_intervals(b, a)
    assert intersect_intervals(a, merge_intervals((*b, *c))) == merge_intervals(
        (*intersect_intervals(a, b), *intersect_intervals(a, c))
    )
    assert subtract_intervals(subtract_intervals(a, b), c) == subtract_intervals(a, merge_intervals((*b, *c)))


@settings(deadline=None)
@given(PIECES, PIECES)
def test_no_timeline_has_intervals_that_touch(a: Timeline, b: Timeline) -> None:
    for result in (merge_intervals((*a, *b)), subtract_intervals(a, b), intersect_intervals(a, b)):
        assert all(left.end < right.start for left, right in pairwise(result))


@settings(deadline=None)
@example(Cron("30 2 * * *", "Europe/Berlin"), datetime(2026, 10, 25, 1, 10, tzinfo=UTC))  # 2:10 for the second time
@example(Cron("15 1,13 * * *", "America/New_York"), datetime(2026, 11, 1, 6, tzinfo=UTC))
@given(CRONS, ANY)
def test_the_last_beat_is_not_later_and_the_next_is(cron: Cron, at: datetime) -> None:
    floor, after = cron.floor(at), cron.next_tick(at)

    assert floor <= at < after
    assert cron.floor(floor) == floor
    assert cron.floor(after) == after
    assert cron.floor(after - timedelta(microseconds=1)) == floor


@settings(deadline=None)
@given(CRONS, ANY, st.integers(0, 3000))
def test_beats_and_dues_do_not_go_backwards(cron: Cron, at: datetime, minutes: int) -> None:
    later = at + timedelta(minutes=minutes)

    assert cron.floor(at) <= cron.floor(later)
    assert cron.due(at) <= cron.due(later)
    assert cron.due(at) <= at


@settings(deadline=None)
@given(st.sampled_from(ZONES[1:]), st.one_of(NEAR_TURNS, MOMENTS))
def test_a_daily_beat_is_the_local_midnight_or_when_the_clock_first_shows_a_later_hour(zone: str, at: datetime) -> None:
    local = Cron("@daily", zone).floor(at).astimezone(ZoneInfo(zone))

    assert local.date() == at.astimezone(ZoneInfo(zone)).date()
    assert (local - timedelta(seconds=1)).astimezone(UTC).astimezone(ZoneInfo(zone)).date() <= local.date()
    assert local.hour <= 1


@settings(deadline=None)
@given(CRONS, ANY)
def test_units_cut_all_time_without_overlap(cron: Cron, at: datetime) -> None:
    start, following = cron.cut(at), cron.next_cut(at)

    assert start <= at < following
    assert cron.cut(start) == start
    assert cron.cut(following) == following
    assert cron.cut(following - timedelta(microseconds=1)) == start
    assert cron.ceiling(at) in (start, following)
    assert at <= cron.ceiling(at)


@settings(deadline=None)
@given(CRONS, MOMENTS, st.integers(1, 9))
def test_the_cuts_of_a_stretch_are_the_starts_of_its_units(cron: Cron, at: datetime, count: int) -> None:
    edges = [cron.cut(at)]
    for _ in range(count):
        edges.append(cron.next_cut(edges[-1]))

    assert list(cron.cuts(Interval(edges[0], edges[-1]))) == edges[:-1]


@settings(deadline=None)
@given(CRONS, MOMENTS, st.integers(1, 20), st.one_of(st.none(), st.integers(1, 5)))
def test_batches_are_the_timeline_in_order_in_whole_units(
    cron: Cron, at: datetime, count: int, size: int | None
) -> None:
    start = end = cron.cut(at)
    for _ in range(count):
        end = cron.next_cut(end)

    cut = batches(cron, build_timeline(start, end), size)

    assert (cut[0].start, cut[-1].end) == (start, end)
    assert all(left.end == right.start for left, right in pairwise(cut))
    assert all(cron.cut(part.start) == part.start for part in cut)
    assert all(len(list(cron.cuts(part))) <= (size or count) for part in cut)


@settings(deadline=None)
@given(CRONS, MOMENTS, st.integers(1, 5), st.integers(0, 4), st.integers(0, 4))
def test_a_lookback_covers_what_is_missing_and_grows_with_its_length(
    cron: Cron, at: datetime, count: int, shorter: int, more: int
) -> None:
    start = end = cron.cut(at)
    for _ in range(count):
        end = cron.next_cut(end)
    earliest = cron.cut(start - timedelta(days=2))

    one, other = (add_lookback(cron, build_timeline(start, end), n, earliest) for n in (shorter, shorter + more))

    assert subtract_intervals(build_timeline(start, end), one) == ()
    assert subtract_intervals(one, other) == ()
    assert other[0].start >= min(earliest, start)
    assert len(list(cron.cuts(Interval(other[0].start, start + timedelta(microseconds=1))))) <= shorter + more + 1


@settings(deadline=None)
@given(st.sampled_from([*UNITS]), MOMENTS, st.integers(1, 12))
def test_the_partitions_of_touching_stretches_are_those_of_both(unit: str, at: datetime, count: int) -> None:
    cron, edges = Cron("@daily", given_unit=unit), [Cron("@daily", given_unit=unit).cut(at)]
    for _ in range(min(count, 3) if UNITS[unit] > UNITS["day"] else count):
        edges.append(cron.next_cut(edges[-1]))
    middle = edges[len(edges) // 2]
    whole = partitions(Interval(edges[0], edges[-1]), UNITS[unit])

    halves = [
        partitions(part, UNITS[unit])
        for one in (edges[0], middle)
        for part in build_timeline(one, edges[-1] if one == middle else middle)
    ]

    assert tuple(period for half in halves for period in half) == whole
    assert len(set(whole)) == len(whole)
