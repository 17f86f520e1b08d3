"""Late rows that a table takes in by its lookback reach a reader that looks back as far, and no other."""

import pytest

from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from tests.planner.building import day, external, make_plan, model, project, promote

START = day("2026-01-01")


def chain(above: int, below: int, cron: str = "@daily", **more: object) -> dict[str, Model]:
    ranged = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "at", "start": START}
    columns = "id, CAST(at AS TIMESTAMP) AS at"
    parent = model("s.p", f"SELECT {columns} FROM r.t WHERE at BETWEEN @start_ts AND @end_ts", lookback=above, **ranged)
    query = "SELECT id, at FROM s.p WHERE at BETWEEN @start_ts AND @end_ts"
    return project(
        external("r.t", "id at"), parent, model("s.c", query, lookback=below, cron=Cron(cron), **ranged, **more)
    )


@pytest.mark.parametrize(
    ("above", "below", "cron", "needed"),
    [(2, 0, "@daily", 2), (2, 1, "@daily", 2), (1, 2, "@hourly", 24)],
)
def test_a_plan_warns_of_a_shorter_lookback(above: int, below: int, cron: str, needed: int) -> None:
    (warning,) = make_plan(chain(above, below, cron)).warnings

    assert warning.message.startswith("`s.c` looks back less than `s.p`, which it reads")
    assert warning.message.endswith(f"Set its `lookback` to {needed}.")


@pytest.mark.parametrize(("above", "below", "cron"), [(2, 2, "@daily"), (0, 0, "@daily"), (1, 24, "@hourly")])
def test_a_lookback_that_is_long_enough_is_no_warning(above: int, below: int, cron: str) -> None:
    assert make_plan(chain(above, below, cron)).warnings == ()


def test_an_edit_of_either_warns_and_a_plan_of_neither_does_not() -> None:
    prod, loaded = promote(chain(0, 0))
    shorter, filled = promote(chain(2, 0))

    assert len(make_plan(chain(2, 0), prod, prod, loaded).warnings) == 1
    assert len(make_plan(chain(2, 0, description="rows"), shorter, shorter, filled).warnings) == 1
    assert make_plan(chain(2, 0), shorter, shorter, filled).warnings == ()
