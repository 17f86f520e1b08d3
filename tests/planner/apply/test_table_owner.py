"""Two states on one Spark: neither writes the tables of the other, nor points its views elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.executor import ApplyOptions
from mergeplan.planner.apply.physical_tables import physical_table
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import Refused
from mergeplan.planner.model.model import Column
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import FILES, NOW, carry_out, make_plan, plan_and_apply, rows, write_shop

APART = dict.fromkeys(("items", "daily", "total", "shown"), "")  # leaves `apart`
VIEW = dict.fromkeys(("items", "daily", "total", "apart"), "") | {
    "shown": "MODEL (name shop.shown, kind VIEW);\nSELECT 1 AS one"
}


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore(f"sqlite:///{tmp_path}/laptop.db")
    yield opened
    opened.close()


def test_another_state_does_not_fill_a_table_that_this_one_made(
    tmp_path: Path, engine: SparkEngine, store: StateStore, laptop: StateStore
) -> None:
    project = write_shop(tmp_path)
    plan_and_apply(project, engine, store)
    with pytest.raises(Refused, match=f"was made by another state, `{store.tables.owner()}`"):
        plan_and_apply(project, engine, laptop, "dev")

    assert laptop.tables.names() == frozenset()
    assert engine.catalog.objects("shop__dev") == frozenset()


@pytest.mark.parametrize("replaces", [False, True])
def test_another_state_does_not_replace_a_view_of_prod(
    tmp_path: Path, engine: SparkEngine, store: StateStore, laptop: StateStore, *, replaces: bool
) -> None:
    plan_and_apply(write_shop(tmp_path, **APART), engine, store)
    edited = write_shop(tmp_path, **(APART | {"apart": FILES["models/apart.sql"].replace("7", "8")}))
    options = ApplyOptions(NOW, ignore_event, "ann", replaces=replaces)
    with pytest.raises(Refused, match="was made by another state"):
        carry_out(make_plan(edited, laptop), edited, engine, laptop, options)

    assert rows(engine, "SELECT seven FROM shop.apart") == [(7,)]


def test_the_view_of_a_view_model_belongs_to_the_state_that_made_it(
    tmp_path: Path, engine: SparkEngine, store: StateStore, laptop: StateStore
) -> None:
    project = write_shop(tmp_path, **VIEW)
    plan_and_apply(project, engine, store)
    with pytest.raises(Refused, match="was made by another state"):
        plan_and_apply(project, engine, laptop, "dev")


def test_a_lost_state_is_replaced_by_one_that_takes_its_id(
    tmp_path: Path, engine: SparkEngine, store: StateStore, laptop: StateStore
) -> None:
    project = write_shop(tmp_path, **APART)
    plan_and_apply(project, engine, store)
    laptop.tables.replace_owner(store.tables.owner())

    assert plan_and_apply(project, engine, laptop).promoted
    assert rows(engine, "SELECT seven FROM shop.apart") == [(7,)]


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_table_of_an_apply_that_was_killed_or_of_an_older_version_is_filled(
    tmp_path: Path, engine: SparkEngine, store: StateStore, *, is_marked: bool
) -> None:
    """It was created, and the state does not know it."""
    project = write_shop(tmp_path, **APART)
    table = make_plan(project, store).new.snapshots["shop.apart"]
    owner = store.tables.owner() if is_marked else ""
    engine.tables.create(replace(physical_table(table, (Column("seven", "int"),)), owner=owner))

    assert engine.catalog.owner(table.table) == owner
    assert plan_and_apply(project, engine, store).promoted
