"""Half-open intervals [start, end) in UTC, and the cron ticks that bound them.

All arithmetic of a plan's time is here: which intervals are loaded, which are missing, how they are split into batches.
An `Interval` never holds its end; a `Timeline` is a sorted tuple of intervals that neither touch nor overlap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
UNITS = {"year": 31_536_000, "month": 2_592_000, "day": 86_400, "hour": 3_600, "half_hour": 1_800,
         "quarter_hour": 900, "five_minute": 300}  # fmt: skip
FIRST_LOOK = datetime(2026, 1, 1, tzinfo=UTC)  # at the ticks of a cron, for the longest time between two of them
LOOKED_AT = timedelta(days=33)  # longer than a month


@dataclass(frozen=True, order=True)
class Interval:
    """The time from `start` up to but not including `end`, both aware and in UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"an interval must end after it starts: {self.start} .. {self.end}")

    def __str__(self) -> str:
        """Return the text for users: `2020-01-01 - 2020-01-07` with the last day inside, times only if they matter."""
        last = self.end - timedelta(seconds=1)
        if self.start.time() == self.end.time() == datetime.min.time():
            return f"{self.start:%Y-%m-%d} - {last:%Y-%m-%d}"
        return f"{self.start:%Y-%m-%d %H:%M:%S} - {last:%Y-%m-%d %H:%M:%S}"


def partitions(interval: Interval, unit_seconds: int) -> tuple[str, ...]:
    """Return the partitions of a time-partitioned table that an interval covers, as the text of their starts.

    The longest is a day.

    >>> partitions(Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)), 86_400)
    ('2026-01-01', '2026-01-02')
    """
    step = timedelta(seconds=min(unit_seconds, UNITS["day"]))
    form = "%Y-%m-%d" if unit_seconds >= UNITS["day"] else "%Y-%m-%d %H:%M:%S"
    starts = (interval.start + number * step for number in range((interval.end - interval.start) // step))
    return tuple(start.strftime(form) for start in starts)


Timeline = tuple[Interval, ...]


@dataclass(frozen=True)
class Cron:
    """The schedule of a model: a cron expression, or `@daily` and the like, in the time zone `tz` ('': UTC).

    Intervals are in UTC, in units of `given_unit` ('': the largest that fits between the cron's ticks).
    """

    text: str
    tz: str = ""
    given_unit: str = ""

    def floor(self, at: datetime) -> datetime:
        """Return the last tick at or before `at`, in UTC."""
        return _last_tick(self.text, self.tz, at)

    def next_tick(self, at: datetime) -> datetime:
        """Return the first tick after `at`, in UTC."""
        return _next_tick(self.text, self.tz, at)

    def due(self, at: datetime) -> datetime:
        """Return the time up to which a table should be loaded: the complete units before the last tick."""
        return self.cut(self.floor(at))

    def cut(self, at: datetime) -> datetime:
        """Return the start of the unit that contains `at`: a cron at five o'clock still computes whole days."""
        if self.unit == "year":
            return at.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
        if self.unit == "month":
            return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        seconds = UNITS[self.unit]
        return datetime.fromtimestamp(at.timestamp() // seconds * seconds, UTC)

    def cuts(self, interval: Interval) -> Iterator[datetime]:
        at = self.cut(interval.start)
        while at < interval.end:
            if at >= interval.start:
                yield at
            at = self.next_cut(at)

    def next_cut(self, at: datetime) -> datetime:
        longest = {"year": 366, "month": 31}.get(self.unit, 0) * UNITS["day"] or UNITS[self.unit]
        return self.cut(self.cut(at) + timedelta(seconds=longest))

    def ceiling(self, at: datetime) -> datetime:
        return at if self.cut(at) == at else self.next_cut(at)

    @property
    def longest_gap(self) -> timedelta:
        """The longest time between two ticks, such as three days for a cron of weekdays."""
        return _find_longest(self, from_unit=False)

    @property
    def longest_age(self) -> timedelta:
        """The longest time from the end of what a run fills to the next run."""
        return _find_longest(self, from_unit=True)

    @property
    def unit(self) -> str:
        """The unit of the model's intervals: the given one, or the largest that fits between two ticks."""
        return self.given_unit or _find_unit(self.text)


@lru_cache(maxsize=1024)
def _find_longest(cron: Cron, *, from_unit: bool) -> timedelta:
    """Return the longest time from a tick to the next one, or from the start of the unit that the tick is in."""
    ticks = [FIRST_LOOK]
    while len(ticks) < 15 or ticks[-1] - FIRST_LOOK < LOOKED_AT:
        ticks.append(cron.next_tick(ticks[-1]))
    return max(later - (cron.cut(earlier) if from_unit else earlier) for earlier, later in pairwise(ticks[1:]))


CRON_HINT = "Use five fields like `0 6 * * *`, or @hourly, @daily, @weekly, @monthly."


def cron_error(text: str) -> str | None:
    """Return why a cron expression is invalid, or None if it is valid."""
    try:
        next(CronSim(NAMED.get(text, text), datetime(2024, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration) as error:
        return str(error) or "it never comes"
    return None


@lru_cache(maxsize=1024)
def _find_unit(text: str) -> str:
    ticks = CronSim(NAMED.get(text, text), datetime(2024, 1, 1, tzinfo=UTC))
    shortest = min(later - earlier for earlier, later in pairwise(islice(ticks, 9))).total_seconds()
    return next((unit for unit, seconds in UNITS.items() if shortest >= seconds * 0.9), "five_minute")


def _next_tick(text: str, tz: str, at: datetime) -> datetime:
    ticks = CronSim(NAMED.get(text, text), at.astimezone(_time_zone(tz)))
    # In the second of two repeated hours CronSim begins with the tick of the first one.
    return next(tick for tick in (tick.astimezone(UTC) for tick in ticks) if tick > at)


@lru_cache(maxsize=4096)
def _last_tick(text: str, tz: str, at: datetime) -> datetime:
    later = (at.replace(microsecond=0) + timedelta(seconds=1)).astimezone(_time_zone(tz))
    tick = next(CronSim(NAMED.get(text, text), later, reverse=True)).astimezone(UTC)
    # In the hour that clocks repeat, CronSim's way back passes over a tick that its way forward has.
    while (following := _next_tick(text, tz, tick)) <= at:
        tick = following
    return tick


@lru_cache(maxsize=64)
def _time_zone(name: str) -> tzinfo:
    return ZoneInfo(name) if name else UTC


def is_zone(name: str) -> bool:
    try:
        _time_zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def merge_intervals(intervals: Iterable[Interval]) -> Timeline:
    """Return the same time in as few intervals as possible, sorted; neighbours that touch become one."""
    merged: list[Interval] = []
    for interval in sorted(intervals):
        if merged and interval.start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(merged[-1].end, interval.end))
        else:
            merged.append(interval)
    return tuple(merged)


def subtract_intervals(whole: Iterable[Interval], taken: Iterable[Interval]) -> Timeline:
    remaining = list(merge_intervals(whole))
    for hole in merge_intervals(taken):
        pieces: list[Interval] = []
        for interval in remaining:
            if hole.end <= interval.start or interval.end <= hole.start:
                pieces.append(interval)
                continue
            if interval.start < hole.start:
                pieces.append(Interval(interval.start, hole.start))
            if hole.end < interval.end:
                pieces.append(Interval(hole.end, interval.end))
        remaining = pieces
    return tuple(remaining)


def intersect_intervals(one: Iterable[Interval], other: Iterable[Interval]) -> Timeline:
    whole = merge_intervals(one)
    return subtract_intervals(whole, subtract_intervals(whole, other))


def build_timeline(start: datetime, end: datetime) -> Timeline:
    """Return [start, end) as a timeline, or () if it is empty."""
    return (Interval(start, end),) if start < end else ()


def batches(cron: Cron, timeline: Timeline, size: int | None) -> tuple[Interval, ...]:
    """Split the timeline into batches of at most `size` units (None: one batch per interval), in order of time."""
    if size is None:
        return timeline
    cut: list[Interval] = []
    for interval in timeline:
        cuts = [at for at in cron.cuts(interval) if at > interval.start]
        edges = [interval.start, *cuts[size - 1 :: size], interval.end]
        cut += [Interval(start, end) for start, end in pairwise(edges) if start < end]
    return tuple(cut)


def add_lookback(cron: Cron, missing: Timeline, lookback: int, earliest: datetime) -> Timeline:
    """Extend each missing interval by `lookback` units, for late rows, but never before `earliest`."""
    if not lookback:
        return missing
    reached: list[Interval] = []
    for interval in missing:
        start = interval.start
        for _ in range(lookback):
            start = cron.cut(start - timedelta(seconds=1))
        reached.append(Interval(min(interval.start, max(start, earliest)), interval.end))
    return merge_intervals(reached)
