"""Rollback: what it would do is decided by the state alone, and then done on a real Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from mergeplan.planner.apply.events import Promoted, ignore_event
from mergeplan.planner.apply.promotion.rollback import AskedBy, MovedView, RollbackPlan, apply_rollback, build_rollback
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError, Refused, RequestError
from mergeplan.planner.model.incremental import TimeRange, UniqueKey
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.schedule import Schedule
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Meaning, Snapshot
from mergeplan.planner.state.environments import Cause, HistoryAction
from mergeplan.planner.state.store import StateStore
from tests.planner.apply.promotion.test_promotion import Breaking, _build_table, promote_to, view_values  # noqa: F401 - a fixture
from tests.planner.builders import FIRST, days, environment, snapshot

NOW = FIRST + timedelta(days=9)  # 2026-01-10


def test_rollback_goes_to_what_was_shown_before(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, a2, b1 = build_table("s.a", 1), build_table("s.a", 2), build_table("s.b", 1)
    promote_to(store, engine, environment("prod", a1))
    promote_to(store, engine, environment("prod", a2, b1))

    with store.leases.hold("prod", "ann") as lease:
        done = apply_rollback(
            store, engine, lease, build_rollback(store, "prod", None, NOW), AskedBy("ann"), emit=ignore_event
        )

    assert done == Promoted("prod", 3, added=0, swapped=1, dropped=1, unchanged=0)
    assert (view_values(engine, "s.a"), set(engine.catalog.objects("s"))) == ([1], {"a"})
    newest = store.environments.history("prod")[0]
    assert (newest.action, newest.note) == (HistoryAction.ROLLED_BACK, "back to revision 1")


@pytest.mark.parametrize(
    ("revision", "error", "message"),
    [
        (9, RequestError, "no revision 9 to go back to"),
        (1, Refused, "at revision 1 already"),
        (None, RequestError, "no earlier revision"),
    ],
)
def test_rollback_to_nowhere_is_refused(
    store: StateStore,
    engine: SparkEngine,
    build_table: Callable[..., Snapshot],
    revision: int | None,
    error: type[Exception],
    message: str,
) -> None:
    promote_to(store, engine, environment("prod", build_table("s.a", 1)))

    with store.leases.hold("prod", "ann") as lease, pytest.raises(error, match=message):
        apply_rollback(store, engine, lease, build_rollback(store, "prod", revision, NOW), emit=ignore_event)


def test_rollback_passes_over_what_showed_the_same_and_what_was_undone(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, a2, a3 = build_table("s.a", 1), build_table("s.a", 2), build_table("s.a", 3)
    promote_to(store, engine, environment("prod", a1))
    error = QueryError("no")
    with pytest.raises(QueryError):
        promote_to(store, Breaking(engine, "s.a", error), environment("prod", a2))  # type: ignore[arg-type]
    promote_to(store, engine, environment("prod", a3))
    promote_to(store, engine, environment("prod", a3))

    with store.leases.hold("prod", "ann") as lease:
        apply_rollback(store, engine, lease, build_rollback(store, "prod", None, NOW), emit=ignore_event)

    assert view_values(engine, "s.a") == [1]


def test_rollback_names_a_table_that_is_gone(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, a2 = build_table("s.a", 1), build_table("s.a", 2)
    promote_to(store, engine, environment("prod", a1))
    promote_to(store, engine, environment("prod", a2))
    store.tables.forget([a1.table])

    with (
        store.leases.hold("prod", "ann") as lease,
        pytest.raises(Refused, match=r"mergeplan__s\.s__a__v1` of revision 1 is gone"),
    ):
        apply_rollback(store, engine, lease, build_rollback(store, "prod", None, NOW), emit=ignore_event)

    assert view_values(engine, "s.a") == [2]


def fill_by_day(store: StateStore, name: str, version: str, last: int) -> Snapshot:
    """A table by day that the state knows, which holds January up to a day."""
    start, query = FIRST, "SELECT d FROM raw.t"
    model = Model(
        name,
        Kind.INCREMENTAL_BY_TIME_RANGE,
        "m.sql",
        1,
        "",
        query,
        by_time=TimeRange(time_column="d"),
        schedule=Schedule(start=start),
    )
    made = snapshot(model, version)
    store.tables.register(made.table, (Column("d", "date"),))
    store.intervals.record(made.table, days(1, last))
    return made


def decide_rollback(store: StateStore, *shown: Environment, written: Sequence[str] = (), day: int = 5) -> RollbackPlan:
    """Return the plan of a rollback of these promotions, made one after another; no view is made.

    Afterwards a day of the tables `written` was computed again.
    """
    with store.leases.hold("prod", "test") as lease:
        for new in shown:
            begun = store.promotions.begin(lease, store.environments.get("prod"), new, Cause(who="ann", note="#7"))
            store.promotions.finish(lease, begun)
    for table in written:
        store.costs.record(table, days(day, day).start, units=1, rows=1, seconds=1)
    return build_rollback(store, "prod", None, NOW)


def test_what_today_s_table_holds_and_the_one_before_lacks_is_computed_by_the_next_run(store: StateStore) -> None:
    before, today, same = (fill_by_day(store, *row) for row in (("s.a", "v1", 4), ("s.a", "v2", 8), ("s.b", "v1", 3)))

    plan = decide_rollback(store, environment("prod", before, same), environment("prod", today, same))

    (behind,) = plan.behind
    assert (behind.shown.table, behind.held) == (before.table, (days(1, 4),))
    assert (behind.lacks, behind.due) == ((days(5, 8),), (days(5, 9),))
    assert [(view.before, view.after) for view in plan.views] == [(today.table, before.table)]
    assert [(row.revision, row.who, row.note) for row in plan.since] == [(2, "ann", "#7")]
    assert (plan.target.revision, plan.until, plan.refusal) == (1, plan.since[0].at, None)


def test_time_that_was_restated_since_counts_as_lacking_in_the_table_of_before(store: StateStore) -> None:
    before, today = fill_by_day(store, "s.a", "v1", 8), fill_by_day(store, "s.a", "v2", 8)
    store.intervals.forget(before.table, days(2, 3))

    (behind,) = decide_rollback(store, environment("prod", before), environment("prod", today)).behind

    assert (behind.lacks, behind.due[0]) == ((days(2, 3),), days(2, 3))


def test_days_that_a_kept_table_got_from_what_is_taken_back_are_forgotten(
    engine: SparkEngine, store: StateStore
) -> None:
    before, today, reader = (fill_by_day(store, *row) for row in (("s.a", "v1", 4), ("s.a", "v2", 8), ("s.b", "v1", 8)))
    reader, last = replace(reader, model=replace(reader.model, depends_on=("s.a",))), fill_by_day(store, "s.c", "v1", 8)
    last = replace(last, model=replace(last.model, depends_on=("s.b",)))

    plan = decide_rollback(
        store,
        environment("prod", before, reader, last),
        environment("prod", today, replace(reader, forced=True), last),
        written=(reader.table, last.table),
        day=4,
    )
    with store.leases.hold("prod", "test") as lease, pytest.raises(QueryError):  # no view can be made here
        apply_rollback(store, engine, lease, plan, emit=ignore_event)

    assert [(table.shown.name, table.lacks) for table in plan.behind] == [
        ("s.a", (days(5, 8),)),
        ("s.b", (days(4, 8),)),
        ("s.c", (days(4, 8),)),
    ]
    assert store.intervals.load_timelines([reader.table])[reader.table] == (days(1, 3),)


def test_days_that_a_table_got_from_what_is_taken_back_are_forgotten_though_it_was_kept_before(
    store: StateStore,
) -> None:
    """Two merges of the category non-breaking, of which the later one is taken back."""
    before, today, reader = (fill_by_day(store, *row) for row in (("s.a", "v1", 4), ("s.a", "v2", 8), ("s.b", "v1", 8)))
    kept_reader = replace(reader, model=replace(reader.model, depends_on=("s.a",)), forced=True)
    over_today = replace(kept_reader, meaning=Meaning("rows of today", ()))

    revisions = environment("prod", before, kept_reader), environment("prod", today, over_today)
    plan = decide_rollback(store, *revisions, written=(kept_reader.table,))
    again = decide_rollback(
        store,
        environment("prod", before, kept_reader),
        environment("prod", today, kept_reader),
        written=(kept_reader.table,),
    )

    assert plan.forgets == {reader.table: (days(5, 8),)}
    assert again.forgets == {}


@pytest.mark.parametrize(("when_matched", "first"), [("", 5), ("WHEN MATCHED THEN UPDATE SET target.n = 1", 1)])
def test_a_merged_table_keeps_its_keys_unless_a_second_merge_would_count_rows_twice(
    store: StateStore, when_matched: str, first: int
) -> None:
    before, today, reader = (fill_by_day(store, *row) for row in (("s.a", "v1", 4), ("s.a", "v2", 8), ("s.b", "v1", 8)))
    kind, by_key = Kind.INCREMENTAL_BY_UNIQUE_KEY, UniqueKey(("id",), when_matched)
    reader = replace(reader, model=replace(reader.model, kind=kind, by_key=by_key, depends_on=("s.a",)))

    revisions = environment("prod", before, reader), environment("prod", today, replace(reader, forced=True))
    plan = decide_rollback(store, *revisions, written=(reader.table,))

    assert plan.forgets == {reader.table: (days(first, 8),)}


def test_a_view_that_comes_back_one_that_goes_and_a_table_that_is_gone_are_named(store: StateStore) -> None:
    kept, old, new = (fill_by_day(store, name, "v1", 8) for name in ("s.kept", "s.old", "s.new"))

    plan = decide_rollback(store, environment("prod", kept, old), environment("prod", kept, new))
    store.tables.forget([old.table])
    gone = build_rollback(store, "prod", None, NOW)

    assert plan.views == (
        MovedView("s.new", "s.new", new.table, None),
        MovedView("s.old", "s.old", None, old.table),
    )
    assert [(gap.shown.name, gap.lacks, gap.due) for gap in plan.behind] == [("s.old", (), (days(9, 9),))]
    assert (plan.refusal, gone.gone) == (None, (old.table,))
    assert gone.refusal and gone.refusal.message == f"The table `{old.table}` of revision 1 is gone."
