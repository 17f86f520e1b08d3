"""Plans applied on a real Spark: what is computed, what is not, and what a failure or a crash leaves."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.apply.backfill.fill_table import TableWriter
from mergeplan.planner.apply.events import (
    AuditRan,
    BatchDone,
    Event,
    ModelFailed,
    ModelSkipped,
    ModelStarted,
    Promoted,
    Stage,
    StageSkipped,
    StageStarted,
    TableCreated,
)
from mergeplan.planner.apply.executor import ApplyOptions, apply
from mergeplan.planner.apply.janitor import find_unused_tables
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.engine.protocol import ViewText, Written
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import AuditFailed, Cancelled, PlanMoved, ProjectError, QueryError, Refused
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.build import Blocker
from mergeplan.planner.plan.stages import BackfillTask
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days
from tests.planner.engines import Double
from tests.planner.shop import ALONE, FILES, NOW, carry_out, make_plan, plan_and_apply, rows, write_shop

BAD = FILES["models/daily.sql"].replace("SELECT id,", "SELECT nullif(id, 3) AS id,")
DAILY = dict.fromkeys(("total", "shown", "apart"), "")  # leaves `items` and `daily`
APART = dict.fromkeys(("items", "daily", "total", "shown"), "")  # leaves `apart`


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "shop"


def batches(events: list[Event], model: str) -> list[str]:
    return [str(event.interval) for event in events if isinstance(event, BatchDone) and event.model == model]


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events]


def test_a_first_plan_builds_fills_and_shows_everything_parents_before_their_children(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    events: list[Event] = []

    outcome = plan_and_apply(write_shop(root), engine, store, emit=events.append)

    assert rows(engine, "SELECT total FROM shop.shown") == [(60,)]
    assert rows(engine, "SELECT * FROM shop.daily ORDER BY id")[0] == (1, 10, date(2026, 1, 1))
    assert batches(events, "shop.daily") == [f"2026-01-0{n} - 2026-01-0{n}" for n in range(1, 6)]
    assert outcome.promoted == Promoted("prod", 1, added=5, swapped=0, dropped=0, unchanged=0)
    assert (outcome.promotion_jobs, outcome.failures, len(outcome.created)) == (0, (), 5)
    assert (outcome.filled.batches, outcome.filled.rows) == (8, 8)
    line = ["shop.items", "shop.daily", "shop.total", "shop.shown"]
    created = [event.model for event in events if isinstance(event, TableCreated)]
    filled = list(dict.fromkeys(event.model for event in events if isinstance(event, BatchDone)))
    assert [name for name in created if name in line] == line
    assert [name for name in filled if name in line] == line[:3]


@pytest.mark.prove
def test_what_is_created_and_filled_goes_on_one_pool_of_threads(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    creating, filling = set[str](), set[str]()

    class Watched(Double):
        def create(self, table: Table) -> bool:
            creating.add(threading.current_thread().name)
            return engine.tables.create(table)

        def replace(self, table: Table, sql: str, *, is_fresh: bool = False) -> Written:
            filling.add(threading.current_thread().name)
            return engine.tables.replace(table, sql, is_fresh=is_fresh)

    plan_and_apply(write_shop(root), Watched(engine), store)

    assert creating and filling
    assert creating | filling <= {f"table_{n}" for n in range(4)}


def test_no_more_models_are_under_way_than_the_gateway_says(root: Path, engine: SparkEngine, store: StateStore) -> None:
    under_way, most = set[str](), set[int]()

    def emit(event: Event) -> None:
        if isinstance(event, ModelStarted):
            under_way.add(event.model)
            most.add(len(under_way))
        if isinstance(event, BatchDone):
            under_way.discard(event.model)

    one = {f"m{n}": f"MODEL (name shop.m{n}, kind FULL);\nSELECT {n} AS id" for n in range(5)}
    outcome = plan_and_apply(write_shop(root, **APART, apart="", **one), engine, store, emit=emit)

    assert (outcome.filled.batches, max(most)) == (5, 2)


@pytest.mark.prove
def test_what_prod_shows_already_is_not_done_again(root: Path, engine: SparkEngine, store: StateStore) -> None:
    project = write_shop(root)
    first = make_plan(project, store)
    plan_and_apply(project, engine, store, plan=first)
    before, events = engine.jobs(), list[Event]()

    outcome = plan_and_apply(project, engine, store, emit=events.append)
    assert set(kinds(events)) == {StageSkipped}
    assert outcome.promoted is None
    assert store.environments.get("prod").revision == 1
    assert rows(engine, "SELECT 1") and engine.jobs() - before <= 1

    shown, events = store.environments.get("prod").snapshots, []
    view = store.tables.get(shown["shop.shown"].table)
    assert view is not None and view.reads == (shown["shop.total"].table,)
    with pytest.raises(PlanMoved, match="at revision 1"):
        plan_and_apply(project, engine, store, emit=events.append, plan=first)
    assert events == []


def test_a_merge_promotes_the_pull_requests_own_tables_and_computes_nothing(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    plan_and_apply(write_shop(root), engine, store)
    project = write_shop(root, total=FILES["models/total.sql"].replace("sum(price)", "max(price)"))
    built = plan_and_apply(project, engine, store, "pr_7")
    assert rows(engine, "SELECT total FROM shop__pr_7.shown") == [(30,)]
    assert rows(engine, "SELECT total FROM shop.shown") == [(60,)]

    merged = plan_and_apply(project, engine, store)

    assert built.filled.batches == 1
    assert (merged.created, merged.filled.batches, merged.promotion_jobs) == ((), 0, 0)
    assert rows(engine, "SELECT total FROM shop.shown") == [(30,)]


def test_a_blocking_audit_stops_its_subtree_and_the_promotion_and_others_finish(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    events: list[Event] = []

    outcome = plan_and_apply(write_shop(root, daily=BAD), engine, store, emit=events.append)

    (failure,) = outcome.failures
    assert failure.audit is not None
    assert (failure.model, failure.audit.count, failure.audit.sample.rows) == (
        "shop.daily",
        1,
        ((None, "##", "####-##-##"),),
    )
    assert batches(events, "shop.daily") == [f"2026-01-0{n} - 2026-01-0{n}" for n in range(1, 4)]
    assert batches(events, "shop.apart") == ["1970-01-01 - 2026-01-05"]
    assert ModelSkipped("shop.total", "shop.daily") in events
    assert outcome.filled.skipped == ("shop.total",)
    assert outcome.promoted is None and not store.environments.get("prod").exists
    with pytest.raises(AuditFailed, match=r"`not_null` of `shop.daily` found 1 row"):
        outcome.raise_failure()


@pytest.mark.prove
def test_what_was_filled_for_days_before_a_failure_is_left_by_the_janitor(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    def let_two_days_pass(_: Event) -> None:
        before = datetime.now(UTC) - timedelta(days=2)
        with store.tables._database.writing() as tx:
            tx.execute(tx.update(t.physical_tables).values(touched_at=before))
            tx.execute(tx.update(t.plans).values(created_at=before))

    project = write_shop(root, **DAILY, daily=BAD)
    outcome = plan_and_apply(project, engine, store, emit=let_two_days_pass)

    assert outcome.failures
    assert find_unused_tables(store, datetime.now(UTC)) == []


def test_the_next_apply_runs_a_failed_audit_again(root: Path, engine: SparkEngine, store: StateStore) -> None:
    project = write_shop(root, **DAILY, daily=BAD)
    plan_and_apply(project, engine, store)
    events: list[Event] = []

    outcome = plan_and_apply(project, engine, store, emit=events.append)

    audits = [event.result for event in events if isinstance(event, AuditRan)]
    assert [(audit.count, str(audit.interval)) for audit in audits] == [(1, "2026-01-04 - 2026-01-04")]
    assert ModelFailed in kinds(events)
    assert outcome.promoted is None


@pytest.mark.prove
def test_rows_that_another_process_left_in_a_new_table_are_replaced(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    def another(event: Event) -> None:
        """It saw the new table first, and was killed before it recorded the rows that it wrote."""
        if isinstance(event, TableCreated) and event.model == "shop.total":
            table = Table(event.table, (Column("total", "bigint"),))
            with store.leases.hold(table_lease(event.table), "another"):
                engine.tables.replace(table, "SELECT 7L AS total", is_fresh=True)

    project = write_shop(root, shown="")
    plan_and_apply(project, engine, store, emit=another)

    assert rows(engine, "SELECT total FROM shop.total") == [(60,)]


@pytest.mark.parametrize("model", ["items", "apart"])
def test_rows_that_were_not_recorded_are_not_doubled(
    root: Path, engine: SparkEngine, store: StateStore, model: str
) -> None:
    class Dying(Double):
        """The process is killed when the first rows of the model are in its table."""

        def replace(self, table: Table, sql: str, *, is_fresh: bool = False) -> Written:
            return self._record_write(table, engine.tables.replace(table, sql, is_fresh=is_fresh), is_fresh)

        def load(self, table: Table, rows: list[list[str | None]], *, is_fresh: bool = False) -> Written:
            return self._record_write(table, engine.tables.load(table, rows, is_fresh=is_fresh), is_fresh)

        def _record_write(self, table: Table, done: Written, untouched: bool) -> Written:
            assert untouched
            if f"__{model}__" in table.name:
                raise Cancelled("killed")
            return done

    project = write_shop(root, shown="", total="", daily="")
    with pytest.raises(Cancelled):
        plan_and_apply(project, Dying(engine), store)  # type: ignore[arg-type]

    plan_and_apply(project, engine, store)

    assert rows(engine, f"SELECT count(*) FROM shop.{model}") == [(3 if model == "items" else 1,)]


@pytest.mark.prove
def test_a_warning_forbids_nothing(root: Path, engine: SparkEngine, store: StateStore) -> None:
    outcome = plan_and_apply(
        write_shop(root, **DAILY, daily=BAD.replace("not_null", "not_null_non_blocking")), engine, store
    )

    assert [(result.name, result.count) for result in outcome.filled.warnings] == [("not_null_non_blocking", 1)]
    assert outcome.promoted is not None


def test_the_audit_of_a_new_view_runs_once(root: Path, engine: SparkEngine, store: StateStore) -> None:
    view = (
        "MODEL (name shop.shown, kind VIEW, audits (forall(criteria := (total > {}))));\nSELECT total FROM shop.total"
    )
    others = ALONE | {"total": "MODEL (name shop.total, kind FULL);\nSELECT 60 AS total"}
    failed = plan_and_apply(write_shop(root, **others | {"shown": view.format(100)}), engine, store)
    passed, again = write_shop(root, **others | {"shown": view.format(1)}), list[Event]()

    assert [failure.model for failure in failed.failures] == ["shop.shown"]
    assert plan_and_apply(passed, engine, store).promoted is not None
    plan_and_apply(passed, engine, store, emit=again.append)
    assert AuditRan not in kinds(again)


def test_a_query_that_spark_refuses_is_told_at_its_file_before_anything_is_filled(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    project = write_shop(
        root, total="MODEL (name shop.total, kind FULL);\nSELECT sum(array(price)) AS total FROM shop.daily"
    )
    events: list[Event] = []

    with pytest.raises(QueryError, match="array") as raised:
        plan_and_apply(project, engine, store, emit=events.append)

    assert raised.value.place is not None and raised.value.place.path == "models/total.sql"
    assert BatchDone not in kinds(events)


def test_declared_columns_that_the_query_lacks_are_told(root: Path, engine: SparkEngine, store: StateStore) -> None:
    total = "MODEL (name shop.total, kind FULL, columns (total BIGINT, extra INT));\nSELECT 1 AS total"

    with pytest.raises(ProjectError, match="declares the column `extra`, which its query does not return"):
        plan_and_apply(write_shop(root, **ALONE | {"total": total}), engine, store)


def test_declared_types_override_sparks(root: Path, engine: SparkEngine, store: StateStore) -> None:
    total = "MODEL (name shop.total, kind FULL, columns (total STRING));\nSELECT 60 AS total"

    plan_and_apply(write_shop(root, **ALONE | {"total": total}), engine, store)

    assert rows(engine, "SELECT total FROM shop.total") == [("60",)]


def test_a_query_that_fails_while_it_runs_is_that_models_failure(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    total = "MODEL (name shop.total, kind FULL);\nSELECT cast(concat('x', id) AS INT) AS total FROM range(3)"

    outcome = plan_and_apply(write_shop(root, **ALONE | {"total": total}), engine, store)

    (failure,) = outcome.failures
    assert (failure.model, failure.audit) == ("shop.total", None)
    assert failure.error.place is not None and failure.error.place.path == "models/total.sql"


def test_a_table_that_vanished_from_the_catalog_is_built_again(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    project = write_shop(root, **APART)
    plan = make_plan(project, store)
    plan_and_apply(project, engine, store, plan=replace(plan, changes=plan.changes))
    store.intervals.forget(plan.new.snapshots["shop.apart"].table, days(1, 5))
    engine.tables.drop(plan.new.snapshots["shop.apart"].table)
    again = replace(plan, old=store.environments.get("prod"))

    with pytest.raises(PlanMoved, match="no longer in the catalog"):
        plan_and_apply(project, engine, store, plan=again)

    assert plan.new.snapshots["shop.apart"].table not in store.tables.all()


def test_a_plan_with_blockers_is_refused(root: Path, engine: SparkEngine, store: StateStore) -> None:
    project = write_shop(root)
    plan = replace(make_plan(project, store), blockers=(Blocker("shop.total reads a column that goes."),))

    with pytest.raises(Refused, match="reads a column that goes"):
        plan_and_apply(project, engine, store, plan=plan)


def test_without_backfill_views_show_empty_tables(root: Path, engine: SparkEngine, store: StateStore) -> None:
    project = write_shop(root)
    plan = make_plan(project, store, skip_backfill=True)

    with pytest.raises(PlanMoved, match="lacks"):
        plan_and_apply(project, engine, store, plan=plan)
    with store.leases.hold("prod", "test") as lease:
        apply(plan, project, engine, store, lease, ApplyOptions(NOW, lambda event: None, complete=False))

    assert rows(engine, "SELECT * FROM shop.daily") == []


@pytest.mark.prove
def test_days_that_an_earlier_run_recorded_are_not_computed_again(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    project, first, second = write_shop(root), list[Event](), list[Event]()
    plan = make_plan(project, store)

    def cancel_after_two(event: Event) -> None:
        first.append(event)
        if len(batches(first, "shop.daily")) == 2:
            raise Cancelled("the run was cancelled.")

    with pytest.raises(Cancelled):
        plan_and_apply(project, engine, store, emit=cancel_after_two, plan=plan)
    plan_and_apply(project, engine, store, emit=second.append, plan=plan)

    assert batches(second, "shop.daily") == [f"2026-01-0{n} - 2026-01-0{n}" for n in range(3, 6)]
    assert rows(engine, "SELECT total FROM shop.shown") == [(60,)]


@pytest.mark.prove
def test_late_rows_are_looked_for_and_batches_may_run_side_by_side(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    daily = FILES["models/daily.sql"].replace("batch_size 1", "batch_size 1, batch_concurrency 2, lookback 1")
    project, events = write_shop(root, **DAILY, daily=daily), list[Event]()
    table = make_plan(project, store).new.snapshots["shop.daily"].table
    store.intervals.record(table, days(1, 3))

    plan_and_apply(project, engine, store, emit=events.append)

    assert sorted(batches(events, "shop.daily")) == [f"2026-01-0{n} - 2026-01-0{n}" for n in range(3, 6)]
    assert store.intervals.load_timelines([table])[table] == (days(1, 5),)


@pytest.mark.prove
@pytest.mark.parametrize(("batches", "until"), [("1, lookback 1", 3), ("2, lookback 3", 4)])  # a batch of both, too
def test_no_day_is_recorded_beside_a_lookback_that_fails(
    root: Path, engine: SparkEngine, store: StateStore, monkeypatch: pytest.MonkeyPatch, batches: str, until: int
) -> None:
    """The next run would look back from a later day, and the late rows would stay out."""
    daily = FILES["models/daily.sql"].replace("batch_size 1", f"batch_concurrency 2, batch_size {batches}")
    project, run_batch = write_shop(root, **DAILY, daily=daily), TableWriter._run_batch
    table = make_plan(project, store).new.snapshots["shop.daily"].table
    store.intervals.record(table, days(1, until))

    def fail_late(writer: TableWriter, task: BackfillTask, name: Table, todo: tuple[Interval, ...], *more: Any) -> None:
        if task.snapshot.table == table and more[0] == 0:
            time.sleep(1)
            raise QueryError("late rows")
        run_batch(writer, task, name, todo, *more)

    monkeypatch.setattr(TableWriter, "_run_batch", fail_late)
    assert plan_and_apply(project, engine, store).failures
    assert store.intervals.load_timelines([table])[table] == (days(1, until),)


@pytest.mark.parametrize("how", [pytest.param("an event", marks=pytest.mark.prove), "a look"])
def test_cancelling_ends_what_runs_and_keeps_what_was_recorded(
    root: Path, engine: SparkEngine, store: StateStore, how: str
) -> None:
    slow = "MODEL (name shop.apart, kind FULL);\nSELECT count(*) AS seven FROM range(0, 100000000000, 1, 1)"
    project, events = write_shop(root, total="", shown="", apart=slow), list[Event]()

    def five_days() -> None:
        if len(batches(events, "shop.daily")) == 5:
            raise Cancelled("enough")

    def hear(event: Event) -> None:
        events.append(event)
        if how == "an event":
            five_days()

    check = five_days if how == "a look" else lambda: None
    with pytest.raises(Cancelled, match="enough"):
        carry_out(make_plan(project, store), project, engine, store, ApplyOptions(NOW, hear, check=check))

    table = make_plan(project, store).new.snapshots["shop.daily"].table
    assert store.intervals.load_timelines([table])[table] == (days(1, 5),)
    assert not store.environments.get("prod").exists
    assert store.leases.holder("prod") is None


@pytest.mark.prove
def test_the_address_of_sparks_pages_comes_with_the_backfill(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    named = FILES["config.yaml"].replace("type: spark", "type: spark, spark_ui: 'https://h.example/{application_id}/'")
    events: list[Event] = []
    plan_and_apply(write_shop(root, config=named), engine, store, emit=events.append)

    addresses = {event.stage: event.spark_ui for event in events if isinstance(event, StageStarted)}
    assert re.fullmatch(r"https://h\.example/(local|app)-[\w-]+/", addresses[Stage.BACKFILL])
    assert addresses[Stage.PROMOTE] == ""


def test_a_view_takes_its_columns_from_spark_when_the_plan_cannot_know_them(
    root: Path, engine: SparkEngine, store: StateStore
) -> None:
    engine.catalog.swap_view(ViewText("ext.raw", "SELECT 1 AS a, 2 AS b"))

    plan_and_apply(
        write_shop(root, **APART, apart="MODEL (name shop.apart, kind FULL);\nSELECT * FROM ext.raw"), engine, store
    )

    assert rows(engine, "SELECT * FROM shop.apart") == [(1, 2)]


def test_views_bear_the_words_of_their_models_and_follow_them_without_being_computed(
    tmp_path: Path, store: StateStore, engine: SparkEngine
) -> None:
    def model_text(name: str, **words: str) -> str:
        clauses = "".join(f", {key} {text}" for key, text in words.items())
        kind = "VIEW" if name == "shown" else "FULL"
        return f"MODEL (name shop.{name}, kind {kind}{clauses});\nSELECT 7 AS seven, 8 AS eight"

    def words(name: str) -> tuple[list[object], dict[object, object]]:
        table = engine.fetch(f"DESCRIBE shop.{name}").rows
        properties = engine.fetch(f"SHOW TBLPROPERTIES shop.{name} ").rows
        ours = {key: value for key, value in properties if str(key) in ("team", "tier", "mergeplan.properties")}
        return [row[2] for row in table], ours

    first = {"column_descriptions": "(seven = 'odd', eight = 'even')", "virtual_properties": "(team = 'a', tier = 1)"}
    then = {"column_descriptions": "(seven = 'prime')", "virtual_properties": "(tier = 2)", "description": "'x'"}
    for settings, comments, properties in (
        (first, ["odd", "even"], {"team": "a", "tier": "1", "mergeplan.properties": "team,tier"}),
        (then, ["prime", None], {"tier": "2", "mergeplan.properties": "tier"}),
        ({}, [None, None], {}),
    ):
        files = {name: model_text(name, **settings) for name in ("apart", "shown")}
        done = plan_and_apply(write_shop(tmp_path, daily="", items="", total="", **files), engine, store)
        shown = [[comment or None for comment in words(name)[0]] for name in ("apart", "shown")]

        assert shown == [comments, comments]
        assert [words(name)[1] for name in ("apart", "shown")] == [properties, properties]
        assert done.filled.batches == (1 if settings is first else 0)
