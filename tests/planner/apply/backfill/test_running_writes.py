"""Which write of an earlier run may be waited for: only one whose rows could not be others today."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from mergeplan.planner.apply.backfill.running_writes import BatchWrites, TableWrites, track_operations
from mergeplan.planner.apply.events import BatchAwaited, BatchRepeated, Event
from mergeplan.planner.apply.physical_tables import table_lease
from mergeplan.planner.engine.protocol import Engine, Operation
from mergeplan.planner.errors import LeaseHeld
from mergeplan.planner.intervals import Interval
from mergeplan.planner.state.store import StateStore

DAYS = [Interval(day, day + timedelta(days=1)) for day in (datetime(2026, 1, n, tzinfo=UTC) for n in (1, 2))]
TABLE, PARENT = "phys.orders", "phys.items"
FIRST = Operation("sc://here", "session", "first")


class Server:
    """An engine of which only the ends of operations are asked."""

    def __init__(self) -> None:
        self.ended: list[Operation] = []

    def end_operation(self, operation: Operation) -> None:
        self.ended.append(operation)


class Runs:
    """Runs over one table, one after the other."""

    def __init__(self, store: StateStore) -> None:
        self.store, self.server = store, Server()
        self.events: list[Event] = []

    def batch(self, writes: TableWrites, day: Interval = DAYS[0]) -> BatchWrites:
        return writes.batch_writes("shop.orders", day, [PARENT], self.events.append)

    def kill_write(self, operation: Operation = FIRST, asked: str = "rows", day: Interval = DAYS[0]) -> None:
        """A run that begins a write, and dies."""
        with self.store.leases.hold(table_lease(TABLE), "a run") as lease:
            self.batch(TableWrites(self.store, cast(Engine, self.server), TABLE, lease), day).begin(asked, operation)

    def next(self, asked: str = "rows", days: list[Interval] = DAYS) -> Operation | None:
        """What the next run finds of that."""
        with self.store.leases.hold(table_lease(TABLE), "the next") as lease:
            writes = TableWrites(self.store, cast(Engine, self.server), TABLE, lease)
            writes.look(days)
            return self.batch(writes, days[0]).take_leftover(asked)

    def touch(self, table: str) -> None:
        """Somebody may have written a table."""
        with self.store.leases.hold(table_lease(table), "somebody"):
            pass


@pytest.fixture(name="runs")
def _runs(store: StateStore, state_url: str) -> Runs:
    return Runs(store)


def test_the_next_run_waits_for_just_what_it_would_write(runs: Runs) -> None:
    runs.kill_write()
    assert (runs.next(), runs.server.ended) == (FIRST, [])


def test_a_write_of_another_text_is_ended_before_the_table_is_written(runs: Runs) -> None:
    runs.kill_write()
    assert runs.next("other rows") is None
    assert runs.server.ended == [FIRST]
    assert runs.store.running_writes.list_unfinished(TABLE) == ()


def test_what_becomes_of_a_write_that_was_left_is_said(runs: Runs) -> None:
    with runs.store.leases.hold(table_lease(TABLE), "a run") as lease:
        batch = runs.batch(TableWrites(runs.store, cast(Engine, runs.server), TABLE, lease))
    batch.report_resumed()
    batch.report_repeated()
    assert runs.events == [BatchAwaited("shop.orders", DAYS[0]), BatchRepeated("shop.orders", DAYS[0])]


@pytest.mark.parametrize("table", [TABLE, PARENT])
def test_a_write_is_ended_when_somebody_may_have_written_its_table_or_one_that_it_reads(runs: Runs, table: str) -> None:
    runs.kill_write()
    runs.touch(table)
    assert (runs.next(), runs.server.ended) == (None, [FIRST])


def test_a_write_of_another_interval_is_ended(runs: Runs) -> None:
    runs.kill_write()
    assert (runs.next(days=DAYS[1:]), runs.server.ended) == (None, [FIRST])
    longer = Interval(DAYS[0].start, DAYS[1].end)
    runs.kill_write()
    assert (runs.next(days=[longer]), runs.server.ended) == (None, [FIRST, FIRST])


def test_a_write_of_another_version_of_mergeplan_is_ended(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.kill_write()
    monkeypatch.setattr("mergeplan.planner.apply.backfill.running_writes.mergeplan_version", lambda: "next")
    assert (runs.next(), runs.server.ended) == (None, [FIRST])


def test_a_write_that_came_to_an_end_is_not_waited_for(runs: Runs) -> None:
    second = Operation("sc://here", "session", "second")
    with runs.store.leases.hold(table_lease(TABLE), "a run") as lease:
        writes = TableWrites(runs.store, cast(Engine, runs.server), TABLE, lease)
        batch = runs.batch(writes)
        with suppress(ValueError), track_operations(batch):
            batch.begin("rows", FIRST)
            batch.begin("rows again", second)
            raise ValueError
    assert (runs.next(), runs.server.ended) == (None, [])


def test_who_has_lost_the_table_begins_no_write(runs: Runs) -> None:
    with runs.store.leases.hold(table_lease(TABLE), "a run") as lease:
        batch = runs.batch(TableWrites(runs.store, cast(Engine, runs.server), TABLE, lease))
    with pytest.raises(LeaseHeld):
        batch.begin("rows", FIRST)
    assert runs.store.running_writes.list_unfinished(TABLE) == ()


def test_what_is_known_of_a_dropped_table_and_what_runs_now_are_not_kept(runs: Runs) -> None:
    runs.kill_write()
    exported: Any = runs.store.transfers.export()
    assert "operations" not in exported["tables"]
    runs.store.tables.forget([TABLE])
    assert runs.store.running_writes.list_unfinished(TABLE) == ()
