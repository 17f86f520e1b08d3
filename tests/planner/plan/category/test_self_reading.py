"""A model that reads itself is followed through its batches: what an edit above it, or of it, does to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.category.self_reading import read_old_meanings
from mergeplan.planner.plan.change import Category
from mergeplan.planner.semantics.columns import model_shape, shape_of
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import change_of, external, make_plan, model, project, promote

RAW = external("raw.t", "id day x y")
SOURCE = "SELECT id, day, x, y FROM raw.t"
FIRST = "SELECT id, day, x FROM s.src"
LATER = f"{FIRST} WHERE day > (SELECT MAX(day) FROM s.m)"
TWO = (
    "SELECT * FROM ({}) AS first_run WHERE NOT EXISTS (SELECT 1 FROM s.m)\n"
    "UNION ALL SELECT * FROM ({}) AS later_run WHERE EXISTS (SELECT 1 FROM s.m)"
)


def by_key(first: str = FIRST, later: str = LATER) -> Model:
    made = model("s.m", TWO.format(first, later), Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",), reads_itself=True)
    return replace(made, depends_on=("s.src",))


def models(source: str = SOURCE, made: Model | None = None) -> dict[str, Model]:
    return project(RAW, model("s.src", source), made or by_key(), model("s.mart", "SELECT x FROM s.m"))


@pytest.mark.parametrize("source", [f"{SOURCE[:6]} 1 AS added, {SOURCE[7:]}", SOURCE.replace(", y", ", y + 1 AS y")])
def test_a_column_that_neither_form_reads_changes_nothing(source: str) -> None:
    changes = change_of(models(), models(source))

    assert (changes["s.m"].rule, changes["s.m"].recomputed) == ("reads-nothing-changed", False)
    assert not changes["s.mart"].recomputed


@pytest.mark.parametrize(
    ("source", "read"),
    [(SOURCE.replace(" x", " x + 1 AS x"), "x"), (SOURCE.replace("day", "DATE_ADD(day, 1) AS day"), "day")],
)
def test_a_column_that_either_form_reads_computes_it_anew(source: str, read: str) -> None:
    changes = change_of(models(), models(source))

    assert changes["s.m"].recomputed
    assert f"`s.src.{read}`" in changes["s.m"].reason


@pytest.mark.parametrize(
    "made",
    [
        by_key(first=f"{FIRST} WHERE id > 1"),
        by_key(first=f"{FIRST} WHERE id > 1", later=f"{LATER} AND id > 1"),
        by_key(later=LATER.replace(" x ", " x + 1 AS x ")),  # which may be of another type
    ],
)
def test_an_edit_that_may_reach_the_rows_that_are_there_computes_it_anew(made: Model) -> None:
    changes = change_of(models(), models(made=made))

    assert changes["s.m"].category is Category.BREAKING
    assert changes["s.mart"].recomputed


@pytest.mark.parametrize(
    "later",
    [
        LATER.replace(">", ">="),
        LATER.replace("MAX", "MIN"),
        f"SELECT * FROM ({FIRST}) AS t WHERE id NOT IN (SELECT id FROM s.m)",
    ],
)
def test_an_edit_of_the_later_form_alone_keeps_all_rows(later: str) -> None:
    changes = change_of(models(), models(made=by_key(later=later)))

    assert (changes["s.m"].category, changes["s.m"].rule) == (Category.FORWARD_ONLY, "later-form")
    assert "Only its query of later runs changed: existing rows stay." in changes["s.m"].reason
    assert not changes["s.mart"].forward or not changes["s.mart"].recomputed


@pytest.mark.parametrize(
    ("made", "source"),
    [
        (by_key(later=LATER.replace(">", ">=")), SOURCE.replace("day", "DATE_ADD(day, 1) AS day")),
        (replace_settings(by_key(later=LATER.replace(">", ">=")), {"unique_key": ("x",)}), SOURCE),
        (by_key(later=f"{LATER} AND x <> ') AS first_run'"), SOURCE),
        (replace_settings(by_key(later=LATER.replace(">", ">=")), {"misread": "x"}), SOURCE),
    ],
)
def test_a_later_form_that_changes_with_something_else_is_judged_as_any_edit(made: Model, source: str) -> None:
    assert change_of(models(), models(source, made))["s.m"].recomputed


def test_a_column_that_goes_and_that_the_first_form_reads_blocks_at_its_line() -> None:
    prod, loaded = promote(models())
    plan = make_plan(models(SOURCE.replace(", x", "")), Environment("dev"), prod, loaded)

    (blocker,) = plan.blockers
    assert blocker.message == "`s.m` reads `x`, which this change removes from `s.src`."


def test_a_person_may_rebuild_what_the_later_form_keeps() -> None:
    made = by_key(later=LATER.replace(">", ">="))

    assert change_of(models(), models(made=made), s__m=Category.BREAKING)["s.m"].recomputed


@pytest.mark.parametrize(
    ("made", "form"),
    [
        (by_key(first=f"{FIRST} WHERE id > 1"), "Its query of a first run changed."),
        (by_key(f"{FIRST} WHERE id > 1", f"{LATER} AND id > 1"), "Its query of a first run and that of later runs"),
        (by_key(later=LATER.replace(" x ", " x + 1 AS x ")), "Its query of later runs changed."),
    ],
)
def test_the_reason_names_the_form_that_was_edited(made: Model, form: str) -> None:
    assert form in change_of(models(), models(made=made))["s.m"].reason


@pytest.mark.parametrize("kind", [Kind.INCREMENTAL_BY_UNIQUE_KEY, Kind.INCREMENTAL_UNMANAGED])
def test_a_star_over_another_table_is_followed_beside_the_own_one(kind: Kind) -> None:
    made = model("s.m", "SELECT * FROM s.src WHERE day > (SELECT MAX(day) FROM s.m)", kind, reads_itself=True)

    shape = model_shape(replace(made, depends_on=("s.src",)), {"s.src": Parent(("id", "day"))})

    assert shape.columns == ("id", "day")
    assert shape.reads["s.src"].outputs == {"id": {"id"}, "day": {"day"}}


@pytest.mark.parametrize("star", ["*", "m.*", "src.*, m.*"])
def test_a_star_over_the_own_table_is_not_guessed(star: str) -> None:
    made = model("s.m", f"SELECT {star} FROM s.src JOIN s.m ON s.m.day = src.day", Kind.INCREMENTAL_UNMANAGED)

    shape = model_shape(replace(made, reads_itself=True, depends_on=("s.src",)), {"s.src": Parent(("id", "day"))})

    assert shape.columns is None


def test_a_column_that_is_carried_on_by_itself_is_made_from_what_that_was_made_from() -> None:
    made = model("s.m", "SELECT t.x AS a, t.y AS b FROM s.src AS t", reads_itself=True)
    carried = replace(
        made, sql="SELECT t.x AS a, COALESCE(m.a, m.b) AS b FROM s.src AS t LEFT JOIN s.m AS m ON m.a = t.x"
    )

    shape = model_shape(carried, {"s.src": Parent(("id", "day", "x", "y"))})

    assert shape.reads["s.src"].outputs["b"] == {"x"}
    assert shape.reads.keys() == {"s.src"}
    own = shape_of(carried.sql, {"s.src": Parent(("x", "y")), "s.m": Parent(("a", "b"))}).own
    assert own and shape.own
    assert shape.own.columns["b"] != own.columns["b"]


@pytest.mark.parametrize("way", [0, 1])
def test_what_a_state_knows_by_its_text_is_kept_until_it_is_computed_anew(way: int) -> None:
    prod, loaded = promote(models())
    snapshots = dict(prod.snapshots)
    shape = model_shape(by_key(), {"s.src": snapshots["s.src"].as_parent})
    known = read_old_meanings(by_key(), shape, snapshots, "")[way]
    names = snapshots["s.m"].columns if known.columns else None
    snapshots["s.m"] = replace(snapshots["s.m"], meaning=known, columns=names)
    old = replace(prod, snapshots=snapshots)

    plan = make_plan(models(f"{SOURCE[:6]} 1 AS added, {SOURCE[7:]}"), Environment("dev"), old, loaded)

    changes = {change.name: change for change in plan.changes}
    assert [changes[name].recomputed for name in ("s.src", "s.m")] == [True, False]
    assert changes["s.m"].new and changes["s.m"].new.meaning == known


def test_what_is_not_followed_is_named_with_the_form_that_has_it() -> None:
    later = (
        f"WITH RECURSIVE r AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM r WHERE id < 3) {FIRST} JOIN r USING (id)"
    )

    shape = model_shape(by_key(later=later), {"s.src": Parent(("id", "day", "x"))})

    assert shape.obstacle == "a recursive CTE, in the query of later runs"
