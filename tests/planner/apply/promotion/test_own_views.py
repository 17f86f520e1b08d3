"""Views that others made, in the places of a model's views: they are not replaced unasked, and never dropped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.apply.promotion.recovery import recover_promotions
from mergeplan.planner.engine.protocol import ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.promotions import SwapOptions
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot

ID = (Column("id", "int"),)


@pytest.fixture
def build_table(store: StateStore, engine: SparkEngine) -> Callable[[str], Snapshot]:
    """Builds the table of a snapshot, with the row 1."""

    def build(name: str) -> Snapshot:
        made = snapshot(name, "v1")
        engine.tables.create(Table(made.table, ID))
        engine.tables.replace(Table(made.table, ID), "SELECT 1 AS id")
        store.tables.register(made.table, ID)
        return made

    return build


def view_values(engine: SparkEngine, *views: str) -> list[object]:
    return [engine.fetch(f"SELECT * FROM {view}").rows[0][0] for view in views]


def promote_to(store: StateStore, engine: SparkEngine, new: Environment, *, replaces: bool = False) -> None:
    with store.leases.hold(new.name, "test") as lease:
        wanted = Wanted(store.environments.get(new.name), new, "p1", "ann", swap=SwapOptions(replaces=replaces))
        promote_views(store, engine, lease, wanted, emit=ignore_event)


def test_a_view_of_others_in_the_place_of_a_new_one_forbids_the_promotion_and_stays(
    store: StateStore, engine: SparkEngine, build_table: Callable[[str], Snapshot]
) -> None:
    engine.catalog.swap_view(ViewText("s.b", "SELECT 7 AS other"))

    with pytest.raises(QueryError, match="a view that mergeplan did not make"):
        promote_to(store, engine, environment("prod", build_table("s.a"), build_table("s.b"), build_table("s.c")))

    assert (view_values(engine, "s.b"), engine.catalog.objects("s")) == ([7], {"b"})
    assert store.promotions.pending() == ()


@pytest.mark.parametrize(("replaces", "left"), [(True, ["a", "b"]), (False, ["b"])])
def test_a_promotion_that_was_cut_off_knows_its_own_views_from_others(
    store: StateStore, engine: SparkEngine, build_table: Callable[[str], Snapshot], *, replaces: bool, left: list[str]
) -> None:
    a, b = build_table("s.a"), build_table("s.b")
    engine.catalog.swap_view(ViewText("s.a", f"SELECT `id` FROM `mergeplan__s`.`{a.table.rpartition('.')[2]}`"))
    engine.catalog.swap_view(ViewText("s.b", "SELECT 7 AS other"))
    with store.leases.hold("prod", "test") as lease:
        store.promotions.begin(
            lease, Environment("prod"), environment("prod", a, b), swap=SwapOptions(replaces=replaces)
        )

    recover_promotions(store, engine, ignore_event)

    assert (engine.catalog.objects("s"), view_values(engine, "s.b")) == (set(left), [1 if replaces else 7])


def test_a_view_that_an_earlier_state_left_is_ours(
    store: StateStore, engine: SparkEngine, build_table: Callable[[str], Snapshot]
) -> None:
    a = build_table("s.a")
    engine.catalog.swap_view(ViewText("s.a", f"SELECT `id` FROM `mergeplan__s`.`{a.table.rpartition('.')[2]}`"))

    promote_to(store, engine, environment("prod", a))

    assert view_values(engine, "s.a") == [1]
