"""Partitions of a model that is filled by time: one for each interval, named as Dagster does. It needs no Dagster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mergeplan.planner.contract.base import Span
from mergeplan.planner.intervals import UNITS

CRONS = {
    "year": "0 0 1 1 *",
    "month": "0 0 1 * *",
    "day": "0 0 * * *",
    "hour": "0 * * * *",
    "half_hour": "*/30 * * * *",
    "quarter_hour": "*/15 * * * *",
    "five_minute": "*/5 * * * *",
}
DAYS, MINUTES = "%Y-%m-%d", "%Y-%m-%d-%H:%M"  # the formats of Dagster's own daily and hourly partitions


def instant(text: str) -> datetime:
    """Parse a time of the JSON contract, a day or a day with a time, as a moment in UTC."""
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Grid:
    """The partitions of a unit of time, in UTC."""

    unit: str

    @property
    def cron(self) -> str:
        """The cron whose ticks bound the partitions."""
        return CRONS[self.unit]

    @property
    def form(self) -> str:
        """The format of a partition's key, which is its start."""
        return DAYS if UNITS[self.unit] >= UNITS["day"] else MINUTES

    def floor(self, at: datetime) -> datetime:
        """Return the start of the partition that contains a moment."""
        if self.unit == "year":
            return datetime(at.year, 1, 1, tzinfo=UTC)
        if self.unit == "month":
            return datetime(at.year, at.month, 1, tzinfo=UTC)
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC)
        return midnight + (at - midnight) // self._step * self._step

    def keys(self, span: Span) -> tuple[str, ...]:
        """Return the keys of the partitions that a span covers completely.

        >>> Grid("day").keys(("2026-01-01", "2026-01-03"))
        ('2026-01-01', '2026-01-02')
        """
        return tuple(start.strftime(self.form) for start in self._starts(*map(instant, span)))

    def span(self, first: str, last: str) -> tuple[datetime, datetime]:
        """Return the time from the start of a partition up to the end of another."""
        start, end = (datetime.strptime(key, self.form).replace(tzinfo=UTC) for key in (first, last))
        return start, self._next(end)

    @property
    def _step(self) -> timedelta:
        return timedelta(seconds=UNITS[self.unit])

    def _starts(self, start: datetime, end: datetime) -> Iterator[datetime]:
        at = self.floor(start)
        if at < start:
            at = self._next(at)
        while (following := self._next(at)) <= end:
            yield at
            at = following

    def _next(self, at: datetime) -> datetime:
        if self.unit == "year":
            return at.replace(year=at.year + 1)
        if self.unit == "month":
            return at.replace(year=at.year + at.month // 12, month=at.month % 12 + 1)
        return at + self._step
