"""What the store keeps of tables' contents, and above all when it lets go of it; on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mergeplan.planner.errors import LeaseHeld
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.model import Column
from mergeplan.planner.snapshot.content_hash import WHOLE, Content, Contents, Found, columns_key
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import days

pytestmark = pytest.mark.usefixtures("state_url")  # on both databases
ID = (Column("id", "int"),)
IDS = ("id",)
FOUND: Found = {
    IDS: {f"2026-01-0{day}": Content(day, f"{day:032x}") for day in range(1, 6)} | {WHOLE: Content(9, "f" * 32)},
    ("id", "name"): {"2026-01-01": Content(0, "0" * 32)},
}
LAWS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
STRETCHES = st.tuples(st.integers(1, 9), st.integers(0, 5)).map(lambda pair: days(pair[0], pair[0] + pair[1]))


@contextmanager
def hold(store: StateStore, table: str = "s.t") -> Iterator[Lease]:
    """The lease of a table."""
    with store.leases.hold(f"table:{table}", "ann") as lease:
        yield lease


def record(store: StateStore, table: str = "s.t", content: Found = FOUND) -> None:
    """A table that is known, and what it holds."""
    store.tables.register(table, ID)
    with hold(store, table) as lease:
        store.contents.record(table, content, lease=lease)


def periods(store: StateStore, table: str = "s.t") -> set[str]:
    """The periods that are known of its ids."""
    return set(store.contents.load([table])[table].period_contents(IDS))


def test_what_was_recorded_is_known(store: StateStore) -> None:
    record(store)

    assert store.contents.load(["s.t", "s.unknown"]) == {"s.t": Contents().plus(FOUND), "s.unknown": Contents()}


def test_what_is_recorded_again_replaces_what_was_known(store: StateStore) -> None:
    record(store)

    with hold(store) as lease:
        store.contents.record("s.t", {IDS: {"2026-01-02": Content(7, "e" * 32)}}, lease=lease)

    assert store.contents.load(["s.t"])["s.t"].period_contents(IDS) == {
        **FOUND[IDS],
        "2026-01-02": Content(7, "e" * 32),
    }


def test_many_periods_of_many_tables_are_kept(store: StateStore) -> None:
    many = {IDS: {f"2026-01-{1 + n // 24:02} {n % 24:02}:00:00": Content(n, f"{n:032x}") for n in range(700)}}
    names = [f"s.t{n}" for n in range(600)]

    record(store, "s.t599", many)

    assert store.contents.load(names)["s.t599"].period_contents(IDS) == many[IDS]


def forget_contents(store: StateStore) -> None:
    with hold(store) as lease:
        store.contents.forget("s.t", days(2, 3), lease=lease)


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.intervals.record("s.t", days(2, 3)),
        lambda store: store.intervals.forget("s.t", days(2, 3)),
        forget_contents,
    ],
    ids=["record", "forget", "about to write"],
)
def test_a_write_drops_its_periods_and_the_whole_and_nothing_else(
    store: StateStore, write: Callable[[StateStore], None]
) -> None:
    record(store)
    record(store, "s.other")

    write(store)

    assert periods(store) == {"2026-01-01", "2026-01-04", "2026-01-05"}
    assert periods(store, "s.other") == set(FOUND[IDS])


def test_a_write_drops_the_hours_that_lie_in_it(store: StateStore) -> None:
    hours = {f"2026-01-02 {hour:02}:00:00": Content(hour, f"{hour:032x}") for hour in range(24)}
    record(store, content={IDS: hours})
    day = days(2, 2)

    store.intervals.record("s.t", Interval(day.start.replace(hour=5), day.start.replace(hour=22)))

    assert periods(store) == {name for name in hours if name[11:13] in ("00", "01", "02", "03", "04", "22", "23")}


def mark_garbage(store: StateStore) -> None:
    with hold(store) as lease:
        assert store.tables.mark_garbage("s.t", lease=lease, seen_generation=store.environments.generation())


@pytest.mark.parametrize(
    "end",
    [mark_garbage, lambda store: store.tables.forget(["s.t"]), lambda store: store.tables.register("s.t", ID)],
    ids=["garbage", "forgotten", "created anew"],
)
def test_the_end_of_a_table_drops_everything(store: StateStore, end: Callable[[StateStore], None]) -> None:
    record(store)
    record(store, "s.other")

    end(store)

    assert store.contents.load(["s.t"]) == {"s.t": Contents()}
    assert periods(store, "s.other") == set(FOUND[IDS])


def test_what_was_computed_under_a_lost_lease_is_refused(store: StateStore) -> None:
    store.tables.register("s.t", ID)
    with hold(store) as lost:
        pass

    with pytest.raises(LeaseHeld):
        store.contents.record("s.t", FOUND, lease=lost)
    with pytest.raises(LeaseHeld):
        store.contents.forget("s.t", days(1, 1), lease=lost)
    assert periods(store) == set()


def test_another_tables_lease_keeps_no_writers_away(store: StateStore) -> None:
    store.tables.register("s.t", ID)

    with hold(store, "s.other") as lease, pytest.raises(ValueError, match=r"away from s\.t"):
        store.contents.record("s.t", FOUND, lease=lease)


@pytest.mark.parametrize("gone", [mark_garbage, lambda store: store.tables.forget(["s.t"])])
def test_nothing_is_kept_of_a_table_that_is_gone(store: StateStore, gone: Callable[[StateStore], None]) -> None:
    store.tables.register("s.t", ID)
    gone(store)

    with hold(store) as lease:
        store.contents.record("s.t", FOUND, lease=lease)

    assert periods(store) == set()


def test_a_physical_view_is_never_kept(store: StateStore) -> None:
    store.tables.register("s.v", ID, ["s.t"])

    with hold(store, "s.v") as lease, pytest.raises(ValueError, match="is a view"):
        store.contents.record("s.v", FOUND, lease=lease)


def test_projects_in_one_database_keep_their_own(state_url: str, project: str) -> None:
    mine, other = StateStore(state_url, project), StateStore(state_url, f"{project}-other")
    record(mine)
    record(other)

    mine.tables.forget(["s.t"])
    left = periods(mine), periods(other)
    mine.close()
    other.close()

    assert left == (set(), set(FOUND[IDS]))


@LAWS
@given(writes=st.lists(STRETCHES, max_size=4), before=STRETCHES)
def test_no_period_outlives_a_write_of_it(store: StateStore, writes: list[Interval], before: Interval) -> None:
    table = f"s.{uuid.uuid4().hex}"
    store.intervals.record(table, before)
    record(store, table)

    for interval in writes:
        store.intervals.record(table, interval)

    untouched = {f"2026-01-0{n}" for n in range(1, 6) if not any(w.start <= days(n, n).start < w.end for w in writes)}
    assert periods(store, table) == untouched | ({WHOLE} if not writes else set())


def test_the_key_of_a_column_set_is_not_its_texts_run_together() -> None:
    sets = [(), ("a", "b"), ("ab",), ("a",), ("a,b",), ("b", "c")]

    assert len({columns_key(set_) for set_ in sets}) == len(sets)
    assert columns_key(("b", "a")) == columns_key(["a", "b"])


def test_a_mark_is_another_one_after_each_write_and_stays_meanwhile(store: StateStore) -> None:
    record(store)
    first = store.contents.mark_tables(["s.t"])

    assert store.contents.mark_tables({"s.t"}) == first
    with hold(store) as lease:
        store.contents.forget("s.t", days(1, 2), lease=lease)
    begun = store.contents.mark_tables(["s.t"])
    store.intervals.record("s.t", days(1, 2))
    ended = store.contents.mark_tables(["s.t"])

    assert first and begun and ended
    assert len({first["s.t"], begun["s.t"], ended["s.t"]}) == 3


def test_a_table_that_is_not_ours_alone_has_no_mark(store: StateStore) -> None:
    record(store)
    store.tables.register("s.over", ID, ["s.t"])

    assert store.contents.mark_tables(["s.t", "s.unknown"]) is None
    assert store.contents.mark_tables(["s.t", "s.over"]) is None
    assert store.contents.mark_tables([]) == {}


def test_another_column_is_another_mark(store: StateStore) -> None:
    record(store)
    before = store.contents.mark_tables(["s.t"])
    store.tables.register("s.t", (*ID, Column("more", "int")))

    assert store.contents.mark_tables(["s.t"]) != before


@pytest.mark.parametrize("written", [True, False])
def test_what_a_table_was_made_from_is_known_until_it_is_written(store: StateStore, written: bool) -> None:
    record(store)
    with hold(store) as lease:
        store.contents.record_inputs("s.t", "a" * 32, lease=lease)
        if written:
            store.intervals.record("s.t", days(1, 2), lease=lease)
        else:
            store.intervals.extend("s.t", days(1, 2), lease=lease)

    assert store.contents.load_inputs("s.t") == ("" if written else "a" * 32)
    assert store.intervals.load_timelines(["s.t"])["s.t"] == (days(1, 2),)
    assert ("2026-01-01" in periods(store)) is not written
