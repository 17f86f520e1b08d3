"""A table that is filled by the hour, and whose time column has only days, would lack rows without a word."""

import pytest

from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind
from tests.planner.building import external, make_plan, model, project, promote

HOURLY = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "at", "cron": Cron("@hourly"), "start": None}


@pytest.mark.parametrize(
    ("value", "time_format", "warned"),
    [
        ("DATE '2026-01-01'", "", True),
        ("CAST(x AS STRING)", "", True),
        ("x", "yyyy-MM-dd", True),
        ("CAST(x AS STRING)", "yyyy-MM-dd HH", False),
        ("CAST(x AS TIMESTAMP)", "", False),
    ],
)
def test_a_plan_warns_of_a_time_column_without_hours(value: str, time_format: str, warned: bool) -> None:
    hourly = model("s.m", f"SELECT id, {value} AS at FROM r.t", time_format=time_format, **HOURLY)
    daily = model("s.m", hourly.sql, time_format=time_format, **HOURLY | {"cron": Cron("@daily")})
    one, other = (project(external("r.t", "id x"), by_time) for by_time in (hourly, daily))
    prod, loaded = promote(one)

    begins = [warning.message.partition(":")[0] for warning in make_plan(one).warnings]
    assert begins == ["`s.m` is filled by the hour, and `at` has only days"] * warned
    assert make_plan(one, base=prod, loaded=loaded).warnings == ()
    assert make_plan(other).warnings == ()
