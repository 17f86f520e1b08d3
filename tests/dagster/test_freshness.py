"""How old a table may be before it is late: the longest time between two ticks of its cron."""

from __future__ import annotations

import pytest

from mergeplan.dagster.freshness import longest_gap


@pytest.mark.parametrize(
    ("cron", "zone", "hours"),
    [
        ("@hourly", "", 1),
        ("@daily", "", 24),
        ("0 7 * * 1-5", "", 72),  # over a weekend
        ("0 8-18 * * *", "Europe/Berlin", 14),
        ("0 0 1 * *", "", 31 * 24),
        ("0 0 1 1 *", "", 366 * 24),
        ("*/5 * * * *", "", 1 / 12),
    ],
)
def test_the_longest_gap_of_a_cron(cron: str, zone: str, hours: float) -> None:
    assert longest_gap(cron, zone).total_seconds() == hours * 3600
