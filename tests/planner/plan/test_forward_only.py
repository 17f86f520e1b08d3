"""Forward-only changes on Spark: existing rows stay, and only new days come of the new query."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.janitor import sweep_tables
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.apply.promotion.promotion import drop_environment
from mergeplan.planner.apply.promotion.rollback import apply_rollback, build_rollback
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.plan.build import build_run
from mergeplan.planner.plan.change import Category
from mergeplan.planner.plan.forward_only import ForwardOnly
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.project.loader import Project
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import NOW, make_plan, plan_and_apply, rows, write_shop

pytestmark = pytest.mark.prove

LATER = datetime(2026, 1, 8, 5, tzinfo=UTC)
FORWARD = ForwardOnly(every=True)
HEAD = "MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day%s));\nSELECT id, day"
WHERE = " FROM shop.items WHERE day BETWEEN @start_date AND @end_date"
ITEMS = "MODEL (name shop.items, kind SEED (path '../seeds/more.csv'), columns (id INT, day DATE, price INT));"
MORE = "id,day,price\n1,2026-01-01,10\n2,2026-01-02,20\n3,2026-01-04,30\n4,2026-01-07,40\n"
BEFORE = HEAD % "" + ", price" + WHERE
TAXED = HEAD % "" + ", price, price * 2 AS taxed" + WHERE


def shop(root: Path, daily: str = BEFORE, *, readers: bool = False) -> Project:
    (root / "seeds").mkdir(exist_ok=True)
    (root / "seeds/more.csv").write_text(MORE)
    read = {} if readers else {"total": "", "shown": ""}
    return write_shop(root, daily=daily, apart="", items=ITEMS, **read)


def build(root: Path, engine: Engine, store: StateStore, *, readers: bool = False) -> None:
    plan_and_apply(shop(root, readers=readers), engine, store)


def forward(
    project: Project, engine: Engine, store: StateStore, environment: str = "prod", asked: ForwardOnly = FORWARD
) -> int:
    """Apply a forward-only plan; how many batches it computed."""
    return plan_and_apply(
        project, engine, store, environment, plan=make_plan(project, store, environment, forward=asked)
    ).filled.batches


def ran(project: Project, engine: Engine, store: StateStore, now: datetime = LATER) -> None:
    """What a run of prod does at a later moment."""
    tables = store.tables.all().keys()
    loaded = Loaded(store.intervals.load_timelines(tables), drifted=store.snapshots.tables_with_drift())
    plan_and_apply(project, engine, store, plan=build_run(store.environments.get("prod"), loaded, Window(now)))


def test_a_merge_computes_nothing_keeps_the_rows_and_the_next_run_fills_the_column(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    project = shop(tmp_path, TAXED)

    assert forward(project, engine, store) == 0
    assert rows(engine, "SELECT id, taxed FROM shop.daily ORDER BY id") == [(1, None), (2, None), (3, None)]

    ran(project, engine, store)
    assert rows(engine, "SELECT id, taxed FROM shop.daily ORDER BY id")[3:] == [(4, 80)]


def test_an_environment_shows_a_preview_of_the_last_day_and_promises_what_prod_gets(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    project = shop(tmp_path, TAXED)
    there = make_plan(project, store, "dev", forward=FORWARD)
    daily = next(change for change in there.changes if change.name == "shop.daily")

    assert daily.preview and daily.category is Category.FORWARD_ONLY and daily.new and daily.new.is_preview
    assert [str(interval) for interval in daily.missing] == ["2026-01-05 - 2026-01-05"]
    assert there.digest == make_plan(project, store, forward=FORWARD).digest
    plan_and_apply(project, engine, store, "dev", plan=there)
    assert rows(engine, "SELECT * FROM shop__dev.daily") == []
    assert rows(engine, "SELECT count(*) FROM shop.daily") == [(3,)]
    assert there.digest == make_plan(project, store, forward=FORWARD).digest

    since = Window(NOW, start=datetime(2026, 1, 2, tzinfo=UTC))
    longer = make_plan(project, store, "dev", since, forward=FORWARD)
    plan_and_apply(project, engine, store, "dev", plan=longer)
    assert rows(engine, "SELECT id, taxed FROM shop__dev.daily ORDER BY id") == [(2, 40), (3, 60)]
    assert longer.digest == there.digest


FORMS = """MODEL (
  name shop.daily, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), columns (id INT, day DATE, price INT)
);
SELECT * FROM (SELECT id, day, price FROM shop.items) AS first_run WHERE NOT EXISTS (SELECT 1 FROM shop.daily)
UNION ALL SELECT * FROM (SELECT id, day, %s AS price FROM shop.items) AS later_run
WHERE EXISTS (SELECT 1 FROM shop.daily)"""


def test_a_preview_of_later_runs_copies_prods_rows_and_the_merge_and_the_next_run_go_on_with_prods(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    plan_and_apply(shop(tmp_path, FORMS % "price"), engine, store)
    project = shop(tmp_path, FORMS % "price * 0")
    there = make_plan(project, store, "dev")

    assert [change.rule for change in there.changes] == ["later-form"]
    assert plan_and_apply(project, engine, store, "dev", plan=there).filled.batches == 0
    shown = "SELECT id, price FROM shop__dev.daily ORDER BY id"
    assert rows(engine, shown) == [(1, 10), (2, 20), (3, 30), (4, 40)]
    assert make_plan(project, store, "dev").backfills == ()
    assert plan_and_apply(project, engine, store).filled.batches == 0
    ran(project, engine, store)
    assert rows(engine, "SELECT sum(price) FROM shop.daily") == [(0,)]
    assert sum(price for _, price in rows(engine, shown)) == 100


def test_a_preview_keeps_its_rows_while_prod_runs_and_prod_keeps_its_own_when_it_goes(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    plan_and_apply(shop(tmp_path, FORMS % "price"), engine, store)
    plan_and_apply(shop(tmp_path, FORMS % "price * 0"), engine, store, "dev")

    for day in range(8, 12):
        ran(shop(tmp_path, FORMS % "price"), engine, store, datetime(2026, 1, day, 5, tzinfo=UTC))
        assert rows(engine, "SELECT sum(price) FROM shop__dev.daily") == [(100,)]
    with store.leases.hold("dev", "test") as lease:
        drop_environment(store, engine, lease, emit=ignore_event)
    assert sweep_tables(store, engine, datetime.now(UTC), orphans=True, emit=ignore_event)
    assert rows(engine, "SELECT sum(price) FROM shop.daily") == [(100,)]
    ran(shop(tmp_path, FORMS % "price"), engine, store, datetime(2026, 1, 12, 5, tzinfo=UTC))
    assert rows(engine, "SELECT sum(price) FROM shop.daily") == [(100,)]


def test_a_table_whose_time_was_forgotten_takes_the_kept_rows_over_again(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    project, since = shop(tmp_path, TAXED), ForwardOnly(every=True, since=datetime(2026, 1, 3, tzinfo=UTC))
    forward(project, engine, store, "dev", since)
    table = store.environments.get("dev").snapshots["shop.daily"].table
    with store.leases.hold(table_lease(table), "test") as lease:
        for interval in store.intervals.load_timelines([table])[table]:
            store.intervals.forget(table, interval, lease=lease)

    forward(project, engine, store, asked=since)

    assert [str(timeline) for timeline in store.intervals.load_timelines([table])[table]] == ["2026-01-01 - 2026-01-05"]
    assert rows(engine, "SELECT id, taxed FROM shop.daily ORDER BY id") == [(1, None), (2, None), (3, 60)]


def test_days_before_an_effective_date_that_a_restatement_took_are_copied_from_prod(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    project, since = shop(tmp_path, TAXED), ForwardOnly(every=True, since=datetime(2026, 1, 2, tzinfo=UTC))
    forward(project, engine, store, "dev", since)
    table = store.environments.get("dev").snapshots["shop.daily"].table
    with store.leases.hold(table_lease(table), "test") as lease:
        store.intervals.forget(
            table, Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)), lease=lease
        )

    assert forward(project, engine, store, asked=since) == 1
    assert rows(engine, "SELECT id, taxed FROM shop.daily ORDER BY id") == [(1, None), (2, 40), (3, 60)]


def test_going_back_shows_the_old_rows_and_going_forward_again_the_new_ones(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    project = shop(tmp_path, TAXED)
    forward(project, engine, store)
    ran(project, engine, store)
    with store.leases.hold("prod", "test") as lease:
        apply_rollback(store, engine, lease, build_rollback(store, "prod", None, NOW), emit=ignore_event)
    assert rows(engine, "SELECT * FROM shop.daily ORDER BY id")[-1][0] == 3

    assert forward(project, engine, store) == 0
    assert rows(engine, "SELECT id, taxed FROM shop.daily ORDER BY id") == [(1, None), (2, None), (3, None)]


def test_what_reads_a_forward_only_model_keeps_its_rows_too(tmp_path: Path, engine: Engine, store: StateStore) -> None:
    build(tmp_path, engine, store, readers=True)
    project = shop(tmp_path, BEFORE.replace(", price FROM", ", price * 10 AS price FROM"), readers=True)
    plan = make_plan(project, store, forward=FORWARD)
    total = next(change for change in plan.changes if change.name == "shop.total")

    assert (total.category, total.rule, total.missing) == (Category.FORWARD_ONLY, "reads-forward-only", ())
    plan_and_apply(project, engine, store, plan=plan)
    assert rows(engine, "SELECT total FROM shop.shown") == [(60,)]
    ran(project, engine, store)
    assert rows(engine, "SELECT total FROM shop.shown") == [(460,)]


def test_the_days_from_an_effective_date_on_are_computed_where_they_are_reviewed(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    project = shop(tmp_path, TAXED)
    asked = ForwardOnly(every=True, since=datetime(2026, 1, 2, tzinfo=UTC))

    assert forward(project, engine, store, "dev", asked) > 0
    assert rows(engine, "SELECT id, taxed FROM shop__dev.daily ORDER BY id") == [(1, None), (2, 40), (3, 60)]
    assert rows(engine, "SELECT count(*) FROM shop.daily") == [(3,)]
    assert forward(project, engine, store, "prod", asked) == 0
    assert rows(engine, "SELECT id, taxed FROM shop.daily ORDER BY id") == [(1, None), (2, 40), (3, 60)]


def test_dropping_the_new_table_leaves_the_old_one_whole(tmp_path: Path, engine: Engine, store: StateStore) -> None:
    build(tmp_path, engine, store, readers=True)
    before = store.environments.get("prod").snapshots
    project = shop(tmp_path, BEFORE.replace(", price FROM", ", price * 10 AS price FROM"), readers=True)
    forward(project, engine, store)
    after = store.environments.get("prod").snapshots
    with store.leases.hold("prod", "test") as lease:
        apply_rollback(store, engine, lease, build_rollback(store, "prod", None, NOW), emit=ignore_event)
    for name in ("shop.daily", "shop.total"):
        assert before[name].table != after[name].table
        assert store.tables.all()[after[name].table].reads == (before[name].table,)
        engine.tables.drop(after[name].table)

    assert rows(engine, "SELECT count(*), sum(price) FROM shop.daily") == [(3, 60)]
    assert rows(engine, "SELECT total FROM shop.shown") == [(60,)]


def test_a_wider_type_reads_the_old_rows_and_a_narrower_one_is_refused(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    wider = shop(tmp_path, BEFORE.replace(", price FROM", ", CAST(price AS BIGINT) AS price FROM"))
    assert forward(wider, engine, store) == 0
    assert rows(engine, "SELECT sum(price) FROM shop.daily") == [(60,)]

    text = shop(tmp_path, BEFORE.replace(", price FROM", ", CAST(price AS STRING) AS price FROM"))
    with pytest.raises(ProjectError) as error:
        forward(text, engine, store)
    assert str(error.value.place) == "models/daily.sql:1"
    assert error.value.message == (
        "shop.daily: the rows that a forward-only change keeps hold `price` as bigint, and Spark cannot read that as "
        "string."
    )


def test_a_column_that_goes_is_allowed_by_the_model_or_the_request_and_comes_back_with_its_old_values(
    tmp_path: Path, engine: Engine, store: StateStore
) -> None:
    build(tmp_path, engine, store)
    dropped = shop(tmp_path, HEAD % "" + WHERE)
    blocked = make_plan(dropped, store, forward=FORWARD).blockers
    assert [f"{blocker.place} {blocker.message}" for blocker in blocked] == [
        "models/daily.sql:1 `shop.daily` drops the column `price`, and its change is forward-only. Allow it with "
        "`--allow-destructive-model shop.daily` or `on_destructive_change allow`, or rebuild the table."
    ]

    forward(dropped, engine, store, asked=ForwardOnly(every=True, destructive=("shop.daily",)))
    assert rows(engine, "SELECT * FROM shop.daily WHERE id = 1") == [(1, rows(engine, "SELECT DATE'2026-01-01'")[0][0])]
    forward(shop(tmp_path), engine, store)
    assert rows(engine, "SELECT sum(price) FROM shop.daily") == [(60,)]


def test_a_model_that_ignores_what_goes_keeps_the_column(tmp_path: Path, engine: Engine, store: StateStore) -> None:
    build(tmp_path, engine, store)
    dropped = shop(tmp_path, HEAD % ", forward_only true, on_destructive_change ignore" + WHERE)
    plan = make_plan(dropped, store)
    assert [(c.name, c.rule) for c in plan.changes if c.category is Category.FORWARD_ONLY] == [
        ("shop.daily", "forward-only-model")
    ]

    plan_and_apply(dropped, engine, store, plan=plan)
    ran(dropped, engine, store)
    assert rows(engine, "SELECT id, price FROM shop.daily ORDER BY id") == [(1, 10), (2, 20), (3, 30), (4, None)]


def test_a_crash_while_the_files_are_taken_over_loses_nothing(
    tmp_path: Path, engine: Engine, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, engine, store)
    project = shop(tmp_path, TAXED)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(store.tables, "register", lambda *_args, **_fields: 1 / 0)
        forward(project, engine, store)
    assert rows(engine, "SELECT count(*), sum(price) FROM shop.daily") == [(3, 60)]

    assert forward(project, engine, store) == 0
    assert rows(engine, "SELECT count(*), sum(price), count(taxed) FROM shop.daily") == [(3, 60, 0)]
