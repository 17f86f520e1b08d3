"""An edit of a model's schedule or batches, run: what is kept holds the rows of a build of the edited project.

All edits are those of one project, which is built before and after; beside it the edited project is built from scratch.
The tests that run Spark for it are among those of `make prove`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.semantics.columns import model_shape, shape_of
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.snapshot.schedule_rows import DECIDES, Decides
from mergeplan.planner.state.store import StateStore
from tests.conftest import empty
from tests.planner.building import model
from tests.planner.daily import Daily

NEVER = Decides.NEVER
ITEMS = (
    "1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-01'", "3, 'c', date'2026-01-02'", "4, 'd', date'2026-01-03'",
    "5, NULL, date'2026-01-03'",
)  # fmt: skip
AGAIN = "FROM raw.twice WHERE at BETWEEN @start_date AND @end_date"  # each id on three days
DAYS = "FROM raw.items WHERE at BETWEEN @start_date AND @end_date"
LOCAL, WINDOW = f"SELECT id, name, at {DAYS}", f"SELECT id, at, COUNT(*) OVER () AS n {DAYS}"
GROUPS = f"SELECT id, MAX(at) AS at, COUNT(*) AS n {AGAIN} GROUP BY id"
UNDATED = "SELECT id, name, at FROM raw.items"
HOURS = "FROM raw.hours WHERE ts BETWEEN @start_ts AND @end_ts"  # several in a day
BY_DAY = f"SELECT CAST(ts AS DATE) AS id, COUNT(*) AS n {HOURS} GROUP BY CAST(ts AS DATE)"
BEFORE_END = LOCAL.replace("BETWEEN @start_date AND", ">= @start_date AND at <")  # the last day of each batch is lost
OUTER_DATE = """SELECT i.id, i.at, o.since
    FROM raw.items AS i LEFT JOIN (SELECT id, @start_ds AS since FROM raw.items) AS o ON o.id = i.id
    WHERE i.at BETWEEN @start_date AND @end_date"""
MIDNIGHT = f"SELECT id, ts AS at {HOURS.replace('_ts', '_date')}"  # and all of it but its first moment
OVER_DAY = f"SELECT ts AS at, COUNT(*) OVER (PARTITION BY ts::date) AS n {HOURS}"
TIME = "kind INCREMENTAL_BY_TIME_RANGE (time_column at{})"
KEY = "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id{})"
NULL_KEY = "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, name){})"
HISTORY = "kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [name], forward_only false, disable_restatement false{})"
DELETES = HISTORY.replace("columns", "invalidate_hard_deletes true, columns")
FOUR_HOURS = ", cron '0 */4 * * *'"
WHOLE, VIEW = "kind FULL{}", "kind VIEW{}"
READS_END = "SELECT COUNT(*) AS n, @end_ts AS until FROM raw.items WHERE at <= @end_date"
READS_START = "SELECT COUNT(*) AS n, @start_ds AS since FROM raw.items"
HALF_DAYS = ", batch_size 12), cron '@hourly'"
SIZE, MATCHED = ", batch_size 1", ", when_matched (WHEN MATCHED THEN UPDATE SET target.n = target.n + source.n)"


@dataclass(frozen=True)
class Edit:
    """An edit of a setting: the kind with a place for settings of its brackets, or of the block."""

    setting: str
    kind: str
    query: str
    before: str
    after: str
    changes: bool


EDITS = {
    "time": Edit("batch_size", TIME, LOCAL, "", SIZE, False),
    "time_undated": Edit("batch_size", TIME, UNDATED, "", SIZE, False),
    "time_window": Edit("batch_size", TIME, WINDOW, "", SIZE, True),
    "time_beside_dates": Edit("batch_size", TIME, OUTER_DATE, "", SIZE, True),
    "time_before": Edit("batch_size", TIME, BEFORE_END, "", SIZE, True),
    "time_midnight": Edit("batch_size", TIME, MIDNIGHT, "", SIZE, True),
    "time_limit": Edit("batch_size", TIME, f"{LOCAL} ORDER BY id LIMIT 1", "", SIZE, True),
    "key": Edit("batch_size", KEY, LOCAL, "", SIZE, False),
    "key_hours": Edit("batch_size", KEY.replace("{})", "{}"), BY_DAY, "), cron '@hourly'", HALF_DAYS, True),
    "time_hours": Edit("batch_size", TIME.replace("{})", "{}"), OVER_DAY, "), cron '@hourly'", HALF_DAYS, True),
    "key_groups": Edit("batch_size", KEY, GROUPS, "", SIZE, True),
    "key_counts": Edit("batch_size", KEY.format(f"{MATCHED}{{}}"), GROUPS, ", batch_size 2", SIZE, True),
    "key_window": Edit("batch_size", KEY, WINDOW, "", SIZE, True),
    "key_from": Edit("batch_size", NULL_KEY, "SELECT id, name FROM raw.items WHERE at >= @start_date", "", SIZE, True),
    "key_whole": Edit("batch_size", NULL_KEY, f"SELECT id, name {DAYS} OR TRUE", "", SIZE, True),
    "key_undated": Edit("batch_size", NULL_KEY, UNDATED, "", SIZE, True),
    "key_safe": Edit("batch_size", NULL_KEY.format(", null_safe_key true{}"), UNDATED, "", SIZE, False),
    "key_several": Edit(
        "batch_size", KEY.format(", delete_insert true{}"), f"SELECT id, at {AGAIN}", "", SIZE, True
    ),
    "history": Edit("batch_size", HISTORY, UNDATED, "", SIZE, False),
    "history_dated": Edit("batch_size", DELETES, LOCAL, "", SIZE, True),
    "time_beside": Edit("batch_concurrency", TIME.format(f"{SIZE}{{}}"), LOCAL, "", ", batch_concurrency 2", False),
    "time_lookback": Edit("lookback", TIME, WINDOW, "", ", lookback 1", False),
    "key_lookback": Edit("lookback", KEY, GROUPS, "", ", lookback 1", False),
    "time_forward": Edit("forward_only", TIME, WINDOW, "", ", forward_only true", False),
    "time_restated": Edit("auto_restatement_cron", TIME, WINDOW, "", ", auto_restatement_cron '@weekly'", False),
    "time_partly": Edit("allow_partials", f"{TIME.format('')}{{}}", LOCAL, "", ", allow_partials true", False),
    "time_cron": Edit("cron", f"{TIME.format('')}{{}}", LOCAL, "", ", cron '0 3 * * *'", False),
    "time_unit": Edit("interval_unit", f"{TIME.format('')}{{}}", LOCAL, "", ", interval_unit 'hour'", True),
    "time_start": Edit("start", f"{TIME.format('')}{{}}", LOCAL, "", ", start '2026-01-02'", True),
    "time_end": Edit("end", f"{TIME.format('')}{{}}", LOCAL, ", end '2026-01-01'", ", end '2026-01-02'", True),
    "whole_cron": Edit("cron", WHOLE, READS_END, "", ", cron '@hourly'", True),
    "whole_ticks": Edit("cron", WHOLE, READS_END, "", ", cron '0 6 * * *'", True),
    "whole_zone": Edit("cron", WHOLE, READS_END, "", ", cron_tz 'Asia/Tokyo'", True),
    "whole_unit": Edit(
        "interval_unit", WHOLE, READS_END, FOUR_HOURS, f"{FOUR_HOURS}, interval_unit 'quarter_hour'", True
    ),
    "whole_end": Edit("end", WHOLE, READS_END, ", end '2026-01-01'", ", end '2026-01-02'", True),
    "whole_no_end": Edit("end", WHOLE, READS_END, ", end '2026-01-01'", "", True),
    "whole_start": Edit("start", WHOLE, READS_START, "", ", start '2026-01-03'", False),
    "whole_undated": Edit("cron", WHOLE, UNDATED, "", ", cron '@hourly'", False),
    "whole_partly": Edit("allow_partials", WHOLE, READS_END, "", ", allow_partials true", False),
    "whole_embeds": Edit("cron", WHOLE, "SELECT until FROM SHOP.embedded", "", ", cron '@hourly'", True),
    "viewed": Edit("cron", VIEW, READS_END, "", ", cron '@hourly'", False),
}  # fmt: skip

EMBEDDED = f"MODEL (name SHOP.embedded, kind EMBEDDED);\n{READS_END}"
Rows = dict[str, list[tuple[object, ...]]]


def models(schema: str, *, edited: bool) -> list[str]:
    """The project: a model for each edit, and a reader of each."""
    texts = [EMBEDDED]
    for name, edit in EDITS.items():
        kind = edit.kind.format(edit.after if edited else edit.before)
        texts.append(f"MODEL (name SHOP.{name}, {kind});\n{edit.query}")
        texts.append(f"MODEL (name SHOP.of_{name}, kind FULL);\nSELECT * FROM SHOP.{name}")
    return [text.replace("SHOP", schema) for text in texts]


@dataclass(frozen=True)
class Found:
    """Which models got another table, and what the project and one that was built from scratch show."""

    moved: frozenset[str]
    shown: Rows
    built: Rows


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine) -> Iterator[Found]:
    """All edits, applied to a project that is built; and the edited project, built from scratch."""
    folder = tmp_path_factory.mktemp("schedules")
    stores = [StateStore(f"sqlite:///{folder}/{name}.db") for name in ("shop", "scratch")]
    shop, scratch = (
        Daily(folder / name, shared_engine, store) for name, store in zip(("shop", "scratch"), stores, strict=True)
    )
    shop.has(*ITEMS)
    twice = " UNION ALL ".join(f"SELECT id, date'2026-01-0{day}' AS at FROM raw.items" for day in (1, 2, 3))
    shared_engine.fetch(f"CREATE OR REPLACE VIEW raw.twice AS {twice}")
    hours = "SELECT id, CAST(at AS TIMESTAMP) + make_dt_interval(0, id * 6) AS ts FROM raw.items"
    shared_engine.fetch(f"CREATE OR REPLACE VIEW raw.hours AS {hours} WHERE id < 4")
    twice_columns, hours_columns = "columns: {id: int, at: date}", "columns: {id: int, ts: timestamp}"
    external = f"\n- name: raw.twice\n  {twice_columns}\n- name: raw.hours\n  {hours_columns}\n"
    shop.external = scratch.external = external
    tables = []
    for edited in (False, True):
        shop.run("2026-01-04", *models("shop", edited=edited)).raise_failure()
        prod = shop.store.environments.get("prod")
        tables.append({name: snapshot.table for name, snapshot in prod.snapshots.items()})
    scratch.run("2026-01-04", *models("scratch", edited=True)).raise_failure()
    names = [name.removeprefix("shop.") for name in tables[1] if name.startswith("shop.") and "embedded" not in name]
    shown, built = (
        {name: project.rows(f"{schema}.{name}") for name in names}
        for project, schema in ((shop, "shop"), (scratch, "scratch"))
    )
    moved = frozenset(name for name in names if tables[0][f"shop.{name}"] != tables[1][f"shop.{name}"])
    yield Found(moved, shown, built)
    for store in stores:
        store.close()
    empty(shared_engine)


@pytest.mark.prove
@pytest.mark.parametrize("name", EDITS)
def test_prod_holds_what_a_build_of_the_edited_project_holds(name: str, outcome: Found) -> None:
    assert outcome.shown[name] == outcome.built[name]
    assert outcome.shown[f"of_{name}"] == outcome.built[f"of_{name}"]


@pytest.mark.prove
@pytest.mark.parametrize("name", [name for name, edit in EDITS.items() if edit.kind is not VIEW])
def test_a_table_is_kept_where_the_edit_cannot_change_its_rows(name: str, outcome: Found) -> None:
    assert (name in outcome.moved) == EDITS[name].changes


@pytest.mark.prove
@pytest.mark.parametrize(("before", "days"), [(", end '2026-01-01'", 1), (", cron '@weekly'", 0)])
def test_days_that_a_plan_leaves_out_are_filled_by_the_next_run(
    tmp_path: Path, engine: SparkEngine, store: StateStore, before: str, days: int
) -> None:
    daily = Daily(tmp_path, engine, store)
    edited = f"MODEL (name shop.t, {TIME.format('')}, start '2026-01-01');\n{LOCAL}"
    daily.has(*ITEMS)
    shown = []
    for text in (edited.replace(", start", f"{before}, start"), edited, edited):  # the last is no edit, but a run
        daily.run("2026-01-03", text).raise_failure()
        shown.append(daily.rows("shop.t"))

    assert shown[0] == shown[1] and len({row[2] for row in shown[1]}) == days
    assert shown[2] == [row for row in daily.rows("raw.items") if str(row[2]) < "01-03"]


@pytest.mark.parametrize("setting", DECIDES)
def test_each_setting_that_never_decides_is_edited_here(setting: str) -> None:
    edited = {edit.setting for edit in EDITS.values()}

    assert setting in edited | {"signals", "disable_restatement", "auto_restatement_intervals"}


@pytest.mark.parametrize(
    ("query", "by_batch"),
    [
        (LOCAL, False),
        (UNDATED, False),
        (f"SELECT id, at, COUNT(*) AS n {DAYS} GROUP BY id, at", False),
        (f"SELECT id, COUNT(*) AS n {DAYS} GROUP BY id", True),
        (WINDOW, True),
        (BEFORE_END, True),
        (f"{LOCAL} OR TRUE", True),
        (f"SELECT id, COUNT(*) OVER (PARTITION BY at) AS n {DAYS}", False),
        (f"SELECT DISTINCT id {DAYS}", True),
        (f"{LOCAL} ORDER BY id LIMIT 3", True),
        (f"SELECT id, @end_ds AS e {DAYS}", True),
        ("SELECT id FROM raw.items WHERE at >= @start_date", True),
        (f"{LOCAL} UNION ALL {LOCAL}", True),
        ("SELECT id FROM raw.items WHERE at IN (SELECT MAX(at) FROM raw.items WHERE at <= @end_date)", True),
    ],
)
def test_a_query_says_whether_what_a_batch_covers_shows_in_its_rows(query: str, by_batch: bool) -> None:
    shape = shape_of(query, {"raw.items": Parent(("id", "name", "at"), types=(("at", "date"),))})

    assert shape.by_batch == by_batch


@pytest.mark.parametrize("time_column", ["", "at"])
@pytest.mark.parametrize(
    ("cron", "partition", "by_batch"),
    [
        ("@hourly", "ts::date", True),
        ("@hourly", "TO_DATE(ts)", True),
        ("@hourly", "CAST(ts AS STRING)", False),
        ("@daily", "ts::date", False),
        ("@daily", "TRY_CAST(ts AS INT)", True),
    ],
)
def test_batches_of_hours_show_where_rows_of_a_day_are_taken_together(
    cron: str, partition: str, by_batch: bool, time_column: str
) -> None:
    kind = Kind.INCREMENTAL_BY_TIME_RANGE if time_column else Kind.INCREMENTAL_BY_UNIQUE_KEY
    query = f"SELECT ts AS at, COUNT(*) OVER (PARTITION BY {partition}) AS n {HOURS}"
    shape = model_shape(
        model("s.t", query, kind, cron=Cron(cron), time_column=time_column),
        {"raw.hours": Parent(("id", "ts"), types=(("ts", "timestamp"),))},
    )

    assert shape.by_batch == by_batch
    assert bool(shape.volatile_rows or shape.volatile) == (by_batch and bool(time_column))


@pytest.mark.parametrize(("written", "type_", "by_batch"), [
    ("", "string", False), ("yyyy-MM-dd", "string", False), ("yyyy-MM-dd HH", "string", True),
    ("yyyy-MM-dd HH", "date", False),
])  # fmt: skip
def test_texts_that_are_times_are_lost_by_a_filter_of_days(written: str, type_: str, by_batch: bool) -> None:
    daily = model("s.t", LOCAL, Kind.INCREMENTAL_BY_TIME_RANGE, time_column="at", time_format=written)
    shape = model_shape(daily, {"raw.items": Parent(("id", "name", "at"), types=(("at", type_),))})

    assert (shape.by_batch, shape.volatile_rows) == (by_batch, by_batch)
