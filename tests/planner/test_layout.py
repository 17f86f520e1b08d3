"""How a table's files are written: an edit of it copies rows and computes none."""

from pathlib import Path

import pytest

from mergeplan.planner.apply.events import BatchDone, Event
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Category
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.state.store import StateStore

from .building import change_of, external, make_plan, model, project, promote
from .shop import FILES, NOW, plan_and_apply, rows, write_shop

pytestmark = pytest.mark.prove

DAILY = FILES["models/daily.sql"].replace("batch_size 1", "batch_size 7")
TOTAL = FILES["models/total.sql"].replace("sum(price)", "CAST(sum(price) AS BIGINT)")  # of a known type


def test_another_layout_copies_rows_and_computes_none(tmp_path: Path, engine: SparkEngine, store: StateStore) -> None:
    plan_and_apply(write_shop(tmp_path, daily=DAILY, total=TOTAL), engine, store)
    orc = DAILY.replace("audits (", "storage_format orc,\n  physical_properties (compression = 'zlib'),\n  audits (")
    told = TOTAL.replace("kind FULL", "kind FULL, storage_format orc")
    events = list[Event]()

    plan_and_apply(write_shop(tmp_path, daily=orc, total=told), engine, store, "prod", events.append)

    assert {(e.model, e.copied) for e in events if isinstance(e, BatchDone)} == {
        ("shop.daily", True),
        ("shop.total", True),
    }
    assert rows(engine, "SELECT total FROM shop.total") == [(60,)]
    assert rows(engine, "SELECT id FROM shop.daily ORDER BY id") == [(1,), (2,), (3,)]


def test_readers_of_a_table_that_is_laid_out_anew_keep_theirs() -> None:
    raw, child = external("s.raw", "id x"), model("s.child", "SELECT id FROM s.parent")
    before = project(raw, model("s.parent", "SELECT id, x FROM s.raw"), child)
    after = project(raw, model("s.parent", "SELECT id, x FROM s.raw", storage_format="orc"), child)

    changes = change_of(before, after)

    assert (changes["s.parent"].category, changes["s.parent"].rule) == ("non_breaking", "layout-changed")
    assert [name for name, change in changes.items() if change.recomputed] == ["s.parent"]


def test_nothing_is_copied_from_a_table_that_a_word_kept() -> None:
    raw, child = external("s.raw", "id x"), model("s.child", "SELECT id FROM s.parent")
    prod, loaded = promote(project(raw, model("s.parent", "SELECT id, x FROM s.raw"), child))
    edited = project(raw, model("s.parent", "SELECT id, x FROM s.raw WHERE x > 1"), child)
    said = make_plan(edited, prod, prod, loaded, categories={"s.parent": Category.NON_BREAKING})

    orc = edited | project(model("s.child", child.sql, storage_format="orc"))
    built = {change.new.table: change.needed for change in said.changes if change.new and change.shares is None}
    plan = make_plan(orc, said.new, said.new, Loaded({**loaded.timelines, **built}))

    assert said.new.snapshots["s.child"].forced
    assert [(change.rule, bool(change.missing), change.copies) for change in plan.changes] == [
        ("layout-changed", True, ())
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("storage_format csv", r"models/a\.sql:1: `storage_format csv` is not supported"),
        ("physical_properties (a = 1 + 1)", r"models/a\.sql:1: `1 \+ 1` is not a string, a number, or true or false"),
    ],
)
def test_a_layout_that_cannot_be_is_an_error_at_its_line(said: str, told: str) -> None:
    with pytest.raises(ProjectError, match=told):
        parse_model(f"MODEL (name s.a, {said});\nSELECT 1 AS a", "models/a.sql", Defaults(NOW))


def test_files_of_orc_hold_maps_and_old_moments_otherwise(engine: SparkEngine) -> None:
    values, shown = "map('b', 1, 'a', 2) AS m, timestamp'1969-12-31 23:59:59.5' AS t", {}
    for name in ("parquet", "orc"):
        engine.fetch(f"CREATE TABLE default.{name} USING {name} AS SELECT {values}")
        (shown[name],) = engine.fetch(f"SELECT array_join(map_keys(m), ' '), year(t) FROM default.{name}").rows

    assert shown == {"parquet": ("b a", 1969), "orc": ("a b", 1970)}
