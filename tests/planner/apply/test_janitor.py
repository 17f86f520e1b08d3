"""What the janitor takes away, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.apply.events import Event, TableDropped, ignore_event
from mergeplan.planner.apply.janitor import drop_expired, find_unused_tables, sweep_tables
from mergeplan.planner.apply.promotion.promotion import Wanted, drop_environment, promote_views
from mergeplan.planner.engine.protocol import Engine, Standing, ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import quote_name
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days, environment, snapshot
from tests.stores import take_lease_over

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
ID = (Column("id", "int"),)
DAY = timedelta(days=1)
A1, A2, A3 = (snapshot("s.a", f"v{n}") for n in (1, 2, 3))


class Quiet:
    """An engine that holds nothing: the rules about what is needed ask the state alone."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    @property
    def tables(self) -> Quiet:
        return self

    @property
    def catalog(self) -> Quiet:
        return self

    def guarding(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        return nullcontext()

    def drop(self, name: str) -> None:
        self.dropped.append(name)

    def swap_view(self, view: ViewText) -> bool:
        return True

    def drop_view(self, name: str, reads: str = "") -> None:
        return None

    def standing(self, name: str) -> Standing | None:
        return None

    def drop_schema_if_empty(self, name: str) -> None:
        return None


@pytest.fixture
def quiet() -> Engine:
    return Quiet()  # type: ignore[return-value]


def now() -> datetime:
    return datetime.now(UTC)


def promote_to(store: StateStore, engine: Engine, name: str, *snapshots: Snapshot) -> None:
    for version in snapshots:
        if version.table not in store.tables.all():
            store.tables.register(version.table, ID)
    with store.leases.hold(name, "test") as lease:
        promote_views(
            store, engine, lease, Wanted(store.environments.get(name), environment(name, *snapshots)), emit=ignore_event
        )


def drop(store: StateStore, engine: Engine, name: str) -> None:
    with store.leases.hold(name, "test") as lease:
        drop_environment(store, engine, lease, emit=ignore_event)


def test_what_an_environment_shows_is_never_dropped(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "prod", A1)

    assert sweep_tables(store, quiet, now() + 900 * DAY, emit=ignore_event) == ()
    assert A1.table in store.tables.all()


def test_a_replaced_table_is_kept_for_the_retention_from_the_day_it_was_replaced(
    store: StateStore, quiet: Engine
) -> None:
    promote_to(store, quiet, "prod", A1)
    promote_to(store, quiet, "prod", A2)

    assert sweep_tables(store, quiet, now() + 13 * DAY, emit=ignore_event) == ()
    assert sweep_tables(store, quiet, now() + 15 * DAY, emit=ignore_event) == (A1.table,)
    assert set(store.tables.all()) == {A2.table}


def test_the_retention_can_be_chosen(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "prod", A1)
    promote_to(store, quiet, "prod", A2)

    assert sweep_tables(store, quiet, now() + 3 * DAY, 2 * DAY, emit=ignore_event) == (A1.table,)


def test_a_sweep_of_orphans_leaves_what_prod_showed_long_ago(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "prod", A1)
    promote_to(store, quiet, "prod", A2)

    assert sweep_tables(store, quiet, now() + 20 * DAY, orphans=True, emit=ignore_event) == ()
    assert sweep_tables(store, quiet, now() + 20 * DAY, emit=ignore_event) == (A1.table,)


def test_a_table_that_was_never_shown_is_kept_for_a_day(store: StateStore, quiet: Engine) -> None:
    store.tables.register(A1.table, ID)

    assert find_unused_tables(store, now() + DAY / 2) == []
    assert find_unused_tables(store, now() + 2 * DAY) == [A1.table]


def test_the_tables_of_a_plan_are_kept_for_a_day(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "prod", A1)
    promote_to(store, quiet, "prod", A2)
    later = now() + 15 * DAY
    assert find_unused_tables(store, later) == [A1.table]

    store.plans.save("p1", "pr_7", tables=[A1.table])

    assert find_unused_tables(store, now() + DAY / 2, retention=timedelta(0)) == []
    assert find_unused_tables(store, now() + 2 * DAY, retention=timedelta(0)) == [A1.table]


def test_the_tables_of_a_plan_that_is_being_applied_are_kept_for_as_long_as_that_takes(
    store: StateStore, quiet: Engine
) -> None:
    store.tables.register(A1.table, ID)
    store.plans.save("p1", "pr_7", tables=[A1.table])

    with store.leases.hold("pr_7", "plan p1"):
        assert sweep_tables(store, quiet, now() + 2 * DAY, emit=ignore_event) == ()
    assert sweep_tables(store, quiet, now() + 2 * DAY, emit=ignore_event) == (A1.table,)


def test_a_table_that_prods_view_shows_by_a_newer_state_is_left_by_a_copy_of_the_state(store: StateStore) -> None:
    class Newer(Quiet):
        def standing(self, name: str) -> Standing | None:
            return Standing(name, ID, is_view=True, sql=f"SELECT `id` FROM {quote_name(A2.table)}")

    newer: Engine = Newer()  # type: ignore[assignment]
    promote_to(store, newer, "prod", A1)
    store.tables.register(A2.table, ID)
    store.tables.register(A3.table, ID)

    assert sweep_tables(store, newer, now() + 15 * DAY, emit=ignore_event) == (A3.table,)


def test_what_a_needed_view_reads_is_needed(store: StateStore, quiet: Engine) -> None:
    store.tables.register("m.grandparent", ID)
    store.tables.register("m.parent", ID, reads=["m.grandparent"])
    store.tables.register("m.other", ID)
    store.tables.register(A1.table, ID, reads=["m.parent"])
    promote_to(store, quiet, "prod", A1)

    assert find_unused_tables(store, now() + 900 * DAY) == ["m.other"]


def test_both_sides_of_an_unfinished_promotion_are_kept(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "prod", A1)
    store.tables.register(A2.table, ID)
    with store.leases.hold("prod", "test") as lease:
        store.promotions.begin(lease, store.environments.get("prod"), environment("prod", A2))

    assert find_unused_tables(store, now() + 900 * DAY, retention=timedelta(0)) == []


def test_orphans_of_a_dropped_environment_go_at_once_and_what_others_show_stays(
    store: StateStore, quiet: Engine
) -> None:
    promote_to(store, quiet, "prod", A1)
    store.tables.register(A3.table, ID)
    store.plans.save("p1", "pr_7", tables=[A2.table, A3.table])
    promote_to(store, quiet, "pr_7", A2)
    promote_to(store, quiet, "pr_8", A1)
    drop(store, quiet, "pr_7")

    assert sweep_tables(store, quiet, now(), emit=ignore_event) == ()
    assert sweep_tables(store, quiet, now(), orphans=True, emit=ignore_event) == (A2.table, A3.table)
    assert set(store.tables.all()) == {A1.table}


def test_a_merged_pull_requests_tables_are_prods(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "pr_7", A2)
    promote_to(store, quiet, "prod", A2)
    drop(store, quiet, "pr_7")

    assert sweep_tables(store, quiet, now(), orphans=True, emit=ignore_event) == ()


def test_a_new_plan_for_an_orphan_saves_it(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "pr_7", A2)
    drop(store, quiet, "pr_7")

    store.plans.save("p2", "pr_9", tables=[A2.table])

    assert sweep_tables(store, quiet, now(), orphans=True, emit=ignore_event) == ()


def test_a_table_that_is_being_written_is_left(store: StateStore, quiet: Engine) -> None:
    store.tables.register(A1.table, ID)

    with store.leases.hold(f"table:{A1.table}", "plan 12"):
        assert sweep_tables(store, quiet, now() + 2 * DAY, emit=ignore_event) == ()
    assert sweep_tables(store, quiet, now() + 2 * DAY, emit=ignore_event) == (A1.table,)


def test_an_environment_that_changes_under_the_sweep_is_looked_at_again(store: StateStore) -> None:
    store.tables.register(A1.table, ID)
    store.tables.register(A2.table, ID)

    class Promoting(Quiet):
        def drop(self, name: str) -> None:
            super().drop(name)
            promote_to(store, Quiet(), "prod", A2)  # type: ignore[arg-type]

    promoting = Promoting()

    assert sweep_tables(store, promoting, now() + 2 * DAY, emit=ignore_event) == (A1.table,)  # type: ignore[arg-type]
    assert store.environments.get("prod").snapshots == {"s.a": A2}


def test_a_sweep_that_died_is_finished_by_the_next(store: StateStore) -> None:
    store.tables.register(A1.table, ID)
    store.intervals.record(A1.table, days(1, 3))

    class Dying(Quiet):
        def drop(self, name: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep_tables(store, Dying(), now() + 2 * DAY, emit=ignore_event)  # type: ignore[arg-type]
    assert store.tables.all()[A1.table].garbage
    assert store.intervals.load_timelines([A1.table]) == {A1.table: ()}

    assert sweep_tables(store, Quiet(), now(), emit=ignore_event) == (A1.table,)  # type: ignore[arg-type]


def test_the_files_go_too_and_the_empty_schema(store: StateStore, engine: SparkEngine) -> None:
    for version in (A1, A2):
        engine.tables.create(Table(version.table, ID))
    promote_to(store, engine, "prod", A1)
    promote_to(store, engine, "prod", A2)
    events: list[Event] = []

    sweep_tables(store, engine, now() + 15 * DAY, emit=events.append)

    assert events == [TableDropped(A1.table)]
    assert engine.catalog.objects("mergeplan__s") == {"s__a__v2"}


def test_a_janitor_that_slept_drops_no_table_that_was_built_again_meanwhile(
    store: StateStore, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in (A1, A2):
        engine.tables.create(Table(version.table, ID))
    promote_to(store, engine, "prod", A1)
    promote_to(store, engine, "prod", A2)
    mark = store.tables.mark_garbage

    def sleep_after_mark(table: str, *, lease: Lease, seen_generation: int) -> bool:
        marked = mark(table, lease=lease, seen_generation=seen_generation)
        take_lease_over(store, lease.name)
        store.tables.register(table, ID)
        return marked

    monkeypatch.setattr(store.tables, "mark_garbage", sleep_after_mark)

    assert sweep_tables(store, engine, now() + 15 * DAY, emit=ignore_event) == ()
    assert engine.catalog.objects("mergeplan__s") == {"s__a__v1", "s__a__v2"}
    assert A1.table in store.tables.all()


def test_nothing_known_means_nothing_to_do(store: StateStore, quiet: Engine) -> None:
    assert sweep_tables(store, quiet, now(), orphans=True, emit=ignore_event) == ()
    assert store.environments.get("prod") == Environment("prod")


def test_an_environment_whose_time_is_over_is_dropped_and_its_tables_wait(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "prod", A1)
    promote_to(store, quiet, "dev", A2)
    promote_to(store, quiet, "kept", A1)
    for name in ("prod", "dev", "kept"):
        store.environments.expire(name, now() - DAY)

    assert drop_expired(store, quiet, now() - 2 * DAY, emit=ignore_event) == ()
    assert drop_expired(store, quiet, now(), {"kept"}, emit=ignore_event) == ("dev",)
    assert [record.name for record in store.environments.all()] == ["kept", "prod"]
    assert sweep_tables(store, quiet, now() + 13 * DAY, emit=ignore_event) == ()
    assert sweep_tables(store, quiet, now() + 15 * DAY, emit=ignore_event) == (A2.table,)


def test_an_environment_that_somebody_is_changing_does_not_expire_under_them(store: StateStore, quiet: Engine) -> None:
    promote_to(store, quiet, "dev", A1)
    store.environments.expire("dev", now() - DAY)

    with store.leases.hold("dev", "ann"):
        assert drop_expired(store, quiet, now(), emit=ignore_event) == ()
    assert store.environments.get("dev").exists
