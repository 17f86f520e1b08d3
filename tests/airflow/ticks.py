"""When a DAG runs by its timetable, beside when mergeplan says that a model is due; by Airflow's Python.

`python ticks.py` prints JSON: by time zone and cron the ticks of mergeplan that no DAG run follows within an hour.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pendulum
from airflow.sdk import CronTriggerTimetable
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables.base import DataInterval, TimeRestriction

from mergeplan.airflow.graph import graph_of_document
from mergeplan.planner.intervals import Cron

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
CRONS = ("@daily", "@hourly", "30 2 * * *", "0 3 * * *", "15 1 * * *", "0 1-3 * * *", "0 7 * * 1-5", "30 0 1 * *")
YEAR = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


def dag_ticks(cron: str, zone: str) -> list[datetime]:
    """The times at which a DAG of one model of this cron runs in a year."""
    model = {"name": "a", "kind": "FULL", "computed": True, "parents": [], "cron": cron, "interval_unit": "day"}
    document = {"version": 1, "environment": "prod", "models": [{**model, "time_zone": zone}]}
    own_zone, (own,) = graph_of_document(document).crons
    timetable = coerce_to_core_timetable(CronTriggerTimetable(own, timezone=own_zone))
    restriction = TimeRestriction(pendulum.instance(YEAR[0]), None, True)
    ticks, last = [], None
    while True:
        info = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
        if info is None or info.run_after > YEAR[1] + timedelta(days=1):
            return ticks
        ticks.append(info.run_after)
        last = DataInterval.exact(info.run_after)


def due_ticks(cron: str, zone: str) -> list[datetime]:
    """The times at which mergeplan says that a model of this cron is due."""
    schedule, ticks = Cron(cron, zone), [YEAR[0]]
    while ticks[-1] < YEAR[1]:
        ticks.append(schedule.next_tick(ticks[-1]))
    return ticks[1:-1]


def find_missed(due: list[datetime], runs: list[datetime]) -> list[str]:
    """The due times that no run follows within an hour."""
    following = (runs[bisect_left(runs, at) :][:1] for at in due)
    return [
        f"{at:%Y-%m-%d %H:%M}"
        for at, run in zip(due, following, strict=True)
        if not run or run[0] > at + timedelta(hours=1)
    ]


def main() -> None:
    """Compare, and print."""
    late_by_cron = {}
    for zone in ZONES:
        for cron in CRONS:
            runs = dag_ticks(cron, zone)
            assert all(earlier < later for earlier, later in pairwise(runs)), (zone, cron)
            if late := find_missed(due_ticks(cron, zone), runs):
                late_by_cron[f"{zone} {cron}"] = late
    sys.stdout.write(json.dumps(late_by_cron) + "\n")


if __name__ == "__main__":
    main()
