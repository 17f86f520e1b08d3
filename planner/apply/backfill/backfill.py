"""Backfill: filling tables with the rows they lack, parents first and several models at once."""

from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import TopologicalSorter

from mergeplan.planner.apply.audits.reuse import AuditReuse, run_kept_audits
from mergeplan.planner.apply.backfill.fill_table import TableWriter
from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.apply.backfill.work import Failure, Filled, FoundRows, audit_failure
from mergeplan.planner.apply.context import ApplyContext
from mergeplan.planner.apply.events import AuditRan, ModelFailed, ModelSkipped, Stage, StageSkipped, StageStarted
from mergeplan.planner.checks.audits import read_by_audits, run_audits
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Cancelled, LeaseHeld, MergeplanError, PlanMoved, SparkUnavailable
from mergeplan.planner.model.graph import graph_of, reach_names
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.schema import ConnectionConfig
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.stages import BackfillStage, BackfillTask, find_downstream
from mergeplan.planner.python.running import open_runner

APPLICATION = "{application_id}"
LOOK_SECONDS = 0.5  # between two checks for a cancellation


def fill_tables(stage: BackfillStage, plan: Plan, context: ApplyContext, new_tables: dict[str, int]) -> Filled:
    """Do the tasks of a stage, without readers of refused external tables; `new_tables` has leases of creations."""
    tasks, project, engine = {task.snapshot.name: task for task in stage.tasks}, context.project, context.engine
    if not tasks:
        context.emit(StageSkipped(Stage.BACKFILL, "nothing is missing"))
        return Filled()
    layout, connection = context.layout(plan), project.connection
    context.emit(StageStarted(Stage.BACKFILL, len(tasks), spark_ui(connection, engine)))
    failed = audit_external_tables(tasks, layout, context)
    downstream = {failure.model: find_downstream(plan, {failure.model}) for failure in failed}
    skipped_models = {name: model for model, names in downstream.items() for name in names & tasks.keys()}
    for name, model in sorted(skipped_models.items()):
        context.emit(ModelSkipped(name, model))
    options = context.audit_options(layout)
    stored_tables = {snapshot.table for snapshot in layout.snapshots.values() if snapshot.kind.is_stored}
    reuse = AuditReuse(context.store, engine, stored_tables, context.spark)
    read = {name: read_by_audits(task.snapshot.model, project.audits) for name, task in tasks.items()}
    with open_runner(project.code, engine) as python:
        writer = TableWriter(
            replace(layout, python=python), engine, context.store,
            partial(run_audits, engine, options=options), partial(run_kept_audits, options=options, reuse=reuse),
            project.root, context.holder, context.emit, workers=connection.concurrent_tasks, check=context.check,
            relies=plan.relies, order=add_audit_parents(layout.parents, read), untouched=new_tables,
            spark=context.spark,
        )  # fmt: skip
        work = {name: task for name, task in tasks.items() if name not in skipped_models}
        filled = run_backfill(writer, work, context.pool)
    return filled.plus(Filled(failures=failed, skipped=tuple(sorted(skipped_models))))


def run_backfill(writer: TableWriter, work: Mapping[str, BackfillTask], pool: ThreadPoolExecutor) -> Filled:
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
    writer: TableWriter
    work: Mapping[str, BackfillTask]
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


def audit_external_tables(names: Collection[str], layout: Layout, context: ApplyContext) -> tuple[Failure, ...]:
    """Run the audits of the external models upstream of these; return failures for blocking ones that found rows.

    External tables may change at any time, so the audits run before each computation.
    """
    graph = graph_of({name: snapshot.model for name, snapshot in layout.snapshots.items()})
    options = context.audit_options(layout)
    failures = []
    for name in sorted(graph.upstream(names)):
        snapshot = layout.snapshots[name]
        if not snapshot.kind.is_external:
            continue
        with locate_query_errors(snapshot.model):
            for result in run_audits(context.engine, snapshot, None, options):
                context.emit(AuditRan(name, result))
                if not result.ok and result.blocking:
                    failures.append(audit_failure(snapshot.model, result))
                    context.emit(ModelFailed(name, str(failures[-1].error)))
                    break
    return tuple(failures)


def spark_ui(connection: ConnectionConfig, engine: Engine) -> str:
    """Return the gateway's `spark_ui` with this application's id; '' if it has none. Raise QueryError.

    A history server or a proxy lists applications by their id, which a Spark Connect server knows too.
    """
    address = connection.spark_ui or ""
    if APPLICATION not in address:
        return address
    return address.replace(APPLICATION, str(engine.fetch("SET spark.app.id").rows[0][1]))


def add_audit_parents(
    parents: Mapping[str, tuple[str, ...]], read: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, ...]]:
    """Return each model's parents, then the models that its audits read, but none that is made of its rows."""
    all_parents = dict(parents)
    for name in sorted(read.keys() & parents.keys()):
        for audit_parent in sorted(read[name]):
            if (
                audit_parent in parents
                and audit_parent not in all_parents[name]
                and name not in reach_names([audit_parent], all_parents)
            ):
                all_parents[name] = (*all_parents[name], audit_parent)
    return all_parents
