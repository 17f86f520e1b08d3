"""The time of a run, which SQL asks for where dbt writes it as a constant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.dbt.moments import fill_moments
from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.moments import TIMES, Moment, replace_marks

from .test_texts import node

NOW = Moment("run_started_at", "utc", "%Y-%m-%d %H:%M:%S.%f+00:00")
HERE = Moment("now()", "local", "%Y-%m-%d")
UTC = "to_utc_timestamp(current_timestamp(), current_timezone())"


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        (f"select '{HERE}' as x -- {HERE}",
         "select date_format(current_timestamp(), 'yyyy-MM-dd') as x -- the time of the run"),
        (f"select '{NOW.astimezone(UTC_ZONE)}'", f"select date_format({UTC}, 'yyyy-MM-dd HH:mm:ss.SSSSSS+00:00')"),
        (f"select '{NOW.strftime('%Y-%m-%dT%H')}'", f"select date_format({UTC}, 'yyyy-MM-dd\\'T\\'HH')"),
        (f"select date '{NOW.date()}' as date", f"select CAST(date_format({UTC}, 'yyyy-MM-dd') AS DATE) as date"),
        (f"where day > '{HERE - timedelta(days=3)}'",
         "where day > date_format(current_timestamp() + INTERVAL '-259200.000000' SECOND, 'yyyy-MM-dd')"),
        (f"where year = {NOW.strftime('%Y')} and", f"where year = CAST(date_format({UTC}, 'yyyy') AS INT) and"),
        ("select 'x'", "select 'x'"),
    ],
)  # fmt: skip
def test_sql_asks_for_the_time_that_a_template_writes(text: str, filled: str) -> None:
    assert fill_moments(node(), text) == filled


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"select 'at {NOW}'", "as a part of something else"),
        (f"select {NOW}", "as a part of something else"),
        (f"select 1 as `{HERE}`", "as a part of something else"),
        (f"select * from t_{NOW.strftime('%Y')}", "as a part of something else"),
        (f"select interval {NOW.strftime('%Y')} day", "as a part of something else"),
        (f"select {NOW.strftime('%m')}", "as a part of something else"),
        (f"select '{NOW.strftime('%A')}'", "in the format `%A`, which Spark does not have"),
    ],
)
def test_a_time_that_is_no_whole_constant_refuses_its_model(text: str, why: str) -> None:
    with pytest.raises(ProjectError) as error:
        fill_moments(node(), text)
    assert why in error.value.message


@pytest.mark.parametrize(
    "use",
    [
        lambda now: now.hour, lambda now: now > datetime(2026, 1, 1), lambda now: now == 1, bool,
        lambda now: now - datetime(2026, 1, 1), lambda now: now.strftime("%H") == "05", lambda now: str(now)[:4],
        lambda now: int(now.strftime("%Y")), lambda now: "5" in str(now), lambda now: {str(now): 1},
        lambda now: now.isoformat(), lambda now: now.astimezone(timezone(timedelta(hours=1))),
    ],
)  # fmt: skip
def test_a_template_can_decide_nothing_by_the_time(use: Callable[[Any], object]) -> None:
    with pytest.raises(CompileError, match="Its text is another one each time: it reads `run_started_at`"):
        use(NOW)


def test_a_mark_shows_as_the_time_that_it_stands_for() -> None:
    text = f"'{NOW + timedelta(days=1)}' and '{HERE}'"

    assert replace_marks(text, TIMES[0]) == "'1995-03-05 05:06:07.891234+00:00' and '1995-03-04'"
