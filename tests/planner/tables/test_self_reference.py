"""Models that read themselves: each batch builds on what the table held before it, and on nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import BatchDone, Event
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.intervals import build_timeline
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.restatement import interval_in_window, windows_by_model
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.tables.self_reference import own_columns
from tests.planner.building import NOW, change_of, day, external, make_plan, model, project
from tests.planner.daily import Daily

pytestmark = pytest.mark.prove

TOTAL = """MODEL (name shop.t, kind INCREMENTAL_BY_TIME_RANGE (time_column at{more}), start 2026-01-01{columns});
SELECT at, sum(n) AS n, sum(n) + coalesce((SELECT max_by(total, at) FROM shop.t), 0) AS total
FROM (SELECT at, CAST(id AS BIGINT) AS n FROM raw.items WHERE at BETWEEN @start_date AND @end_date)
GROUP BY at
"""
DAYS = ("1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-02'", "4, 'c', date'2026-01-03'")
RAW = external("raw.items", "id name at")


def total(more: str = "", columns: str = "") -> str:
    return TOTAL.format(more=more, columns=columns)


def read(text: str) -> Model:
    parsed, _ = parse_model(text, "models/t.sql", Defaults(NOW))
    assert parsed is not None
    return parsed


def kind_of(text: str) -> Model:
    return read(
        f"MODEL (name shop.t, kind {text}, partitioned_by (id));\nSELECT id FROM raw.items JOIN shop.t USING (id)"
    )


def test_it_is_no_cycle_and_a_batch_is_a_day() -> None:
    parsed = read(total())

    assert (parsed.reads_itself, parsed.depends_on, parsed.batches.batch_size) == (True, ("raw.items",), 1)
    assert read(total(", batch_size 7, batch_concurrency 4")).batches.batch_size == 7
    assert make_plan(project(RAW, parsed), Environment("dev"), Environment("prod")).new.snapshots["shop.t"].columns == (
        "at", "n", "total",
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        "FULL",
        "VIEW",
        "EMBEDDED",
        "SCD_TYPE_2_BY_COLUMN (unique_key id, columns *)",
    ],
)
def test_kinds_that_cannot_are_refused(kind: str) -> None:
    with pytest.raises(ProjectError) as error:
        read(f"MODEL (name shop.t, kind {kind});\nSELECT id FROM shop.t")
    name = kind.partition(" ")[0].rstrip(",")
    assert error.value.message == f"`shop.t` reads itself: that is not supported for kind {name}."


def test_a_statement_cannot_read_the_models_own_table() -> None:
    with pytest.raises(ProjectError) as error:
        read("MODEL (name shop.t, kind FULL);\nCREATE TEMPORARY VIEW v AS SELECT * FROM shop.t;\nSELECT * FROM v")
    assert error.value.message == "A statement of `shop.t` reads `shop.t`: only its query can."


def test_days_before_those_that_are_held_ask_for_everything() -> None:
    models = project(RAW, read(total()))
    table = make_plan(models, Environment("dev"), Environment("prod")).new.snapshots["shop.t"].table
    late = Loaded({table: build_timeline(day("2026-01-05"), day("2026-01-10"))})

    (change,) = (
        c for c in make_plan(models, Environment("dev"), Environment("prod"), late).changes if c.name == "shop.t"
    )

    assert change.missing == build_timeline(day("2026-01-01"), day("2026-01-10"))


def test_a_restatement_goes_on_to_the_end_and_so_does_what_reads_it() -> None:
    own, child = read(total()), model("shop.child", "SELECT total FROM shop.t")
    window = Window(NOW, start=day("2026-01-03"), end=day("2026-01-04"))

    assert interval_in_window(own, window)[0].start == day("2026-01-03")
    assert interval_in_window(own, window)[0].end.year == 9999
    windows = windows_by_model(graph_of(project(RAW, own, child)), {"shop.t", "shop.child"}, window)
    assert (windows["shop.t"].start, windows["shop.child"].end) == (day("2026-01-03"), None)


def test_what_reads_it_is_computed_when_it_is_built_anew() -> None:
    child = model("shop.child", "SELECT total FROM shop.t")
    own, edited = read(total()), read(total().replace("sum(n) AS n", "sum(n) + 0 AS n"))
    changes = change_of(project(RAW, own, child), project(RAW, edited, child))
    sizes = change_of(project(RAW, own), project(RAW, read(total(", batch_size 2"))))

    assert changes["shop.t"].recomputed
    assert changes["shop.child"].recomputed
    assert sizes["shop.t"].recomputed


def test_the_same_query_in_another_layout_is_no_change() -> None:
    changes = change_of(project(RAW, read(total())), project(RAW, read(total().replace("\nFROM", "\n  FROM"))))

    assert not any(change.recomputed for change in changes.values())


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (["void", "void"], "nothing says the type of `id`"),
        (["int", "bigint", "decimal(20,0)", "decimal(21,0)", "decimal(22,0)"], "their types grow with each batch"),
    ],
)
def test_types_that_do_not_follow_must_be_declared(types: list[str], message: str) -> None:
    answers = iter(types)
    own = kind_of("INCREMENTAL_UNMANAGED")
    with pytest.raises(ProjectError) as error:
        own_columns(own, lambda _model, _own: (Column("id", next(answers)),))
    assert error.value.message == f"shop.t reads itself, and its columns cannot be inferred: {message}."
    assert error.value.hint == "Declare them in MODEL: `columns (day DATE, total BIGINT)`."


UNION = """SELECT * FROM (SELECT id, n FROM s.raw) AS first_run WHERE NOT EXISTS (SELECT 1 FROM shop.t)
UNION ALL SELECT * FROM (SELECT id, n FROM s.raw WHERE id > (SELECT max(id) FROM shop.t)) AS later_run"""


def test_a_star_in_a_union_has_the_columns_of_the_first_query() -> None:
    own = replace(kind_of("INCREMENTAL_UNMANAGED"), sql=UNION)
    asked: list[str] = []

    def ask(query: Model, itself: str) -> tuple[Column, ...]:
        asked.append(query.sql)
        return (Column("id", "int"), Column("n", "bigint"))

    assert own_columns(own, ask) == (Column("id", "int"), Column("n", "bigint"))
    assert ["UNION" in sql for sql in asked] == [False, True]


def test_an_error_of_the_first_query_is_said_as_it_is() -> None:
    def ask(query: Model, itself: str) -> tuple[Column, ...]:
        raise QueryError("no column `n`")

    with pytest.raises(QueryError, match="no column `n`"):
        own_columns(replace(kind_of("INCREMENTAL_UNMANAGED"), sql=UNION), ask)


def test_a_star_over_no_union_must_be_declared() -> None:
    own = replace(kind_of("INCREMENTAL_UNMANAGED"), sql="SELECT * FROM shop.t")
    with pytest.raises(ProjectError, match=r"its query returns `\*`"):
        own_columns(own, lambda _model, _own: ())


def test_a_running_total_over_days_and_an_edit(engine: Engine, store: StateStore, tmp_path: Path) -> None:
    shop, seen = Daily(tmp_path, engine, store), list[Event]()
    shop.has(*DAYS)
    shop.run("2026-01-03", total(), emit=seen.append)
    assert shop.rows(columns="at, total") == [("01-01", 1), ("01-02", 3)]
    assert len([event for event in seen if isinstance(event, BatchDone)]) == 2

    shop.run("2026-01-04", total())
    assert shop.rows(columns="at, total") == [("01-01", 1), ("01-02", 3), ("01-03", 7)]

    shop.run("2026-01-04", total().replace("CAST(id AS BIGINT)", "CAST(id * 10 AS BIGINT)"))
    assert shop.rows(columns="at, total") == [("01-01", 10), ("01-02", 30), ("01-03", 70)]


def test_rows_of_days_that_are_forgotten_are_not_read(engine: Engine, store: StateStore, tmp_path: Path) -> None:
    """A restatement from a day on, and a batch that was written and not recorded, look the same to it."""
    shop = Daily(tmp_path, engine, store)
    shop.has(*DAYS)
    shop.run("2026-01-04", total())
    (table,) = store.tables.all()
    shop.has("1, 'a', date'2026-01-01'", "20, 'b', date'2026-01-02'", "4, 'c', date'2026-01-03'")
    with store.leases.hold(f"table:{table}", "test") as lease:
        (gone,) = build_timeline(day("2026-01-02"), day("2026-01-04"))
        store.intervals.forget(table, gone, lease=lease)

    shop.run("2026-01-04", total())

    assert shop.rows(columns="at, total") == [("01-01", 1), ("01-02", 21), ("01-03", 25)]


APPENDED = """MODEL (name shop.t, kind INCREMENTAL_UNMANAGED, start 2026-01-01);
SELECT id, name, 1 + coalesce((SELECT max(n) FROM shop.t), 0) AS n FROM raw.items
WHERE at BETWEEN @start_date AND @end_date
"""
KEYED = APPENDED.replace("INCREMENTAL_UNMANAGED", "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)")


@pytest.mark.parametrize("text", [APPENDED, KEYED], ids=["appended", "by key"])
def test_a_batch_that_was_cut_off_does_not_read_itself(
    text: str, engine: Engine, store: StateStore, tmp_path: Path
) -> None:
    shop = Daily(tmp_path, engine, store)
    shop.has(*DAYS)
    shop.run("2026-01-03", text)
    shop.run("2026-01-04", text)
    (table,) = store.tables.all()
    with store.leases.hold(f"table:{table}", "test") as lease:
        (gone,) = build_timeline(day("2026-01-03"), day("2026-01-04"))
        store.intervals.forget(table, gone, lease=lease)

    shop.run("2026-01-04", text)

    assert shop.rows(columns="id, n") == [(1, 1), (2, 2), (4, 3)]
