"""How old a table may be before it is late, from the cron of its model. It needs no Dagster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from mergeplan.planner.intervals import Cron

GRACE = timedelta(hours=2)  # that a run may take
LOOKED_AT = timedelta(days=33)  # of a cron: longer than a month
FROM = datetime(2026, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=1024)
def longest_gap(cron: str, time_zone: str) -> timedelta:
    """Return the longest time between two ticks of a cron, such as three days for a cron of weekdays."""
    schedule, ticks = Cron(cron, time_zone), [FROM]
    while len(ticks) < 15 or ticks[-1] - FROM < LOOKED_AT:
        ticks.append(schedule.next_tick(ticks[-1]))
    return max(later - earlier for earlier, later in pairwise(ticks[1:]))
