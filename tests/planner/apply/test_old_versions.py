"""Of which tables the janitor removes old versions, and why it leaves the others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.old_versions import (
    Kept,
    OldVersions,
    find_old_versions,
    physical_views,
    remove_old_versions,
    select_old_versions,
)
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.engine.protocol import Engine, Expiry, ViewText
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.storage import Storage
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.physical_tables import PhysicalTable
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot

ID = (Column("id", "int"),)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)


def delta(name: str, kind: Kind = Kind.FULL, form: str = "delta") -> Snapshot:
    return snapshot(Model(name, kind, "m.sql", 1, "", "SELECT 1 AS id", storage=Storage(table_format=form)))


A, B, VIEW, PLAIN = delta("s.a"), delta("s.b"), delta("s.v", Kind.VIEW), delta("s.p", form="")


class Lake:
    """An engine that notes which tables it is asked to clean, and answers as it is told."""

    def __init__(self, **answers: Expiry | Exception) -> None:
        self.asked: list[tuple[str, timedelta]] = []
        self._answers = answers

    @property
    def tables(self) -> Lake:
        return self

    @property
    def catalog(self) -> Lake:
        return self

    def swap_view(self, view: ViewText) -> bool:
        return True

    def guarding(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        return nullcontext()

    def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
        self.asked.append((name, keep))
        answer = self._answers.get(name.split("__")[-2], Expiry(removed=True))
        if isinstance(answer, Exception):
            raise answer
        return answer


def show_in_prod(store: StateStore, *snapshots: Snapshot) -> None:
    for version in snapshots:
        store.tables.register(version.table, ID)
    engine: Any = Lake()
    with store.leases.hold("prod", "test") as lease:
        wanted = Wanted(store.environments.get("prod"), environment("prod", *snapshots))
        promote_views(store, engine, lease, wanted, emit=ignore_event)


def remove_old(store: StateStore, lake: Lake) -> OldVersions:
    engine: Engine = lake  # type: ignore[assignment]
    return remove_old_versions(store, engine, WEEK, NOW)


def test_old_versions_go_of_the_tables_with_a_log_that_an_environment_shows(store: StateStore) -> None:
    show_in_prod(store, A, VIEW, PLAIN)
    store.tables.register(B.table, ID)  # of the past, or of a plan: nobody writes it, it goes as a whole

    lake = Lake()

    assert remove_old(store, lake) == OldVersions((A.table,)) == find_old_versions(store)
    assert lake.asked == [(A.table, WEEK)]


def test_a_table_keeps_everything_while_a_clone_of_it_is_known_even_one_that_nobody_needs(store: StateStore) -> None:
    show_in_prod(store, A)
    store.tables.register(B.table, ID, [A.table])

    lake = Lake()

    assert remove_old(store, lake).kept == (Kept(A.table, f"`{B.table}` was made from it, and may read its files"),)
    assert lake.asked == []
    store.tables.forget([B.table])
    assert remove_old(store, lake).removed == (A.table,)


def test_a_view_over_a_table_is_no_clone_of_it(store: StateStore) -> None:
    show_in_prod(store, A, VIEW)
    store.tables.register(VIEW.table, ID, [A.table])

    assert remove_old(store, Lake()).removed == (A.table,)


def test_a_clone_that_comes_between_the_decision_and_the_lease_is_seen(store: StateStore) -> None:
    class Cloned(Lake):
        def expire(self, name: str, keep: timedelta, now: datetime) -> Expiry:
            store.tables.register("s.clone", ID, [B.table])  # meanwhile
            return super().expire(name, keep, now)

    show_in_prod(store, A, B)
    lake = Cloned()

    assert (remove_old(store, lake).removed, [name for name, _ in lake.asked]) == ((A.table,), [A.table])


def test_a_table_that_somebody_writes_waits_for_the_next_time(store: StateStore) -> None:
    show_in_prod(store, A)
    lake = Lake()

    with store.leases.hold(table_lease(A.table), "a run"):
        report = remove_old(store, lake)

    assert (report.kept, lake.asked) == ((Kept(A.table, "it is being written"),), [])


def test_what_spark_refuses_and_what_a_format_keeps_is_reported_and_stops_nothing(store: StateStore) -> None:
    show_in_prod(store, A, B, delta("s.c"), delta("s.d"))
    lake = Lake(a=QueryError("no space.\nat x.y.z"), b=Expiry(kept="its log says so"), c=Expiry())

    report = remove_old(store, lake)

    assert report.removed == (delta("s.d").table,)
    assert report.kept == (Kept(A.table, "no space."), Kept(B.table, "its log says so"))


def test_a_table_whose_versions_differ_in_what_they_are_counts_as_none_with_a_log() -> None:
    known = {A.table: PhysicalTable(A.table, ID, (), False, NOW)}
    plain = replace(A, model=replace(A.model, storage=replace(A.model.storage, table_format="")))

    assert select_old_versions([A], known, ()).removed == (A.table,)
    assert select_old_versions([A, plain], known, ()) == OldVersions()
    assert physical_views([VIEW, replace(A, stored=VIEW.table)]) == frozenset()


@pytest.mark.parametrize(
    "table", [None, PhysicalTable(A.table, ID, (), True, NOW), PhysicalTable(A.table, (), (), False, NOW)]
)
def test_what_the_state_does_not_have_as_a_table_is_left_alone(table: PhysicalTable | None) -> None:
    known = {A.table: table} if table else {}

    assert select_old_versions([A], known, ()).kept == (
        Kept(A.table, "it is not in the state, or about to be dropped"),
    )


NAMES = [f"s.t{n}" for n in range(5)]
TABLES = st.fixed_dictionaries(
    {},
    optional={
        delta(name).table: st.tuples(
            st.lists(st.sampled_from([*(delta(name).table for name in NAMES), "others.table"]), max_size=2),
            st.booleans(),
        )
        for name in NAMES
    },
)
SHOWN = st.lists(st.builds(delta, st.sampled_from(NAMES), st.sampled_from([Kind.FULL, Kind.VIEW])), max_size=6)


@given(TABLES, SHOWN, st.sets(st.sampled_from([delta(name).table for name in NAMES])))
def test_nothing_that_is_protected_is_ever_among_the_tables_to_clean(
    tables: dict[str, tuple[list[str], bool]], listed: list[Snapshot], views: set[str]
) -> None:
    known = {name: PhysicalTable(name, ID, tuple(reads), garbage, NOW) for name, (reads, garbage) in tables.items()}
    selection = select_old_versions(listed, known, views)

    cloned = {read for table in known.values() if table.name not in views for read in table.reads}
    alive = {name for name, table in known.items() if not table.garbage}
    stored = {version.table for version in listed if version.kind.is_stored}
    assert set(selection.removed) == (stored & alive) - cloned
    assert {retained.table for retained in selection.kept} == stored - set(selection.removed)
