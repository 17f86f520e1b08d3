"""Backfill: filling tables with the rows they lack, parents first and several models at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from mergeplan.planner.apply.backfill.fill_table import TableWriter
from mergeplan.planner.apply.backfill.work import Failure, Filled, FoundRows, Work, audit_failure
from mergeplan.planner.apply.events import ModelFailed, ModelSkipped
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Cancelled, LeaseHeld, MergeplanError, PlanMoved, SparkUnavailable
from mergeplan.planner.model.model import Model

LOOK_SECONDS = 0.5  # between two checks for a cancellation


def run_backfill(writer: TableWriter, work: Mapping[str, Work], pool: ThreadPoolExecutor) -> Filled:
    """Do the work in the graph's order, `workers` models at once.

    The readers of a failed model are left out, and everything else is finished. `pool` has a thread for each worker;
    none of them still works for us at the end. Cancelled, LeaseHeld and any error that no model caused end the run;
    recorded work stays recorded.
    """
    run = _BackfillRun(writer, work, TopologicalSorter(writer.order or writer.layout.parents))
    run.sorter.prepare()
    try:
        while run.sorter.is_active():
            run.start_ready(pool)
            for future in wait(run.running, LOOK_SECONDS, FIRST_COMPLETED).done:
                run.finish(future)
            writer.check()
    except BaseException as error:
        writer.stop()
        if isinstance(error, KeyboardInterrupt | Cancelled):
            _cancel_running(run.running, writer.engine)
        wait(run.running)
        raise
    skipped = tuple(name for name in run.blocked if name in work)
    return writer.done.plus(Filled(failures=tuple(run.failures.values()), skipped=skipped))


@dataclass
class _BackfillRun:
    """The state of a backfill: models that are done, running, failed or waiting."""

    writer: TableWriter
    work: Mapping[str, Work]
    sorter: TopologicalSorter[str]
    ready: list[str] = field(default_factory=list)  # models with work whose parents are done
    running: dict[Future[None], str] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)  # model -> the failed one it reads, directly or not

    def start_ready(self, pool: ThreadPoolExecutor) -> None:
        for name in sorted(self.sorter.get_ready()):
            because = self._find_blocker(self.writer.layout.parents.get(name, ()))
            if because is None and name in self.work:
                self.ready.append(name)
                continue
            if because is not None:
                self.blocked[name] = because
                if name in self.work:
                    self.writer.emit(ModelSkipped(name, because))
            self.sorter.done(name)
        while self.ready and len(self.running) < self.writer.workers:
            name = self.ready.pop(0)
            self.running[pool.submit(self.writer.fill, self.work[name])] = name

    def finish(self, future: Future[None]) -> None:
        name = self.running.pop(future)
        if failure := _find_failure(self.writer.layout.snapshots[name].model, future):
            self.failures[name] = failure
            self.writer.emit(ModelFailed(name, str(failure.error)))
        self.sorter.done(name)

    def _find_blocker(self, parents: tuple[str, ...]) -> str | None:
        for parent in parents:
            if parent in self.failures or parent in self.blocked:
                return self.blocked.get(parent, parent)
        return None


def _cancel_running(running: Collection[Future[None]], engine: Engine) -> None:
    """Cancel until every model has ended, because one between two statements ends only at its next one."""
    while True:
        engine.cancel()
        if not wait(running, LOOK_SECONDS).not_done:
            return


def _find_failure(model: Model, future: Future[None]) -> Failure | None:
    """Return the model's failure, if it failed; raise an error that the model did not cause."""
    try:
        future.result()
    except FoundRows as rows_error:
        return audit_failure(model, rows_error.result)
    except (Cancelled, LeaseHeld, PlanMoved, SparkUnavailable):
        raise
    except MergeplanError as error:
        return Failure(model.name, error)
    return None
