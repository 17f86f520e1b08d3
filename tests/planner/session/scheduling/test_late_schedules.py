"""Warnings of a plan about schedules with which promises of `freshness` cannot be held."""

from __future__ import annotations

import pytest

from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.metadata import Freshness
from mergeplan.planner.model.model import Model
from mergeplan.planner.session.use_cases.planning import find_late_schedules
from tests.planner.building import external, make_plan, model, project, promote

HOUR = 3_600


def make_chain(cron: str, hours: float = 0, kind: Kind = Kind.FULL, reads: str = "s.source") -> dict[str, Model]:
    freshness = Freshness(error_after=int(hours * HOUR)) if hours else None
    return project(
        external("raw.t", "id"),
        model("s.source", "SELECT id FROM raw.t", cron=Cron(cron)),
        model("s.middle", f"SELECT id FROM {reads}", kind, cron=Cron("@hourly")),
        model("s.report", "SELECT id FROM s.middle", cron=Cron("@hourly"), freshness=freshness),
    )


def find_warnings(before: dict[str, Model] | None, after: dict[str, Model]) -> list[str]:
    base, loaded = promote(before) if before else (None, None)
    plan = make_plan(after, target=base, base=base, loaded=loaded)
    return [warning.message for warning in find_late_schedules(plan)]


def test_a_plan_warns_of_a_schedule_that_becomes_slower_than_a_reader_promises() -> None:
    assert find_warnings(make_chain("@hourly", 6), make_chain("@daily", 6)) == [
        "`s.source` runs by cron `@daily`: its rows get 1 day old. "
        "`s.report` reads it, and its `freshness` allows 6 hours."
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (make_chain("@hourly", 6), make_chain("0 */2 * * *", 6)),  # slower, and fast enough
        (make_chain("@daily", 6), make_chain("@daily", 6)),  # no change of the plan
        (make_chain("@weekly", 6), make_chain("@daily", 6)),  # faster
        (make_chain("@hourly"), make_chain("@daily")),  # without a promise
        (make_chain("@daily", 6), make_chain("@daily", 12)),  # a promise that becomes weaker
    ],
)
def test_what_a_plan_does_not_make_worse_is_no_warning(before: dict[str, Model], after: dict[str, Model]) -> None:
    assert find_warnings(before, after) == []


def test_a_new_promise_is_judged_against_all_that_its_model_reads() -> None:
    for before in (None, make_chain("@daily"), make_chain("@daily", 48)):
        assert ["`s.source`" in text for text in find_warnings(before, make_chain("@daily", 6))] == [True]
    assert len(find_warnings(None, make_chain("@daily", 0.5))) == 3  # its own schedule, too


def test_a_view_is_as_old_as_what_it_reads() -> None:
    assert len(find_warnings(None, make_chain("@daily", 6, Kind.VIEW))) == 1
