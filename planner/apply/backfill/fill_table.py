"""Fill one table: write, audit and record its batches.

A batch is recorded only after its rows are committed and its blocking audits have passed. So recorded rows are good,
and a batch that a crash interrupts in between is written again.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mergeplan.planner.apply.backfill.inputs import Versions, inputs_of
from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.apply.backfill.running_writes import TableWrites, track_operations
from mergeplan.planner.apply.backfill.table_columns import add_missing_columns
from mergeplan.planner.apply.backfill.work import Filled, FoundRows, batches_of, not_ready
from mergeplan.planner.apply.backfill.write_batch import Batch, take_back, write_batch
from mergeplan.planner.apply.events import AuditRan, BatchDone, Emit, ModelStarted, ModelUpToDate, TableAwaited
from mergeplan.planner.apply.physical_tables import hold_table, physical_table, table_lease
from mergeplan.planner.apply.promotion.conflicts import retry_on_conflict
from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.engine.protocol import Engine, Written
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import Cancelled, LeaseHeld, PlanMoved, Refused
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval, Timeline, build_timeline, subtract_intervals
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.sql.macro_scope import EVALUATING
from mergeplan.planner.plan.costs import units
from mergeplan.planner.plan.schedule import out_of_order
from mergeplan.planner.plan.stages import BackfillTask
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.tables.batch_ids import as_recorded, batch_condition

COPYING = 60.0  # seconds to wait for the writer of a table that is to be copied
Audits = Callable[[Snapshot, Interval], Iterator[AuditResult]]


@dataclass
class TableWriter:
    """The writer of a layout's tables, batch by batch; `workers` is the number of concurrent batches."""

    layout: Layout
    engine: Engine
    store: StateStore
    audits: Audits
    kept_audits: Audits  # of a table that is not written
    root: Path  # of the project, where its seeds are
    holder: str
    emit: Emit
    workers: int = 1
    check: Callable[[], None] = lambda: None  # raises Cancelled to end the run
    relies: Mapping[str, Timeline] = field(default_factory=dict)  # what tables must hold when they are read
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # models that each model waits for, if not {}
    spark: str = ""  # a digest of its settings
    untouched: dict[str, int] = field(default_factory=dict)  # new table -> the token of the lease under which it came
    done: Filled = field(default_factory=Filled)
    _stop: threading.Event = field(default_factory=threading.Event)
    _versions: Versions = field(default_factory=Versions)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._slots = threading.BoundedSemaphore(self.workers)

    def stop(self) -> None:
        self._stop.set()
        if self.layout.python:
            self.layout.python.stop()

    def fill(self, task: BackfillTask) -> None:
        """Fill a table with what it lacks, batch by batch; raise Refused if its signals hold some of it back."""
        snapshot = task.snapshot
        with self._hold_lease(snapshot) as lease:
            recorded_table = self.store.tables.get(snapshot.table)
            if recorded_table is None or recorded_table.garbage:
                raise PlanMoved(f"The table `{snapshot.table}` is gone.", hint="Plan again: it will be built again.")
            loaded = self.store.intervals.load_timelines([snapshot.table])[snapshot.table]
            # A table that is filled in order is copied whole: it holds an earlier copy.
            is_copied = snapshot.model.is_order_dependent and bool(subtract_intervals(task.copies, loaded))
            if is_copied or out_of_order(snapshot.model, subtract_intervals(task.missing, loaded), loaded):
                loaded = self._reset_intervals(snapshot, loaded, lease, is_copied)
            todo, late = self.layout.check_signals(snapshot.model, batches_of(task, loaded), task.copies)
            late = subtract_intervals(late, task.late)
            if not todo and not late:
                self.emit(ModelUpToDate(snapshot.name))
                return
            if todo:
                self.emit(ModelStarted(snapshot.name, len(todo)))
                inputs = inputs_of(self.layout, task, todo, self.store, self.engine, self._versions)
                inputs = inputs and digest(inputs, self.spark)[:32]
                if loaded and inputs and inputs == self.store.contents.load_inputs(snapshot.table):
                    self._keep_rows(task, todo[0], lease)
                else:
                    table = physical_table(snapshot, recorded_table.columns)
                    with self.engine.guarding(partial(self.store.leases.check, lease)):
                        as_recorded(self.engine, table, snapshot.model, loaded, self.layout.now)
                    self._fill_batches(task, table, todo, lease, loaded)
                    if inputs:
                        self.store.contents.record_inputs(snapshot.table, inputs, lease=lease)
            if late:
                raise not_ready(snapshot.model, late)

    def _keep_rows(self, task: BackfillTask, interval: Interval, lease: Lease) -> None:
        snapshot, started = task.snapshot, time.monotonic()
        with self._slots, locate_query_errors(snapshot.model):
            self._raise_if_cancelled()
            self._check_sources(task, is_copied=False)
            ran, unchanged_count = self._check_audits(
                self.kept_audits(snapshot, interval), snapshot, interval, lease, lambda: False
            )
            self.store.intervals.extend(snapshot.table, interval, lease=lease)
        seconds = time.monotonic() - started
        self.emit(
            BatchDone(snapshot.name, 1, 1, interval, 0, seconds, ran, unchanged=True, audits_unchanged=unchanged_count)
        )

    def _reset_intervals(self, snapshot: Snapshot, loaded_time: Timeline, lease: Lease, is_copied: bool) -> Timeline:
        """Forget all time of a table that lacks earlier days, to refill it; raise Refused if that loses history."""
        if snapshot.kind.keeps_history and not is_copied:
            raise Refused(
                f"{snapshot.name} lacks days before {loaded_time[-1].end:%Y-%m-%d}; filled again, it would lose "
                "its history.",
                place=snapshot.model.place,
                hint="Revert the change that needs them: `start`, or a table that it reads.",
            )
        for interval in loaded_time:
            self.store.intervals.forget(snapshot.table, interval, lease=lease)
        return ()

    def _fill_batches(
        self, task: BackfillTask, table: Table, todo: tuple[Interval, ...], lease: Lease, loaded_time: Timeline
    ) -> None:
        failed, writes = (
            threading.Event(),
            TableWrites(self.store, self.engine.engine_for(table.gateway), table.name, lease),
        )
        if writes.engine.outlasts:
            writes.look(todo)

        def step(index: int) -> None:
            if failed.is_set():
                return
            try:
                self._run_batch(task, table, todo, index, writes)
            except BaseException:
                failed.set()
                raise

        # The lookback comes first: once the day after it is recorded, no later run would compute it.
        fresh = [index for index, interval in enumerate(todo) if subtract_intervals((interval,), loaded_time)]
        again = sorted(set(range(len(todo))) - set(fresh))
        at_once = min(task.snapshot.model.batches.batch_concurrency or 1, len(todo))
        if at_once == 1:  # in this thread: a catalog connects again for every new thread
            for index in (*again, *fresh):
                step(index)
            return
        for indexes in (again, fresh):
            with ThreadPoolExecutor(at_once, thread_name_prefix="batch") as pool:
                steps = [pool.submit(step, index) for index in indexes]
            for done in steps:
                done.result()

    @contextmanager
    def _hold_lease(self, snapshot: Snapshot) -> Iterator[Lease]:
        """Hold the lease for writing a table: of two plans that share the table the second waits for the first."""
        reported = False
        with ExitStack() as lease_stack:
            while True:
                self._raise_if_cancelled()
                try:
                    lease = lease_stack.enter_context(
                        self.store.leases.hold(table_lease(snapshot.table), self.holder, wait=1)
                    )
                    break
                except LeaseHeld:
                    holder = self.store.leases.holder(table_lease(snapshot.table))
                    if holder and not reported:
                        self.emit(TableAwaited(snapshot.name, snapshot.table, holder.holder))
                        reported = True
            yield lease

    def _run_batch(
        self, task: BackfillTask, table: Table, todo: tuple[Interval, ...], index: int, writes: TableWrites
    ) -> None:
        interval, lease = todo[index], writes.lease
        snapshot, copied = task.snapshot, not subtract_intervals((interval,), task.copies)
        loaded_time: Timeline = ()
        if snapshot.model.is_order_dependent:
            loaded_time = self.store.intervals.load_timelines([table.name])[table.name]
            copied = copied and not loaded_time
        guard = self.engine.guarding(partial(self.store.leases.check, lease))
        with self._slots, locate_query_errors(snapshot.model), guard:
            self._raise_if_cancelled()
            started = time.monotonic()
            self._check_sources(task, copied)
            self.store.contents.forget(table.name, interval, lease=lease)  # before the write, which may be interrupted
            batch = Batch(
                self.layout, self.engine, self.root, table, snapshot.model, interval, loaded_time,
                untouched=self._is_untouched(table, lease),
            )  # fmt: skip
            write = (
                partial(self._copy_rows, task, table, interval)
                if copied
                else partial(self._evaluate_batch, snapshot, batch, writes)
            )
            written = retry_on_conflict(write, partial(self.store.leases.check, lease))
            results = self.audits(snapshot, interval)
            audited, _ = self._check_audits(results, snapshot, interval, lease, partial(take_back, batch))
            model = snapshot.model
            # a unit that is not over counts as missing still
            end = model.cron.cut(self.layout.now) if model.schedule.allow_partials else interval.end
            over = () if model.kind.is_view else build_timeline(interval.start, min(interval.end, end))
            for recorded in over:
                self.store.intervals.record(table.name, recorded, lease=lease)
            if not over:  # who looked at the table during the write saw its old rows
                self.store.contents.forget(table.name, interval, lease=lease)
            seconds = time.monotonic() - started
            covered = units(snapshot.model, (interval,))
            if not copied:
                self.store.costs.record(table.name, interval.start, units=covered, rows=written.rows, seconds=seconds)
            with self._lock:
                self.done = self.done.plus(Filled(written.rows, 1))
        self.emit(BatchDone(snapshot.name, index + 1, len(todo), interval, written.rows, seconds, audited, copied))

    def _is_untouched(self, table: Table, lease: Lease) -> bool:
        """Return True, once, if this run created the table and no other process has held its lease since."""
        return lease.token == self.untouched.pop(table.name, lease.token) + 1

    def _check_sources(self, task: BackfillTask, is_copied: bool) -> None:
        """Raise PlanMoved if a table that is about to be read lacks time that the plan relied on: it is being restated.

        A restatement waits for the lease that this run holds, so that it cannot remove time after this check either.
        """
        read = {task.copied_from} if is_copied else self.layout.sources(task.snapshot.name)
        for table, timeline in self.store.intervals.load_timelines(read & self.relies.keys()).items():
            if gone := subtract_intervals(self.relies[table], timeline):
                raise PlanMoved(f"`{table}` lacks {gone[0]} now: it is being computed again.", hint="Plan again.")

    def _copy_rows(self, task: BackfillTask, table: Table, interval: Interval) -> Written:
        """Copy the rows of the model's old table, which are those that its query would return."""
        recorded_table = self.store.tables.get(task.copied_from)
        # These are without columns that a forward-only change adds.
        source_columns = recorded_table.columns if recorded_table else table.columns
        had = {column.name for column in source_columns}
        names = ", ".join(quote_column(column.name) for column in table.columns if column.name in had)
        model, sql = task.snapshot.model, f"SELECT {names} FROM {task.copied_from}"
        is_ordered = not task.adopts and model.is_order_dependent
        sql += f" WHERE {batch_condition(model, task.copies, self.layout.now)}" if is_ordered else ""
        if task.snapshot.is_mixed:
            shared_columns = tuple(column for column in table.columns if column.name in had)
            sql = add_missing_columns(sql, shared_columns, table.columns)
        if not is_ordered:
            return self._write_copy(table, sql, interval)
        with hold_table(self.store, self.engine, task.copied_from, self.holder, wait=COPYING):
            if self.store.intervals.load_timelines([task.copied_from])[task.copied_from] != task.copies:
                raise PlanMoved(f"The table `{task.copied_from}` was written meanwhile.", hint="Plan again.")
            as_recorded(self.engine, replace(table, name=task.copied_from), model, task.copies, self.layout.now)
            return self._write_copy(table, sql, interval)

    def _write_copy(self, table: Table, sql: str, interval: Interval) -> Written:
        if table.listed and table.parts:
            return self.engine.tables.replace_partitions(table, sql, others=True)
        if table.partitioning is None:
            return self.engine.tables.replace(table, sql)
        return self.engine.tables.replace_interval(table, sql, interval)

    def _evaluate_batch(self, snapshot: Snapshot, batch: Batch, writes: TableWrites) -> Written:
        interval, engine = batch.interval, writes.engine
        with engine.separate_session(*self.layout.statements_around(snapshot, EVALUATING, interval)):
            if snapshot.model.python is not None or not engine.outlasts:
                return write_batch(batch)
            operations = writes.batch_writes(snapshot.name, interval, self.layout.sources(snapshot.name), self.emit)
            with track_operations(operations), engine.reattaching(operations):
                return write_batch(batch)

    def _check_audits(
        self,
        results: Iterator[AuditResult],
        snapshot: Snapshot,
        interval: Interval,
        lease: Lease,
        undo: Callable[[], bool],
    ) -> tuple[int, int]:
        """Return the numbers of audits that ran and that did not have to; raise FoundRows for the first that blocks."""
        counts = [0, 0]
        for result in results:
            counts[result.unchanged] += 1
            self.emit(AuditRan(snapshot.name, result))
            if result.count and result.blocking:
                # The interval may be recorded already (late rows, a restatement): it is no longer good, unless
                # the table is as it was before.
                undone = False
                try:
                    undone = undo()
                finally:
                    forget = self.store.contents.forget if undone else self.store.intervals.forget
                    forget(snapshot.table, interval, lease=lease)
                raise FoundRows(result)
            if result.count:
                with self._lock:
                    self.done = self.done.plus(Filled(warnings=(result,)))
        return counts[0], counts[1]

    def _raise_if_cancelled(self) -> None:
        if self._stop.is_set():
            raise Cancelled("the run was cancelled.")
