from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeplan.planner.errors import RequestError
from mergeplan.planner.fingerprint import Fingerprint
from mergeplan.planner.intervals import Cron, Interval, Timeline, subtract_intervals
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model, Seed
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.restatement import ALL_TIME, LeftOut, Past, Touched, find_overtaken_time
from mergeplan.planner.plan.restatement_plan import build_restatement
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot
from tests.planner.building import NOW, day, external, make_plan, model, project, promote

DAILY = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}
SHOP = project(
    external("s.raw", "id d"),
    model("s.seed", kind=Kind.SEED, columns="id d", seed=Seed("seeds/s.csv", "d1", ("id", "d"))),
    model("s.days", "SELECT id, d FROM s.raw JOIN other.raw USING (id)", **DAILY),
    model("s.hours", "SELECT id, d FROM s.days", **DAILY | {"cron": Cron("@hourly")}),
    model("s.view", "SELECT id FROM s.days", kind=Kind.VIEW),
    model("s.total", "SELECT COUNT(*) AS n FROM s.view"),
    model("s.apart", "SELECT COUNT(*) AS n FROM s.seed"),
)


def time_between(start: str, end: str) -> Timeline:
    return (Interval(day(start), day(end)),)


def restate(
    *selectors: str,
    models: dict[str, Model] = SHOP,
    others: tuple[Environment, ...] = (),
    where: Environment | None = None,
    lacking: dict[str, Timeline] | None = None,
    **window: str,
) -> Plan:
    """A restatement in prod, or where it is said, of these models; `lacking` is time that tables do not hold."""
    prod, loaded = promote(models)
    here = where or prod
    gone = {prod.snapshots[name].table: time for name, time in (lacking or {}).items()}
    timelines = {table: subtract_intervals(held, gone.get(table, ())) for table, held in loaded.timelines.items()}
    past = Past(tuple((environment.name, True, environment.snapshots) for environment in (prod, *others)))
    asked = Window(NOW, **{name: day(text) for name, text in window.items()})
    return build_restatement(here, Loaded(timelines), asked, selectors, past)


def times(plan: Plan) -> dict[str, Timeline]:
    return {change.name: change.missing for change in plan.changes}


def dev(edited: dict[str, Model]) -> Environment:
    prod, loaded = promote(SHOP)
    plan = make_plan(edited, Environment("dev"), prod, loaded)
    return replace(plan.new, revision=1)


def edit_total() -> dict[str, Model]:
    return SHOP | project(model("s.total", "SELECT COUNT(*) + 1 AS n FROM s.view"))


def test_what_reads_a_restated_table_is_restated_with_it_through_views() -> None:
    plan = restate("s.days", start="2026-01-03", end="2026-01-05")

    assert times(plan)["s.days"] == times(plan)["s.hours"] == time_between("2026-01-03", "2026-01-05")
    assert [change.name for change in plan.changes] == ["s.days", "s.hours", "s.total"]
    assert not plan.promotes


@pytest.mark.parametrize("selector", ["s.raw", "other.raw"])
def test_tables_of_others_are_named_for_those_that_read_them(selector: str) -> None:
    assert times(restate(selector)).keys() == {"s.days", "s.hours", "s.total"}


def test_a_reader_by_longer_units_is_restated_by_whole_ones() -> None:
    models = SHOP | project(model("s.hours", "SELECT id, d FROM s.days", **DAILY | {"cron": Cron("@monthly")}))
    plan = restate("s.days", models=models, start="2026-01-03", end="2026-01-05")

    assert "s.hours" not in times(plan)  # its first month is not over
    assert times(plan)["s.days"] == time_between("2026-01-03", "2026-01-05")


def test_a_table_that_is_filled_in_order_is_restated_whole_and_so_is_what_reads_it() -> None:
    models = SHOP | project(
        model("s.hours", "SELECT id, d FROM s.days", Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",)),
        model("s.later", "SELECT id, d FROM s.hours", **DAILY),
    )

    plan = restate("s.days", models=models, start="2026-01-03", end="2026-01-05")

    assert times(plan)["s.days"] == time_between("2026-01-03", "2026-01-05")
    assert times(plan)["s.hours"][0].end == day("2026-01-10")
    assert times(plan)["s.later"] == time_between("2026-01-01", "2026-01-10")


def test_a_seed_is_left_out_and_its_readers_are_not() -> None:
    plan = restate("s.seed")

    assert times(plan).keys() == {"s.apart"}
    assert plan.restatement is not None
    assert plan.restatement.left_out == (LeftOut("s.seed", "its rows are those of its file"),)


def test_what_forbids_restatement_keeps_its_rows_and_so_does_what_reads_only_that() -> None:
    models = {**SHOP, "s.days": replace_settings(SHOP["s.days"], {"disable_restatement": True})}

    with pytest.raises(RequestError, match=r"Nothing can be restated: `s\.days`: its `disable_restatement` is true"):
        restate("s.raw", models=models)


def test_time_that_nobody_holds_cannot_be_restated() -> None:
    with pytest.raises(RequestError, match="Nothing is to be restated from 2027-01-01: no table of these models"):
        restate("s.hours", start="2027-01-01")


@pytest.mark.parametrize("selector", ["s.days", "other.raw"])
def test_every_version_that_any_environment_made_of_it_is_forgotten(selector: str) -> None:
    here = dev(edit_total())

    plan = restate(selector, others=(here,), start="2026-01-03", end="2026-01-05")

    assert plan.restatement is not None
    forgets = plan.restatement.forgets
    assert forgets[here.snapshots["s.total"].table] == ALL_TIME
    assert forgets[here.snapshots["s.days"].table] == time_between("2026-01-03", "2026-01-05")
    assert plan.restatement.touched == (Touched("dev", ("s.days", "s.hours"), ("s.total",)),)


def test_a_table_under_the_name_that_a_model_had_before_is_forgotten_with_it() -> None:
    before, _ = promote(SHOP)
    renamed = project(external("s.raw", "id d"), model("s.daily", SHOP["s.days"].sql, **DAILY))

    plan = restate("s.daily", models=renamed, others=(replace(before, name="past"),), start="2026-01-03")

    assert plan.restatement is not None
    assert plan.restatement.forgets[before.snapshots["s.days"].table][0].start == day("2026-01-03")
    assert before.snapshots["s.total"].table in plan.restatement.forgets
    assert before.snapshots["s.apart"].table not in plan.restatement.forgets


def test_another_environment_restates_its_own_tables_and_forgets_nothing_of_prods() -> None:
    prod, _ = promote(SHOP)
    here = dev(edit_total())

    plan = restate("+s.total", where=here, others=(here,))

    assert times(plan).keys() == {"s.total"}
    assert plan.restatement is not None
    assert plan.restatement.forgets.keys() == {here.snapshots["s.total"].table}
    assert plan.restatement.touched == ()
    assert {omission.model for omission in plan.restatement.left_out} == {"s.days"}
    assert not plan.restatement.forgets.keys() & {snapshot.table for snapshot in prod.snapshots.values()}


def test_a_table_that_was_built_for_a_plan_is_forgotten_where_it_may_come_of_restated_rows() -> None:
    prod, loaded = promote(SHOP)
    built = dev(edit_total()).snapshots["s.total"]
    unknown, apart = "mergeplan__s.s__what__1", replace(prod.snapshots["s.apart"], version="old")
    past = Past((("prod", True, prod.snapshots),), {built.table: built, unknown: None, apart.table: apart})

    plan = build_restatement(prod, loaded, Window(NOW), ["s.days"], past)

    assert plan.restatement is not None
    assert {built.table, unknown} <= plan.restatement.forgets.keys()
    assert apart.table not in plan.restatement.forgets


def test_nothing_is_planned_from_a_table_past_a_hole() -> None:
    prod, loaded = promote(SHOP)
    days = prod.snapshots["s.days"].table
    holed = Loaded(
        {**loaded.timelines, days: subtract_intervals(loaded.timelines[days], time_between("2026-01-03", "2026-01-04"))}
    )

    plan = make_plan(edit_total(), Environment("dev"), prod, holed)

    assert next(c for c in plan.changes if c.name == "s.total").missing == (
        Interval(day("1970-01-01"), day("2026-01-03")),
    )
    assert plan.relies[days] == holed.timelines[days]


def test_a_restatement_after_a_failed_one_covers_what_that_one_left() -> None:
    lacking = {"s.days": time_between("2026-01-03", "2026-01-05"), "s.total": ALL_TIME}

    plan = restate("s.days", lacking=lacking, start="2026-01-03", end="2026-01-05")

    assert times(plan) == times(restate("s.days", start="2026-01-03", end="2026-01-05"))


@st.composite
def pasts(draw: st.DrawFn) -> tuple[Environment, Environment]:
    """Prod and another environment over five full models each, some of them with the same tables."""
    shown: list[dict[str, Snapshot]] = [{}, {}]
    for number in range(5):
        for where in range(2):
            read = draw(st.sets(st.sampled_from([f"s.m{index}" for index in range(number)] or ["o.raw"])))
            full_model = Model(f"s.m{number}", Kind.FULL, "", 1, "", depends_on=tuple(sorted(read)))
            version = draw(st.sampled_from(["same", f"own{where}"])) if where else "same"
            version = version if not where or full_model == shown[0][full_model.name].model else "own"
            shown[where][full_model.name] = Snapshot(full_model, Fingerprint(version, "", ""), version, None)
    return Environment("prod", shown[0], revision=1), Environment("dev", shown[1], revision=1)


@settings(deadline=None)
@given(pasts(), st.sampled_from(["s.m0", "s.m1", "s.m2", "s.m3"]))
def test_no_table_that_was_made_of_restated_rows_stays_said_to_be_loaded(
    both: tuple[Environment, Environment], name: str
) -> None:
    prod, other = both
    held = {
        version.table: time_between("1970-01-01", "2026-01-10")
        for version in (*prod.snapshots.values(), *other.snapshots.values())
    }
    past = Past(tuple((side.name, True, side.snapshots) for side in both))

    plan = build_restatement(prod, Loaded(held), Window(NOW), [name], past)

    assert plan.restatement is not None
    for environment in both:
        made = {name}
        for reader, snapshot in environment.snapshots.items():  # parents come first
            made |= {reader} if made & set(snapshot.model.depends_on) else set()
        stale = {environment.snapshots[model_name].table for model_name in made} - plan.restatement.forgets.keys()
        assert stale <= {
            prod.snapshots[model_name].table for model_name in prod.snapshots.keys() - {c.name for c in plan.changes}
        }


RANGED = model(
    "s.t",
    "SELECT id, d FROM raw.x WHERE d BETWEEN @start_ds AND @end_ds",
    Kind.INCREMENTAL_BY_TIME_RANGE,
    time_column="d",
    start=day("2026-01-01"),
)
RANGED_EDITED = replace(RANGED, sql=RANGED.sql.replace("id, d", "id + 1 AS id, d"))


def test_what_another_version_holds_before_prod_computes_it_is_overtaken_with_what_reads_it() -> None:
    added = model("s.n", "SELECT id FROM s.t")
    (prod, _), (dev, loaded) = promote(project(RANGED)), promote(project(RANGED_EDITED, added), "dev")
    past = Past((("prod", True, prod.snapshots), ("dev", True, dev.snapshots)))
    last, later = time_between("2026-01-09", "2026-01-10"), time_between("2026-01-10", "2026-01-11")

    overtaken = find_overtaken_time({"s.t": last}, past, loaded.timelines)

    reader = dev.snapshots["s.n"].table
    assert overtaken == {dev.snapshots["s.t"].table: last, reader: loaded.timelines[reader]}
    assert find_overtaken_time({"s.t": later}, past, loaded.timelines) == {}


def test_a_table_that_no_environment_shows_is_overtaken_if_it_is_downstream_or_unknown() -> None:
    reader, other = model("s.n", "SELECT id FROM s.t"), model("s.o", "SELECT 1 AS id")
    (prod, _), (failed, loaded) = promote(project(RANGED)), promote(project(RANGED_EDITED, reader, other), "dev")
    tables = {name: snapshot.table for name, snapshot in failed.snapshots.items()}
    times = {**loaded.timelines, "unknown": loaded.timelines[tables["s.t"]]}
    built = {snapshot.table: snapshot for snapshot in failed.snapshots.values()}
    past = Past((("prod", True, prod.snapshots),), {**built, "unknown": None})
    last = time_between("2026-01-09", "2026-01-10")

    overtaken = find_overtaken_time({"s.t": last}, past, times)

    assert overtaken == {tables["s.t"]: last, tables["s.n"]: times[tables["s.n"]], "unknown": times["unknown"]}


KEYED = model(
    "s.t", "SELECT id FROM raw.x", Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",), start=day("2026-01-01")
)
SELF_READING = replace(RANGED, sql=f"{RANGED.sql} AND id > (SELECT COUNT(*) FROM s.t)", reads_itself=True)


@pytest.mark.parametrize(("before", "first"), [(KEYED, "2026-01-01"), (SELF_READING, "2026-01-07")])
def test_a_table_filled_in_order_is_overtaken_from_there_on_and_a_merged_one_as_a_whole(
    before: Model, first: str
) -> None:
    """A second merge of a day adds to the rows of the first one, and removes none of its keys."""
    prod, _ = promote(project(before))
    dev, loaded = promote(project(replace(before, sql=before.sql.replace("id", "id + 1 AS id", 1))), "dev")
    past = Past((("prod", True, prod.snapshots), ("dev", True, dev.snapshots)))

    overtaken = find_overtaken_time({"s.t": time_between("2026-01-07", "2026-01-08")}, past, loaded.timelines)

    assert overtaken == {dev.snapshots["s.t"].table: time_between(first, "2026-01-10")}


def test_a_day_that_is_first_computed_by_a_restatement_has_its_lookback() -> None:
    models = SHOP | {"s.days": replace_settings(SHOP["s.days"], {"lookback": 2})}
    due = {name: time_between("2026-01-09", "2026-01-10") for name in ("s.days", "s.hours")}

    assert times(restate("s.days", models=models, lacking=due, start="2026-01-09"))["s.days"] == time_between(
        "2026-01-07", "2026-01-10"
    )
    assert times(restate("s.days", models=models, start="2026-01-09"))["s.days"] == due["s.days"]


def test_days_that_a_table_holds_past_its_last_tick_are_restated_with_the_others() -> None:
    prod, loaded = promote(SHOP)
    weekly = project(replace_settings(SHOP["s.days"], {"cron": Cron("@weekly")}))
    plan = make_plan(SHOP | weekly, prod, prod, loaded)

    restated = restate("s.days", where=plan.new)

    assert not plan.backfills
    for name in ("s.days", "s.hours"):
        assert times(restated)[name] == loaded.timeline_of(prod.snapshots[name])
