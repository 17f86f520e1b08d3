"""A model that means what it meant is settled without its query being analysed, and as it would be with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.semantics import columns
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.snapshot import known_meaning
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import external, make_plan, model, project, promote
from tests.planner.semantics.test_shape_memory import Kept

RAW = external("s.raw", "id price day")
HUB, WIDER = "SELECT id, price, day FROM s.raw", "SELECT 1 AS more, id, price, day FROM s.raw"
READERS = 5


def models(hub: str = HUB, kind: Kind = Kind.FULL, reader: str = "SELECT id, price FROM s.hub") -> dict[str, Model]:
    """A hub, models that read it, and for each a model that reads that."""
    readers = [model(f"s.reader{number}", f"{reader} WHERE day > {number}", kind) for number in range(READERS)]
    marts = [model(f"s.mart{n}", f"SELECT id, COUNT(*) AS n FROM s.reader{n} GROUP BY id") for n in range(READERS)]
    return project(RAW, model("s.hub", hub), *readers, *marts)


def changes(before: dict[str, Model], after: dict[str, Model], memory: ShapeMemory) -> dict[str, Change]:
    prod, loaded = promote(before, shapes=memory)
    return {c.name: c for c in make_plan(after, Environment("dev"), prod, loaded, shapes=memory).changes}


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that are analysed from now on."""
    queries: list[str] = []
    read = columns._read

    def noted(sql: str, *arguments: Any) -> object:
        queries.append(sql)
        return read(sql, *arguments)

    monkeypatch.setattr(columns, "_read", noted)
    columns._analyze_query.cache_clear()
    return queries


@pytest.mark.parametrize("kind", [Kind.FULL, Kind.VIEW])
def test_a_new_column_of_a_hub_analyses_no_query_downstream(kind: Kind, analysed: list[str]) -> None:
    memory = ShapeMemory(Kept())
    prod, loaded = promote(models(kind=kind), shapes=memory)
    columns._analyze_query.cache_clear()
    analysed.clear()

    plan = make_plan(models(WIDER, kind), Environment("dev"), prod, loaded, shapes=memory)

    assert analysed == [WIDER]
    assert [c.category for c in plan.changes] == [
        Category.NON_BREAKING,
        *2 * READERS * [Category.INDIRECT_NON_BREAKING],
    ]


def test_without_a_memory_only_readers_of_the_hub_are_analysed(analysed: list[str]) -> None:
    prod, loaded = promote(models())
    columns._analyze_query.cache_clear()
    analysed.clear()

    make_plan(models(WIDER), Environment("dev"), prod, loaded)

    assert {sql for sql in analysed if "s.reader" in sql} == set()


@pytest.mark.parametrize(
    ("edit", "reader"),
    [
        (WIDER, "SELECT * FROM s.hub"),
        ("SELECT id, price + 1 AS price, day FROM s.raw", "SELECT id, price FROM s.hub"),
        ("SELECT id, price, day FROM s.raw WHERE id > 7", "SELECT id, price FROM s.hub"),
        ("SELECT id, RAND() AS price, day FROM s.raw", "SELECT id, price FROM s.hub"),
        ("SELECT DISTINCT id, price, day FROM s.raw", "SELECT id, price FROM s.hub"),
        ("SELECT price, id, day FROM s.raw", "SELECT id, price FROM s.hub"),
    ],
)
def test_what_is_settled_is_what_the_rules_say(edit: str, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ShapeMemory(Kept())
    quick = changes(models(reader=reader), models(edit, reader=reader), memory)

    monkeypatch.setattr("mergeplan.planner.plan.category.decide.settle", lambda *_: None)
    assert changes(models(reader=reader), models(edit, reader=reader), memory) == quick


def test_a_table_that_means_another_thing_by_now_is_left_to_the_rules() -> None:
    """As one is that another version of mergeplan computed."""
    memory = ShapeMemory(Kept())
    prod, loaded = promote(models(), shapes=memory)
    old = prod.snapshots["s.reader0"]
    assert old.meaning is not None
    other = replace(old, meaning=replace(old.meaning, rows="by another version"))
    prod = replace(prod, snapshots={**prod.snapshots, "s.reader0": other})

    plan = make_plan(models(WIDER), Environment("dev"), prod, loaded, shapes=memory)

    (change,) = (change for change in plan.changes if change.name == "s.reader0")
    assert change.recomputed


def test_the_key_of_a_meaning_holds_all_of_the_model() -> None:
    memory = ShapeMemory(Kept())
    prod, _ = promote(models(), shapes=memory)
    hub, reader = prod.snapshots["s.hub"], models()["s.reader0"]

    def recall(model: Model, began: str = "") -> object:
        return known_meaning.recall_meaning(model, {"s.hub": hub}, {"s.hub": hub}, began, memory)

    assert recall(reader) is not None
    assert recall(replace_settings(reader, {"grain": ("id",)})) is None
    assert recall(replace(reader, settings=(("spark.sql.ansi.enabled", "false"),))) is None
    assert recall(reader, "2026-01-01") is None
