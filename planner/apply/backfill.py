"""Backfill: filling tables with the rows they lack, parents first, models side by side, one recorded batch at a time.

A batch is recorded only when its rows are committed and its blocking audits have passed: what is recorded is good, and
what a crash cuts off between the two is simply written again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path

from planner.apply.create_tables import Layout, at_model, physical_table, table_lease
from planner.apply.events import (
    AuditRan,
    BatchDone,
    Emit,
    ModelFailed,
    ModelSkipped,
    ModelStarted,
    ModelUpToDate,
    TableAwaited,
)
from planner.apply.write_batch import take_back, write_batch
from planner.checks.audits import AuditResult
from planner.engine.gateways import engine_of
from planner.engine.protocol import Engine, Table, Written
from planner.errors import (
    AuditFailed,
    Cancelled,
    LeaseHeld,
    MergeplanError,
    Place,
    PlanMoved,
    QueryError,
    Refused,
    SparkAway,
)
from planner.intervals import Interval, Timeline, batches, between, intersection, subtract, with_lookback
from planner.model.model import Kind, Model
from planner.parsing.files.model_file import line_of
from planner.parsing.sql.macro_scope import EVALUATING
from planner.plan.costs import units
from planner.plan.schedule import out_of_order
from planner.project.seeds import read_seed
from planner.snapshot.snapshot import Snapshot
from planner.state.leases import Lease
from planner.state.store import StateStore
from planner.tables.batch_ids import as_recorded, recorded_rows

COPYING = 60.0  # seconds for whoever writes a table that is to be copied
Audits = Callable[[Snapshot, Interval], Iterator[AuditResult]]


@dataclass(frozen=True)
class Work:
    """What one table needs; `missing` as the plan saw it (a restated or late stretch may be loaded already)."""

    snapshot: Snapshot
    missing: Timeline
    copies: Timeline = ()  # what of it another table of the model holds already
    copied_from: str = ""
    until: datetime | None = None  # a unit that begins then is not over: it is computed and counts as missing still
    late: Timeline = ()  # what its signals hold back, as has been told: no failure


@dataclass(frozen=True)
class Failure:
    """A model that could not be computed; `audit` tells of the blocking audit that found rows."""

    model: str
    error: MergeplanError
    audit: AuditResult | None = None


@dataclass(frozen=True)
class Filled:
    """What a backfill did: rows written, audits that found something, models that failed, models left out for them."""

    rows: int = 0
    batches: int = 0
    warnings: tuple[AuditResult, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[str, ...] = ()

    def plus(self, other: Filled) -> Filled:
        """Both backfills as one."""
        return Filled(
            self.rows + other.rows,
            self.batches + other.batches,
            self.warnings + other.warnings,
            self.failures + other.failures,
            self.skipped + other.skipped,
        )


class _FoundRows(Exception):
    """A blocking audit found rows."""

    def __init__(self, result: AuditResult) -> None:
        super().__init__(result.name)
        self.result = result


@dataclass
class _Course:
    """How far a run has come."""

    sorter: TopologicalSorter[str]
    running: dict[Future[None], str] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)  # model -> the failed one it reads, directly or not

    def blocker(self, parents: tuple[str, ...]) -> str | None:
        """The failed model that one of these parents is or reads."""
        for parent in parents:
            if parent in self.failures or parent in self.blocked:
                return self.blocked.get(parent, parent)
        return None


@dataclass
class Backfill:
    """One run over the models of a layout; `workers` are the batches that may run at once."""

    layout: Layout
    engine: Engine
    store: StateStore
    audits: Audits
    root: Path  # of the project, where its seeds are
    holder: str
    emit: Emit
    workers: int = 1
    relies: Mapping[str, Timeline] = field(default_factory=dict)  # what tables must hold when they are read
    _stop: threading.Event = field(default_factory=threading.Event)
    _rows: int = 0
    _batches: int = 0
    _warnings: list[AuditResult] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._slots = threading.BoundedSemaphore(self.workers)

    def run(self, work: Mapping[str, Work]) -> Filled:
        """Do the work in the graph's order; what reads a failed model is left out, everything else is finished.

        Cancelled, LeaseHeld and whatever is nobody's fault end the run; what was recorded stays recorded.
        """
        course = _Course(TopologicalSorter(self.layout.parents))
        course.sorter.prepare()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="model") as pool:
            try:
                while course.sorter.is_active():
                    self._start_ready(course, work, pool)
                    for future in wait(course.running, return_when=FIRST_COMPLETED).done:
                        self._finish(course, future)
            except BaseException as error:
                self._stop.set()
                if self.layout.python:
                    self.layout.python.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                if isinstance(error, KeyboardInterrupt):
                    self.engine.cancel()  # the verbs under way would keep us waiting
                raise
        skipped = tuple(name for name in course.blocked if name in work)
        failures = tuple(course.failures.values())
        return Filled(self._rows, self._batches, tuple(self._warnings), failures, skipped)

    def _start_ready(self, course: _Course, work: Mapping[str, Work], pool: ThreadPoolExecutor) -> None:
        for name in sorted(course.sorter.get_ready()):
            because = course.blocker(self.layout.parents.get(name, ()))
            if because is None and name in work:
                course.running[pool.submit(self._fill, work[name])] = name
                continue
            if because is not None:
                course.blocked[name] = because
                if name in work:
                    self.emit(ModelSkipped(name, because))
            course.sorter.done(name)

    def _finish(self, course: _Course, future: Future[None]) -> None:
        name = course.running.pop(future)
        if failure := _failure(self.layout.snapshots[name].model, future):
            course.failures[name] = failure
            self.emit(ModelFailed(name, str(failure.error)))
        course.sorter.done(name)

    def _fill(self, work: Work) -> None:
        snapshot = work.snapshot
        with self._writing(snapshot) as lease:
            known = self.store.tables.get(snapshot.table)
            if known is None or known.garbage:
                raise PlanMoved(f"The table `{snapshot.table}` is gone.", hint="Plan again: it will be built again.")
            loaded = self.store.intervals.loaded([snapshot.table])[snapshot.table]
            if out_of_order(snapshot.model, subtract(work.missing, loaded), loaded):
                loaded = self._emptied(snapshot, loaded, lease)
            cut, late = self.layout.awaited(snapshot.model, _batches(work, loaded), work.copies)
            late = subtract(late, work.late)
            if not cut and not late:
                self.emit(ModelUpToDate(snapshot.name))
                return
            if cut:
                self.emit(ModelStarted(snapshot.name, len(cut)))
                table = physical_table(snapshot, known.columns)
                as_recorded(self.engine, table, snapshot.model, loaded)
                self._fill_batches(work, table, cut, lease)
            if late:
                raise not_ready(snapshot.model, late)

    def _emptied(self, snapshot: Snapshot, loaded: Timeline, lease: Lease) -> Timeline:
        """A table that lacks days before those that it holds is filled anew, from its first day on."""
        if snapshot.kind.keeps_history:
            raise Refused(
                f"{snapshot.name} lacks days before {loaded[-1].end:%Y-%m-%d}; filled anew, it would lose its history.",
                place=snapshot.model.place,
                hint="Take back what asks for them: `start`, or a table that it reads.",
            )
        for interval in loaded:
            self.store.intervals.forget(snapshot.table, interval, lease=lease)
        return ()

    def _fill_batches(self, work: Work, table: Table, cut: tuple[Interval, ...], lease: Lease) -> None:
        """One batch after another, or as many at once as the model allows; the first failure stops those not begun."""
        failed = threading.Event()

        def step(index: int) -> None:
            if failed.is_set():
                return
            try:
                self._batch(work, table, cut[index], index + 1, len(cut), lease)
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(work.snapshot.model.batch_concurrency or 1, thread_name_prefix="batch") as pool:
            steps = [pool.submit(step, index) for index in range(len(cut))]
        for done in steps:
            done.result()

    @contextmanager
    def _writing(self, snapshot: Snapshot) -> Iterator[Lease]:
        """The right to write a table: of two plans that share it the second waits for the first."""
        told = False
        with ExitStack() as held:
            while True:
                self._go_on()
                try:
                    lease = held.enter_context(self.store.leases.hold(table_lease(snapshot.table), self.holder, wait=1))
                    break
                except LeaseHeld:
                    holder = self.store.leases.holder(table_lease(snapshot.table))
                    if holder and not told:
                        self.emit(TableAwaited(snapshot.name, snapshot.table, holder.holder))
                        told = True
            yield lease

    def _batch(self, work: Work, table: Table, interval: Interval, index: int, of: int, lease: Lease) -> None:
        snapshot, copied = work.snapshot, not subtract((interval,), work.copies)
        held: Timeline = ()
        if snapshot.model.goes_in_order:
            held = self.store.intervals.loaded([table.name])[table.name]
            copied = copied and not held
        with self._slots, at_model(snapshot.model):
            self._go_on()
            started = time.monotonic()
            self._check_sources(work, copied)
            self.store.contents.forget(table.name, interval, lease=lease)  # first of all: a write may be cut off
            written = self._copy(work, table, interval) if copied else self._evaluate(snapshot, table, interval, held)
            undo = partial(take_back, self.engine, table, snapshot.model, interval, held)
            audited = self._audit(snapshot, interval, lease, undo)
            for over in between(interval.start, min(interval.end, work.until or interval.end)):
                self.store.intervals.record(table.name, over, lease=lease)
            seconds = time.monotonic() - started
            covered = units(snapshot.model, (interval,))
            if not copied:
                self.store.costs.record(table.name, interval.start, units=covered, rows=written.rows, seconds=seconds)
            with self._lock:
                self._rows += written.rows
                self._batches += 1
        self.emit(BatchDone(snapshot.name, index, of, interval, written.rows, seconds, audited, copied))

    def _check_sources(self, work: Work, copied: bool) -> None:
        """PlanMoved when a table that is about to be read lacks what the plan relied on: it is being restated.

        Whoever restates waits for the lease that we hold here, so that nothing goes after this either.
        """
        read = {work.copied_from} if copied else self.layout.sources(work.snapshot.name)
        for table, held in self.store.intervals.loaded(read & self.relies.keys()).items():
            if gone := subtract(self.relies[table], held):
                raise PlanMoved(f"`{table}` lacks {gone[0]} now: it is being computed anew.", hint="Plan again.")

    def _copy(self, work: Work, table: Table, interval: Interval) -> Written:
        """The rows that the model's old table holds, which are those that its query would return."""
        names = ", ".join(f"`{column.name}`" for column in table.columns)
        sql = f"SELECT {names} FROM {work.copied_from}"
        if not work.snapshot.model.goes_in_order:
            return self._copied(table, sql, interval)
        model = work.snapshot.model
        with self.store.leases.hold(table_lease(work.copied_from), self.holder, wait=COPYING):
            if self.store.intervals.loaded([work.copied_from])[work.copied_from] != work.copies:
                raise PlanMoved(f"The table `{work.copied_from}` was written meanwhile.", hint="Plan again.")
            as_recorded(self.engine, replace(table, name=work.copied_from), model, work.copies)
            return self._copied(table, f"{sql} WHERE {recorded_rows(model, work.copies)}", interval)

    def _copied(self, table: Table, sql: str, interval: Interval) -> Written:
        if table.listed and table.parts:
            return self.engine.replace_partitions(table, sql, others=True)
        if table.partitioning is None:
            return self.engine.replace_table(table, sql)
        return self.engine.replace_interval(table, sql, interval)

    def _evaluate(self, snapshot: Snapshot, table: Table, interval: Interval, held: Timeline) -> Written:
        """The batch, between the statements that run beside it."""
        engine = engine_of(self.engine, snapshot.model.gateway)
        with engine.beside(*self.layout.beside(snapshot, EVALUATING, interval)):
            return self._write(snapshot, table, interval, held)

    def _write(self, snapshot: Snapshot, table: Table, interval: Interval, held: Timeline) -> Written:
        model = snapshot.model
        if model.kind is Kind.VIEW:
            return Written(0)  # it stands already; its audits are all there is to do
        if model.kind is Kind.SEED:
            assert model.seed is not None
            names = tuple(column.name for column in table.columns)
            try:
                return self.engine.replace_rows(table, list(read_seed(self.root, model.seed, names)))
            except QueryError as error:
                error.place = Place(model.seed.path, error.line)  # of a cell; 0 when it is about the whole file
                raise
        return write_batch(self.layout, self.engine, table, snapshot, interval, held)

    def _audit(self, snapshot: Snapshot, interval: Interval, lease: Lease, undo: Callable[[], bool]) -> int:
        count = 0
        for result in self.audits(snapshot, interval):
            count += 1
            self.emit(AuditRan(snapshot.name, result))
            if result.count and result.blocking:
                # The stretch may have been recorded before (late rows, a restatement): it is not good any more, unless
                # the table is as it was before.
                if not undo():
                    self.store.intervals.forget(snapshot.table, interval, lease=lease)
                raise _FoundRows(result)
            if result.count:
                with self._lock:
                    self._warnings.append(result)
        return count

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise Cancelled("the run was cancelled.")


def _batches(work: Work, loaded: Timeline) -> tuple[Interval, ...]:
    """What is still to do, cut into batches: somebody else, or an earlier run, may have done some of it."""
    model, left = work.snapshot.model, subtract(work.missing, loaded)
    if not left:
        return ()
    if not model.kind.is_incremental:
        return (Interval(work.missing[0].start, work.missing[-1].end),)
    reached = with_lookback(model.cron, subtract(left, work.copies), model.lookback, work.missing[0].start)
    copied = subtract(intersection(left, work.copies), reached)
    return (*copied, *batches(model.cron, reached, model.batch_size))


def not_ready(model: Model, late: Timeline) -> Refused:
    """That a model waits for its signals, at the line where it asks for them."""
    names = " and ".join(f"`{call.name}`" for call in model.signals)
    message = f"{model.name} waits for {names}: {late[0]} is not ready yet."
    return Refused(message, place=line_of(model, model.signals[0].name, header=True), hint="Run again later.")


def found_rows(model: Model, audit: AuditResult) -> Failure:
    """The failure of a model whose blocking audit found rows, at the line where the model asks for it."""
    rows = "1 row" if audit.count == 1 else f"{audit.count} rows"
    place = line_of(model, audit.name, header=True)
    message = f"The audit `{audit.name}` of {model.name} found {rows}."
    return Failure(model.name, AuditFailed(message, place=place, audit=audit.name, model=model.name), audit)


def _failure(model: Model, future: Future[None]) -> Failure | None:
    """The model's failure, if it failed; what is not the model's own fault is raised."""
    try:
        future.result()
    except _FoundRows as found:
        return found_rows(model, found.result)
    except (Cancelled, LeaseHeld, PlanMoved, SparkAway):
        raise
    except MergeplanError as error:
        return Failure(model.name, error)
    return None
