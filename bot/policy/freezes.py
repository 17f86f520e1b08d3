"""When nothing may be promoted: a span of time, or hours that begin by a cron, in a time zone. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from mergeplan.planner.intervals import Cron

FAR = timedelta(days=400)  # a boundary that is further away changes nothing for now


@dataclass(frozen=True)
class Freeze:
    """From `start` to `end`, as the clocks of the zone show it, or `hours` from each tick of the cron."""

    zone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    cron: str = ""
    hours: float = 0.0
    reason: str = ""

    def span(self, at: datetime) -> tuple[datetime, datetime] | None:
        """Return the frozen time that holds `at`, or None.

        >>> weekend = Freeze("Europe/Berlin", cron="0 16 * * 5", hours=64)
        >>> weekend.span(datetime(2026, 11, 21, tzinfo=UTC))[1].isoformat()
        '2026-11-23T08:00:00+01:00'
        """
        begun = Cron(self.cron, self.zone).floor(at) if self.cron else self._localize_moment(self.start)
        if begun is None:
            return None
        end = self._compute_end(begun)
        return (begun, end) if begun <= at < end else None

    def next_start(self, at: datetime) -> datetime | None:
        if self.cron:
            return Cron(self.cron, self.zone).next_tick(at)
        begins = self._localize_moment(self.start)
        return begins if begins and begins > at else None

    def _compute_end(self, start: datetime) -> datetime:
        zone = ZoneInfo(self.zone)
        end = (start + timedelta(hours=self.hours)).astimezone(zone) if self.cron else self._localize_moment(self.end)
        assert end is not None
        return end

    def _localize_moment(self, moment: datetime | None) -> datetime | None:
        return moment.replace(tzinfo=ZoneInfo(self.zone)) if moment else None


def frozen_until(freezes: Sequence[Freeze], at: datetime) -> tuple[Freeze, datetime] | None:
    """Return the freeze in force that ends last, and its end."""
    spans = [(freeze, span) for freeze in freezes if (span := freeze.span(at))]
    if not spans:
        return None
    freeze, (_, end) = max(spans, key=lambda item: item[1][1])
    return freeze, end


def next_change(freezes: Sequence[Freeze], at: datetime) -> datetime | None:
    """Return when the next freeze begins or ends; None if none does for long."""
    ends = [span[1] for freeze in freezes if (span := freeze.span(at))]
    starts = [start for freeze in freezes if (start := freeze.next_start(at))]
    near = [moment.astimezone(UTC) for moment in (*ends, *starts) if moment - at < FAR]
    return min(near, default=None)


def freeze_sentence(freeze: Freeze, end: datetime) -> str:
    """Return `Prod is frozen until Mon 23 Nov 2026 08:00 (Europe/Berlin): the weekend`."""
    local = end.astimezone(ZoneInfo(freeze.zone))
    reason_text = f": {freeze.reason.rstrip('.')}" if freeze.reason else ""
    return f"Prod is frozen until {local:%a} {local.day} {local:%b %Y %H:%M} ({freeze.zone}){reason_text}."
