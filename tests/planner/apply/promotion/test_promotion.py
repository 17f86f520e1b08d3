"""Promotion on a real Spark: all views or none, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from mergeplan.planner.apply.events import (
    Event,
    Promoted,
    PromotionFound,
    PromotionRecovered,
    PromotionUndone,
    ViewSwapped,
    ignore_event,
)
from mergeplan.planner.apply.promotion.promotion import Wanted, drop_environment, promote_views
from mergeplan.planner.apply.promotion.recovery import recover_promotions
from mergeplan.planner.engine.protocol import ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import Cancelled, LeaseHeld, QueryError, RequestError
from mergeplan.planner.model.model import Column
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.environments import HistoryAction
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.engines import Double

ID = (Column("id", "int"),)


@pytest.fixture(name="build_table")
def _build_table(store: StateStore, engine: SparkEngine) -> Callable[..., Snapshot]:
    """Builds the table of a snapshot, with one row that tells its version."""

    def build(name: str, number: int) -> Snapshot:
        made = snapshot(name, f"v{number}")
        table = Table(made.table, ID)
        engine.tables.create(table)
        engine.tables.replace(table, f"SELECT {number} AS id")
        store.tables.register(made.table, ID)
        return made

    return build


def view_values(engine: SparkEngine, view: str) -> list[object]:
    return [row[0] for row in engine.fetch(f"SELECT * FROM {view}").rows]


def recovery_ends(recovered: tuple[PromotionRecovered, ...]) -> dict[str, str]:
    return {recovery.environment: str(recovery.ended) for recovery in recovered}


def promote_to(
    store: StateStore, engine: SparkEngine, new: Environment, emit: Callable[[Event], None] = ignore_event
) -> Promoted:
    with store.leases.hold(new.name, "test") as lease:
        return promote_views(
            store, engine, lease, Wanted(store.environments.get(new.name), new, "p1", "ann"), emit=emit
        )


class Breaking(Double):
    """The engine, but for one view that cannot be pointed at version 2."""

    def __init__(self, engine: SparkEngine, view: str, error: Exception) -> None:
        super().__init__(engine)
        self.engine, self.view, self.error = engine, view, error

    def swap_view(self, view: ViewText) -> bool:
        if view.name == self.view and "v2" in view.sql:
            raise self.error
        return self.engine.catalog.swap_view(view)


def test_views_come_are_repointed_and_go(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, a2, b1, c1 = build_table("s.a", 1), build_table("s.a", 2), build_table("s.b", 1), build_table("s.c", 1)
    promote_to(store, engine, environment("prod", a1, b1))

    done = promote_to(store, engine, environment("prod", a2, c1))

    assert done == Promoted("prod", 2, added=1, swapped=1, dropped=1, unchanged=0)
    assert (view_values(engine, "s.a"), set(engine.catalog.objects("s"))) == ([2], {"a", "c"})
    assert store.environments.get("prod").snapshots == {"s.a": a2, "s.c": c1}
    assert store.promotions.pending() == ()


@pytest.mark.prove
def test_the_views_of_a_group_are_recorded_in_one_transaction(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mergeplan.planner.apply.promotion.swap_views.GROUP", 2)
    old, new = [build_table(f"s.{name}", 1) for name in "abc"], [build_table(f"s.{name}", 2) for name in "abc"]
    promote_to(store, engine, environment("prod", *old))
    groups = list[Collection[str]]()
    record = store.promotions.record_steps
    monkeypatch.setattr(store.promotions, "record_steps", lambda *args: groups.append(args[2]) or record(*args))

    promote_to(store, engine, environment("prod", *new))

    assert groups == [["s.a", "s.b"], ["s.c"]]
    assert [view_values(engine, f"s.{name}") for name in "abc"] == [[2]] * 3


def test_a_view_that_was_taken_away_or_changed_by_hand_comes_back(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    old, new = [build_table(f"s.{name}", 1) for name in "abc"], [build_table(f"s.{name}", 2) for name in "abc"]
    promote_to(store, engine, environment("prod", *old))
    engine.catalog.drop_view("s.a")
    engine.catalog.swap_view(ViewText("s.b", "SELECT 7 AS other"))

    promote_to(store, engine, environment("prod", *new))

    assert [view_values(engine, f"s.{name}") for name in "abc"] == [[2]] * 3


def test_only_what_differs_is_touched(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, b1, b2 = build_table("s.a", 1), build_table("s.b", 1), build_table("s.b", 2)
    promote_to(store, engine, environment("prod", a1, b1))
    events: list[Event] = []

    promote_to(store, engine, environment("prod", a1, b2), events.append)

    assert [event.view for event in events if isinstance(event, ViewSwapped)] == ["s.b"]
    assert events[-1] == Promoted("prod", 2, added=0, swapped=1, dropped=0, unchanged=1)


def test_a_view_lists_its_columns_even_when_the_plan_could_not(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    build_table("s.a", 1)

    promote_to(store, engine, environment("dev", snapshot("s.a", "v1", columns=None)))

    assert view_values(engine, "s__dev.a") == [1]


def test_a_promotion_starts_no_spark_job(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, a2 = build_table("s.a", 1), build_table("s.a", 2)
    promote_to(store, engine, environment("prod", a1))
    before = engine.jobs()

    promote_to(store, engine, environment("prod", a2))

    assert engine.jobs() == before


@pytest.mark.parametrize(
    "error",
    [
        QueryError("the catalog is away."),
        pytest.param(Cancelled("the run was cancelled."), marks=pytest.mark.prove),
    ],
)
def test_when_one_view_fails_all_go_back(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot], error: Exception
) -> None:
    old = [build_table(f"s.{name}", 1) for name in "abcd"]
    new = [build_table(f"s.{name}", 2) for name in "abd"]
    promote_to(store, engine, environment("prod", *old))
    before, events = store.environments.get("prod"), list[Event]()

    with pytest.raises(type(error)):
        promote_to(store, Breaking(engine, "s.d", error), environment("prod", *new), events.append)  # type: ignore[arg-type]

    assert [view_values(engine, f"s.{name}") for name in "abcd"] == [[1]] * 4
    assert store.environments.get("prod") == before
    assert store.promotions.pending() == ()
    assert store.environments.history("prod")[0].action is HistoryAction.UNDONE
    assert events[-1] == PromotionUndone("prod", str(error))


def test_a_table_in_the_place_of_a_new_view_forbids_the_promotion_and_stays(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, b1 = build_table("s.a", 1), build_table("s.b", 1)
    engine.tables.create(Table("s.b", ID))

    with pytest.raises(QueryError, match=r"s\.b is a table"):
        promote_to(store, engine, environment("prod", a1, b1))

    assert engine.catalog.objects("s") == {"b"}
    assert not store.environments.all()
    assert not store.promotions.pending()


def test_what_cannot_be_put_back_stays_pending_and_is_finished_later(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, a2, b1, b2 = build_table("s.a", 1), build_table("s.a", 2), build_table("s.b", 1), build_table("s.b", 2)
    promote_to(store, engine, environment("prod", a1, b1))

    class Gone(Breaking):
        """After the first failure the catalog is away for good."""

        def swap_view(self, view: ViewText) -> bool:
            if view.name == self.view:
                self.view = ""
                raise Cancelled("the run was cancelled.")
            if not self.view:
                raise self.error
            return self.engine.catalog.swap_view(view)

    gone = Gone(engine, "s.b", QueryError("the catalog is away."))
    with pytest.raises((Cancelled, QueryError)):  # views are swapped side by side: `a` may fail first
        promote_to(store, gone, environment("prod", a2, b2))  # type: ignore[arg-type]
    assert len(store.promotions.pending()) == 1

    assert recovery_ends(recover_promotions(store, engine, ignore_event)) == {"prod": "finished"}
    assert (view_values(engine, "s.a"), view_values(engine, "s.b")) == ([2], [2])
    assert store.promotions.pending() == ()


def test_a_promotion_of_a_living_process_is_left_alone(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    new = environment("prod", build_table("s.a", 1))
    with store.leases.hold("prod", "a living process") as lease:
        store.promotions.begin(lease, Environment("prod"), new)

        assert recover_promotions(store, engine, ignore_event) == ()
        assert recovery_ends(recover_promotions(store, engine, ignore_event, lease)) == {"prod": "finished"}

    assert view_values(engine, "s.a") == [1]


def test_a_promotion_that_can_never_be_finished_is_undone(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1, a2 = build_table("s.a", 1), build_table("s.a", 2)
    promote_to(store, engine, environment("prod", a1))
    with store.leases.hold("prod", "crashed") as lease:
        store.promotions.begin(lease, store.environments.get("prod"), environment("prod", a2))
    engine.tables.drop(a2.table)
    events: list[Event] = []

    assert recovery_ends(recover_promotions(store, engine, events.append)) == {"prod": "undone"}

    assert next(type(event) for event in events if not isinstance(event, ViewSwapped)) is PromotionFound
    assert store.environments.get("prod").revision == 1
    assert view_values(engine, "s.a") == [1]


def test_without_the_lease_nothing_is_swapped(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    new = environment("prod", build_table("s.a", 1))
    with store.leases.hold("prod", "ann") as lease:
        pass

    with pytest.raises(LeaseHeld):
        promote_views(store, engine, lease, Wanted(Environment("prod"), new), emit=ignore_event)

    assert engine.catalog.objects("s") == frozenset()


def test_a_dropped_environment_leaves_no_schema_and_keeps_its_tables(
    store: StateStore, engine: SparkEngine, build_table: Callable[..., Snapshot]
) -> None:
    a1 = build_table("s.a", 1)
    promote_to(store, engine, environment("pr_7", a1))

    with store.leases.hold("pr_7", "ann") as lease:
        drop_environment(store, engine, lease, emit=ignore_event)

    schemas = {row[0] for row in engine.fetch("SHOW SCHEMAS").rows}
    assert "s__pr_7" not in schemas
    assert not store.environments.get("pr_7").exists
    assert view_values(engine, a1.table) == [1]


def test_prod_and_what_is_not_there_cannot_be_dropped(store: StateStore, engine: SparkEngine) -> None:
    for name, told in (("prod", "prod cannot be dropped"), ("dev", "There is no environment `dev`")):
        with store.leases.hold(name, "ann") as lease, pytest.raises(RequestError, match=told):
            drop_environment(store, engine, lease, emit=ignore_event)
