"""What tables are known to hold spares a reader only where all that it hears of comes out as it was."""

from dataclasses import replace
from typing import Any

import pytest

from mergeplan.planner.intervals import Cron, Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.snapshot.content_hash import WHOLE, Content, Contents
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import day, external, make_plan, model, project, promote

RAW = external("s.raw", "id x d")
Held = dict[str, dict[str, str]]  # model -> period -> what its new table holds there; "same": as the old one


def shop(a: str = "x", b: str = "x", reads: str = "a.x, b.x AS y") -> dict[str, Model]:
    return project(
        RAW,
        model("s.a", f"SELECT id, {a} AS x FROM s.raw"),
        model("s.b", f"SELECT id, {b} AS x FROM s.raw"),
        model("s.r", f"SELECT a.id, {reads} FROM s.a AS a JOIN s.b AS b ON a.id = b.id"),
        model("s.top", "SELECT MAX(x) AS x FROM s.r"),
    )


def judge(
    before: dict[str, Model], after: dict[str, Model], outcomes: Held, said: dict[str, Category] | None = None
) -> dict[str, Change]:
    """Name -> change of a plan for `dev`, after its `s.a` and `s.b` were filled and compared with those of prod."""
    prod, loaded = promote(before)
    first = make_plan(after, Environment("dev"), prod, loaded, categories=said or {})
    timelines, contents = dict(loaded.timelines), dict[str, Contents]()
    for change in (backfill for backfill in first.backfills if backfill.name in ("s.a", "s.b")):
        assert change.old is not None
        assert change.new is not None
        timelines[change.new.table] = change.needed
        for snapshot in (change.old, change.new):
            told = outcomes.get(change.name, {})
            here = {at: Content(1, "same" if snapshot is change.old else said) for at, said in told.items()}
            columns = tuple(sorted(snapshot.columns or ()))
            contents[snapshot.table] = Contents().plus({columns: here, ("d", "x"): here})
    known = Loaded(timelines, loaded.complete, contents=contents)
    plan = make_plan(after, Environment("dev"), prod, known, categories=said or {})
    return {change.name: change for change in plan.changes}


def test_a_reader_of_a_table_that_came_out_the_same_is_spared() -> None:
    changes = judge(shop(), shop("x + id - id"), {"s.a": {WHOLE: "same"}})

    assert (changes["s.r"].rule, changes["s.r"].shares) == ("same-data", "prod")
    assert not changes["s.top"].recomputed


def test_one_table_that_came_out_the_same_spares_no_reader_of_another_that_did_not() -> None:
    outcomes = {"s.a": {WHOLE: "same"}, "s.b": {WHOLE: "other"}}

    changes = judge(shop(), shop("x + id - id", "x + 1"), outcomes)

    assert (changes["s.r"].category, changes["s.r"].recomputed) == (Category.INDIRECT_BREAKING, True)
    assert changes["s.r"].columns.altered == {"x", "y"}  # it hears both parents as they are now
    assert changes["s.top"].recomputed


def test_a_table_that_came_out_the_same_spares_no_reader_that_was_edited_itself() -> None:
    changes = judge(shop(), shop("x + id - id", reads="a.x, b.x + 1 AS y"), {"s.a": {WHOLE: "same"}})

    assert (changes["s.r"].category, changes["s.r"].recomputed) == (Category.BREAKING, True)
    assert changes["s.top"].recomputed


def test_a_table_that_came_out_the_same_spares_no_reader_where_a_person_said_breaking() -> None:
    outcomes = {"s.a": {WHOLE: "same"}}

    changes = judge(shop(), shop("x + id - id"), outcomes, {"s.a": Category.BREAKING})

    assert (changes["s.r"].category, changes["s.r"].recomputed) == (Category.INDIRECT_BREAKING, True)


def test_all_columns_are_compared_that_the_reader_returns_or_goes_by() -> None:
    def read(x: str) -> dict[str, Model]:
        table = model("s.a", f"SELECT id, {x} AS x, d FROM s.raw")
        return project(RAW, table, model("s.r", "SELECT x FROM s.a WHERE id > 1"))

    prod, loaded = promote(read("x"))
    plan = make_plan(read("x + id - id"), Environment("dev"), prod, replace(loaded, contents={}))

    assert [(comparison.reader, comparison.columns) for comparison in plan.comparisons] == [("s.r", ("id", "x"))]


def test_a_comparison_that_nobody_made_spares_nobody() -> None:
    changes = judge(shop(), shop("x + id - id"), {})

    assert (changes["s.r"].rule, changes["s.r"].recomputed) == ("reads-changed-column", True)


HOURLY: dict[str, Any] = {"time_column": "d", "cron": Cron("@hourly"), "start": day("2026-01-09")}
STRETCH = "BETWEEN @start_dt AND @end_dt"


def hourly_models(x: str = "x", reader: str = "@hourly", more: str = "", where: str = "") -> dict[str, Model]:
    ranged = Kind.INCREMENTAL_BY_TIME_RANGE
    slower = {**HOURLY, "cron": Cron(reader)}
    return project(
        RAW,
        model("s.a", f"SELECT {x} AS x, d FROM s.raw WHERE d {STRETCH}", ranged, **HOURLY),
        model("s.r", f"SELECT x, d{more} FROM s.a WHERE d {STRETCH}{where}", ranged, **slower),
    )


def test_of_an_hour_that_came_out_the_same_no_more_than_that_hour_is_copied() -> None:
    hours = {f"2026-01-09 {hour:02}:00:00": "other" for hour in range(24)}
    hours |= {f"2026-01-10 {hour:02}:00:00": "other" for hour in range(12)}

    changes = judge(hourly_models(), hourly_models("x + id"), {"s.a": hours | {"2026-01-09 05:00:00": "same"}})

    five, six = (day("2026-01-09").replace(hour=hour) for hour in (5, 6))
    assert changes["s.r"].copies == (Interval(five, six),)


def test_a_reader_that_a_person_calls_breaking_copies_no_hour_of_its_old_table() -> None:
    hours = {f"2026-01-09 {hour:02}:00:00": "same" for hour in range(24)}
    hours |= {f"2026-01-10 {hour:02}:00:00": "other" for hour in range(12)}

    changes = judge(
        hourly_models(), hourly_models("x + id", where=" AND 1 = 1"), {"s.a": hours}, {"s.r": Category.BREAKING}
    )

    assert changes["s.r"].missing
    assert changes["s.r"].copies == ()


def test_of_an_hour_that_came_out_the_same_a_reader_by_days_copies_nothing() -> None:
    hours = {f"2026-01-09 {hour:02}:00:00": "other" for hour in range(24)}
    hours |= {f"2026-01-10 {hour:02}:00:00": "other" for hour in range(12)}
    outcomes = {"s.a": hours | {"2026-01-09 00:00:00": "same"}}

    changes = judge(hourly_models(reader="@daily"), hourly_models("x + id", "@daily"), outcomes)

    assert changes["s.r"].missing
    assert changes["s.r"].copies == ()


@pytest.mark.parametrize(
    "edit",
    [
        {"more": ", RAND() AS chance"},
        {"where": " AND RAND() > 0.5"},
        {"more": ", (SELECT MAX(x) FROM s.a) AS most"},
    ],
    ids=["chance in a column", "chance in the rows", "a look beyond the hour"],
)
def test_what_no_hour_decides_by_itself_is_not_copied_by_the_hour(edit: dict[str, str]) -> None:
    hours = {f"2026-01-{date} {hour:02}:00:00": "same" for date in ("09", "10") for hour in range(24)}
    outcomes = {"s.a": hours | {"2026-01-09 05:00:00": "other"}}

    changes = judge(hourly_models(**edit), hourly_models("x + id", **edit), outcomes)

    assert changes["s.r"].missing
    assert changes["s.r"].copies == ()


def test_tables_that_are_partitioned_by_different_columns_are_not_compared() -> None:
    """Their periods have the same names and hold other rows."""

    def models_by(column: str) -> dict[str, Model]:
        ranged = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": column, "start": day("2026-01-09")}
        return project(
            external("s.raw", "id x d e"),
            model("s.a", f"SELECT x, d, e FROM s.raw WHERE {column} BETWEEN @start_date AND @end_date", **ranged),
            model("s.r", "SELECT d, x FROM s.a"),
        )

    prod, loaded = promote(models_by("d"))
    plan = make_plan(models_by("e"), Environment("dev"), prod, replace(loaded, contents={}))

    assert [comparison.reader for comparison in plan.comparisons] == []


def test_a_reader_added_over_rows_that_a_person_kept_is_recomputed_when_a_rebuild_replaces_them() -> None:
    def chain(a: str, b: str, **more: Model) -> dict[str, Model]:
        return project(RAW, model("s.a", f"SELECT id, {a} AS x FROM s.raw"), model("s.b", b), *more.values())

    prod, loaded = promote(chain("x", "SELECT id, x FROM s.a"))
    reader = model("s.e", "SELECT id, x + 1 AS x FROM s.b")
    word = {"s.a": Category.NON_BREAKING}
    kept = make_plan(chain("x * 2", "SELECT id, x FROM s.a"), prod, prod, loaded, categories=word).new
    over_kept = make_plan(chain("x * 2", "SELECT id, x FROM s.a", e=reader), kept, kept, loaded).new
    rebuilt = make_plan(chain("x * 2", "SELECT id, x, id * 7 AS y FROM s.a", e=reader), over_kept, over_kept, loaded)

    assert over_kept.snapshots["s.b"].forced
    assert {change.name for change in rebuilt.changes if change.recomputed} == {"s.b", "s.e"}
