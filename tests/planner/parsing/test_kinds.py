"""Kinds that are filled in order, in the pure part: what they are, when they are filled, what they may not lose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.intervals import Cron, build_timeline
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import History, Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.meaning import meaning_of
from mergeplan.planner.snapshot.snapshot import Meaning
from tests.planner.building import NOW, change_of, day, external, make_plan, model, project, promote

RAW = external("s.raw", "id name at")
START = {"start": day("2026-01-01")}


def keyed_model(sql: str = "SELECT id, name FROM s.raw", **fields: Any) -> Model:
    return model("s.t", sql, Kind.INCREMENTAL_BY_UNIQUE_KEY, **({"unique_key": ("id",)} | START | fields))


def historic(sql: str = "SELECT id, name FROM s.raw", **fields: Any) -> Model:
    defaults = {"unique_key": ("id",), "history": History(columns=("name",)), "forward_only": True} | START
    return model("s.t", sql, Kind.SCD_TYPE_2_BY_COLUMN, **(defaults | fields))


def kind(text: str, more: str = "") -> Model:
    text = f"MODEL (name s.t, kind {text}{more});\nSELECT 1 AS id, 2 AS n"
    parsed, _ = parse_model(text, "models/t.sql", Defaults(NOW))
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("text", "forward_only", "disable_restatement"),
    [
        ("INCREMENTAL_BY_TIME_RANGE (time_column id)", False, False),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", False, False),
        ("INCREMENTAL_BY_PARTITION", True, False),
        ("INCREMENTAL_UNMANAGED", True, True),
        ("SCD_TYPE_2 (unique_key id)", True, True),
        ("SCD_TYPE_2_BY_COLUMN (unique_key id, columns *)", True, True),
        ("SCD_TYPE_2_BY_TIME (unique_key id, forward_only false, disable_restatement false)", False, False),
    ],
)
def test_kinds_have_the_defaults_of_sqlmesh(text: str, forward_only: bool, disable_restatement: bool) -> None:
    parsed = kind(text, ", partitioned_by (id)")

    assert (parsed.policy.forward_only, parsed.policy.disable_restatement) == (forward_only, disable_restatement)
    assert parsed.storage.partitioned_by == ("id",)


@pytest.mark.parametrize(
    "text",
    [
        "(WHEN MATCHED AND source.n IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET target.n = source.n)",
        "WHEN MATCHED AND __MERGE_SOURCE__.n IS NULL THEN DELETE, WHEN MATCHED THEN UPDATE SET n = source.n",
        "(WHEN MATCHED AND DBT_INTERNAL_SOURCE.n IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET N = source.N)",
    ],
)
def test_every_spelling_of_when_matched_is_the_same_merge(text: str) -> None:
    parsed = kind(f"INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, COALESCE(n, 0)), when_matched {text})")

    assert parsed.by_key.unique_key == ("id", "COALESCE(n, 0)")
    assert parsed.by_key.when_matched == (
        "WHEN MATCHED AND source.n IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET target.n = source.n"
    )


@pytest.mark.parametrize("other", ["when_matched (WHEN MATCHED THEN DELETE)", "merge_filter target.id > 1"])
def test_a_key_whose_rows_are_replaced_together_updates_none(other: str) -> None:
    assert kind("INCREMENTAL_BY_UNIQUE_KEY (unique_key id, delete_insert true)").by_key.delete_insert
    with pytest.raises(ProjectError, match="does not go with `delete_insert`"):
        kind(f"INCREMENTAL_BY_UNIQUE_KEY (unique_key id, delete_insert true, {other})")


def test_all_columns_but_some_may_be_updated() -> None:
    when = "WHEN MATCHED THEN UPDATE SET * EXCEPT (Made, `by`)"

    assert kind(f"INCREMENTAL_BY_UNIQUE_KEY (unique_key id, when_matched ({when}))").by_key.when_matched == (
        "WHEN MATCHED THEN UPDATE SET * EXCEPT (made, `by`)"
    )


def test_partitions_are_columns_and_expressions() -> None:
    parsed = kind("FULL", ", partitioned_by (ID, days(at), bucket(4, id), truncate(3, n), cast(n as date))")

    assert parsed.storage.partitioned_by == ("id", "days(at)", "bucket(4, id)", "truncate(3, n)", "CAST(n AS DATE)")


def test_readers_of_a_table_that_is_order_dependent_are_computed_when_it_is_built_anew() -> None:
    child = model("s.child", "SELECT id FROM s.t")
    changes = change_of(
        project(RAW, keyed_model(), child), project(RAW, keyed_model("SELECT id, name, at FROM s.raw"), child)
    )

    assert changes["s.child"].recomputed
    assert changes["s.t"].recomputed


def test_the_columns_of_a_history_can_be_read() -> None:
    child = model("s.child", "SELECT id, valid_from FROM s.t WHERE valid_to IS NULL")

    prod, _ = promote(project(RAW, historic(), child))

    assert prod.snapshots["s.t"].columns == ("id", "name", "valid_from", "valid_to")
    assert prod.snapshots["s.child"].columns == ("id", "valid_from")


def test_the_columns_of_a_history_have_names_and_types_that_readers_decide_by() -> None:
    def meaning(history: History) -> Meaning:
        digests = {"s.raw": TableDigest("rows", {"id": "i", "name": "n", "at": "a"})}
        kept = historic(history=history)
        return meaning_of(kept, model_shape(kept, {"s.raw": Parent(("id", "name", "at"))}), digests, "")

    plain, dated, renamed = meaning(History()), meaning(History(type="DATE")), meaning(History("since", "until"))

    assert list(plain.table_digest.columns) == ["id", "name", "valid_from", "valid_to"]
    assert list(renamed.table_digest.columns) == ["id", "name", "since", "until"]
    assert (plain.types[-2:], dated.types[-2:]) == (
        (("valid_from", "timestamp"), ("valid_to", "timestamp")),
        (("valid_from", "date"), ("valid_to", "date")),
    )
    assert not set(plain.table_digest.columns.values()) & {
        dated.table_digest.columns[column] for column in ("valid_from", "valid_to")
    }
    assert plain.table_digest.columns["valid_from"] != plain.table_digest.columns["valid_to"]


def test_days_before_those_that_are_held_ask_for_everything() -> None:
    models = project(RAW, keyed_model(batch_size=1))
    prod, _ = promote(models)
    table = prod.snapshots["s.t"].table
    late = Loaded({table: build_timeline(day("2026-01-05"), day("2026-01-10"))})

    (change,) = (c for c in make_plan(models, Environment("dev"), Environment("prod"), late).changes if c.name == "s.t")

    assert change.missing == change.needed == build_timeline(day("2026-01-01"), day("2026-01-10"))


def test_a_plan_for_some_days_fills_a_table_of_its_own() -> None:
    models = project(RAW, keyed_model())
    whole = make_plan(models, Environment("dev"), Environment("prod")).new.snapshots["s.t"]
    window = Window(NOW, start=day("2026-01-05"))

    plan = make_plan(models, Environment("dev"), Environment("prod"), window=window)

    (change,) = (c for c in plan.changes if c.name == "s.t")
    assert change.preview
    assert plan.new.snapshots["s.t"].version != whole.version


@pytest.mark.parametrize(
    "changed", [{"partitioned_by": ("name",)}, {"clustered_by": ("id",)}, {"storage_format": "orc"}]
)
def test_another_layout_copies_the_table_with_its_history(changed: dict[str, Any]) -> None:
    models = project(RAW, historic())
    prod, loaded = promote(models)

    plan = make_plan(project(RAW, historic(**changed)), Environment("dev"), prod, loaded)

    (change,) = plan.changes
    assert (change.rule, change.copies == change.missing, plan.blockers) == ("layout-changed", True, ())
    old = prod.snapshots["s.t"]
    assert plan.relies[old.table] == loaded.timeline_of(old)  # a restatement of what is copied from would be lost


def test_partitions_say_which_rows_stay_where_batches_replace_them() -> None:
    by = {"partitioned_by": ("id",)} | START
    sql = "SELECT id, name FROM s.raw"
    before = project(RAW, model("s.t", sql, Kind.INCREMENTAL_BY_PARTITION, **by))
    after = project(RAW, model("s.t", sql, Kind.INCREMENTAL_BY_PARTITION, **(by | {"partitioned_by": ("name",)})))

    assert change_of(before, after)["s.t"].rule == "settings-changed"


def test_history_is_not_lost_without_a_word() -> None:
    prod, loaded = promote(project(RAW, historic()))
    edited = historic("SELECT id, upper(name) AS name FROM s.raw")
    other = historic(history=History(updated_at="name"))
    other = replace(other, kind=Kind.SCD_TYPE_2_BY_TIME)

    kept = make_plan(project(RAW, edited), Environment("dev"), prod, loaded)
    lost = make_plan(project(RAW, other), Environment("dev"), prod, loaded)
    not_forward = project(RAW, replace_settings(other, {"forward_only": False}))
    planned_again = make_plan(not_forward, Environment("dev"), prod, loaded)

    assert [change.category for change in kept.changes] == ["forward_only"]
    assert [blocker.message for blocker in lost.blockers] == [
        "`s.t` would lose its history: a new table begins with what its sources hold now. "
        "Write `forward_only false` in its kind to start a new history."
    ]
    assert kept.blockers == planned_again.blockers == ()


def test_history_is_not_lost_either_where_no_day_is_due_yet() -> None:
    prod, loaded = promote(project(RAW, historic()))
    other = replace(historic(history=History(updated_at="name"), start=NOW), kind=Kind.SCD_TYPE_2_BY_TIME)
    lost = make_plan(project(RAW, other), Environment("dev"), prod, loaded)

    assert [change.needed for change in lost.changes] == [()]
    assert "would lose its history" in lost.blockers[0].message


def test_what_begins_or_ends_a_version_holds_from_the_edit_on() -> None:
    prod, loaded = promote(project(RAW, historic()))
    edited = historic(history=History(columns=("id", "name"), invalidates_deleted=True))
    plan = make_plan(project(RAW, edited), Environment("dev"), prod, loaded)

    assert [change.category for change in plan.changes] == ["forward_only"]
    assert plan.blockers == ()


def test_settings_that_no_other_test_names_are_read() -> None:
    parsed = kind("SCD_TYPE_2 (unique_key id, on_additive_change ignore, auto_restatement_cron '@weekly')")

    assert (parsed.policy.on_additive_change, parsed.policy.auto_restatement_cron) == ("ignore", Cron("@weekly"))
    with pytest.raises(ProjectError, match=r"models/t\.sql:1: `weekly` is not a cron expression"):
        kind("SCD_TYPE_2 (unique_key id, auto_restatement_cron 'weekly')")


def test_a_preview_of_more_days_is_another_table() -> None:
    ranged = model("s.t", "SELECT id, at FROM s.raw", Kind.INCREMENTAL_BY_TIME_RANGE, time_column="at", **START)
    models = project(RAW, ranged, model("s.child", "SELECT COUNT(*) AS n FROM s.t"))

    few, more = (
        make_plan(
            models, Environment("dev"), Environment("prod"), window=Window(NOW, day("2026-01-09"), min_intervals=n)
        )
        for n in (0, 5)
    )

    tables = [[plan.new.snapshots[name].table for plan in (few, more)] for name in ("s.t", "s.child")]
    assert tables[0][0] == tables[0][1]
    assert tables[1][0] != tables[1][1]


def test_a_first_day_that_comes_from_afar_is_another_one_when_it_moves_there() -> None:
    def shop(start: str) -> dict[str, Model]:
        return project(
            RAW,
            model("s.far", "SELECT id, at FROM s.raw", start=day(start)),
            model("s.near", "SELECT id, at FROM s.far", Kind.VIEW),
            model("s.t", "SELECT id, at FROM s.near", Kind.INCREMENTAL_BY_TIME_RANGE, time_column="at"),
        )

    changes = change_of(shop("2026-01-05"), shop("2026-01-03"))

    assert changes["s.t"].recomputed
    assert changes["s.t"].rule == "starts-elsewhere"
