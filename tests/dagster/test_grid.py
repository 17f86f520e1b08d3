"""Partitions by unit of time: keys as Dagster writes them, whole partitions only, and the time between two keys."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.dagster.grid import CRONS, Grid, instant
from mergeplan.planner.intervals import UNITS


@pytest.mark.parametrize(
    ("unit", "span", "keys"),
    [
        ("day", ("2026-01-01", "2026-01-03"), ("2026-01-01", "2026-01-02")),
        ("day", ("2026-01-01T06:00:00Z", "2026-01-03"), ("2026-01-02",)),
        ("hour", ("2026-01-01T22:00:00Z", "2026-01-02T00:00:00Z"), ("2026-01-01-22:00", "2026-01-01-23:00")),
        ("quarter_hour", ("2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"), ("2026-01-01-00:00", "2026-01-01-00:15")),
        ("month", ("2025-11-15", "2026-02-01"), ("2025-12-01", "2026-01-01")),
        ("year", ("2024-01-01", "2026-01-01"), ("2024-01-01", "2025-01-01")),
        ("day", ("2026-01-01", "2026-01-01T12:00:00Z"), ()),
    ],
)
def test_the_keys_of_a_span_are_those_of_the_partitions_that_it_covers(
    unit: str, span: tuple[str, str], keys: tuple[str, ...]
) -> None:
    assert Grid(unit).keys(span) == keys


@pytest.mark.parametrize("unit", UNITS)
def test_the_span_of_a_key_has_that_key_alone(unit: str) -> None:
    grid = Grid(unit)
    start, end = grid.span(*[grid.floor(datetime(2024, 2, 29, 13, 7, tzinfo=UTC)).strftime(grid.form)] * 2)

    assert start <= datetime(2024, 2, 29, 13, 7, tzinfo=UTC) < end
    assert grid.keys((start.isoformat(), end.isoformat())) == (start.strftime(grid.form),)


def test_every_unit_has_a_cron() -> None:
    assert CRONS.keys() == UNITS.keys()


def test_a_day_and_a_time_are_moments_in_utc() -> None:
    assert instant("2026-01-02") == datetime(2026, 1, 2, tzinfo=UTC)
    assert instant("2026-01-02T06:00:00Z") == datetime(2026, 1, 2, 6, tzinfo=UTC)
