"""Runs around the hour that clocks skip, and around the one that they repeat: each row is in the tables once.

As docs/guides/scheduling.md says: a tick in the skipped hour happens right after it, one in the repeated hour happens
once, and hours and days in queries are in UTC.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import FILES, rows

pytestmark = pytest.mark.prove

ZONE, HALF_HOUR = "cron_tz 'Europe/Berlin'", timedelta(minutes=30)
MODELS = {
    "hours": f"kind INCREMENTAL_BY_TIME_RANGE (time_column at), cron '@hourly', {ZONE}",
    "log": f"kind INCREMENTAL_UNMANAGED, cron '@hourly', {ZONE}",
    "nights": f"kind INCREMENTAL_BY_TIME_RANGE (time_column at), cron '30 2 * * *', interval_unit hour, {ZONE}",
    "keys": f"kind INCREMENTAL_BY_UNIQUE_KEY (unique_key at), cron '30 2 * * *', interval_unit hour, {ZONE}",
    "days": f"kind INCREMENTAL_BY_TIME_RANGE (time_column at), cron '@daily', {ZONE}",
}
# When it is run -> up to when models of each cron (hourly, at 2:30, daily) hold rows; all in UTC.
SPRING = {  # at 1:00 UTC of the 29th it is 3:00, and not 2:00
    "03-29 00:59": ("03-29 00:00", "03-28 01:00", "03-28 00:00"),
    "03-29 01:00": ("03-29 01:00", "03-29 01:00", "03-28 00:00"),
    "03-29 02:10": ("03-29 02:00", "03-29 01:00", "03-28 00:00"),
    "03-30 00:30": ("03-30 00:00", "03-30 00:00", "03-29 00:00"),
}
AUTUMN = {  # at 1:00 UTC of the 25th it is 2:00 for the second time
    "10-25 00:29": ("10-25 00:00", "10-24 00:00", "10-24 00:00"),
    "10-25 00:30": ("10-25 00:00", "10-25 00:00", "10-24 00:00"),
    "10-25 01:40": ("10-25 01:00", "10-25 00:00", "10-24 00:00"),
    "10-26 01:30": ("10-26 01:00", "10-26 01:00", "10-25 00:00"),
}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}:00")


@pytest.mark.parametrize("runs", [SPRING, AUTUMN], ids=["skipped", "repeated"])
def test_each_row_is_there_once_after_each_run(
    tmp_path: Path, engine: SparkEngine, runs: dict[str, tuple[str, ...]]
) -> None:
    start = moment(next(iter(runs))).replace(hour=0, minute=0) - timedelta(days=2)
    engine.fetch("CREATE SCHEMA raw")
    ticks = f"SEQUENCE(TIMESTAMP'{start}', TIMESTAMP'{start + timedelta(days=5)}', INTERVAL 30 MINUTES)"
    engine.fetch(f"CREATE TABLE raw.ticks USING parquet AS SELECT EXPLODE({ticks}) AS at")
    mergeplan = CommandLine(tmp_path, engine)
    mergeplan.write("config.yaml", FILES["config.yaml"].replace("2026-01-01", f"{start:%Y-%m-%d}"))
    mergeplan.write("external_models.yaml", "- name: raw.ticks\n  columns: {at: timestamp}\n")
    for name, properties in MODELS.items():
        text = (
            f"MODEL (name shop.{name}, {properties});\nSELECT at FROM raw.ticks WHERE at BETWEEN @start_ts AND @end_ts"
        )
        mergeplan.write(f"models/{name}.sql", text)

    for number, (now, (hourly, nightly, daily)) in enumerate(runs.items()):
        verb = ("run",) if number else ("plan", "--auto-apply")
        ran = mergeplan(*verb, "--execution-time", f"{moment(now)}")
        assert ran.code == 0, ran.out + ran.err
        limits = {"hours": hourly, "log": hourly, "nights": nightly, "keys": nightly, "days": daily}
        held = {
            name: [at for (at,) in rows(engine, f"SELECT string(at) FROM shop.{name} ORDER BY at")] for name in MODELS
        }
        assert held == {name: half_hours(start, moment(limit)) for name, limit in limits.items()}, now


def half_hours(start: datetime, end: datetime) -> list[str]:
    """Every half hour from `start` up to but not including `end`."""
    return [str(start + number * HALF_HOUR) for number in range((end - start) // HALF_HOUR)]
