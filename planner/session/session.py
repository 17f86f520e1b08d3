"""A session: one project, its Spark and its state, and each use case as a call."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from mergeplan.planner.apply.backfill.work import Filled
from mergeplan.planner.apply.events import Emit, ignore_event
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.apply.promotion.rollback import RollbackPlan
from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.errors import Cancelled, Refused, RequestError
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.notebook.check_results import AuditResults, DataDiffs, PhysicalDiffs
from mergeplan.planner.session.notebook.freshness_results import FreshnessResults
from mergeplan.planner.session.notebook.listed_results import (
    Environments,
    FetchedRows,
    History,
    RecordedAudits,
    TableDiffs,
)
from mergeplan.planner.session.options import (
    AuditOptions,
    DataDiffOptions,
    PlanOptions,
    RunOptions,
    TableDiffOptions,
    TestOptions,
)
from mergeplan.planner.session.results import Difference, LineageView, SessionPlan
from mergeplan.planner.session.scheduling.freshness import stream_freshness
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.unopened import lint_refusals
from mergeplan.planner.session.use_cases.apply import apply_plan, check_catalogs, check_queries
from mergeplan.planner.session.use_cases.applying import Record
from mergeplan.planner.session.use_cases.audits import audit_history, stream_audits
from mergeplan.planner.session.use_cases.cancelling import cancel_on_signals
from mergeplan.planner.session.use_cases.catalog import make_catalog
from mergeplan.planner.session.use_cases.data_diff import data_diffs, pairs_of_environment
from mergeplan.planner.session.use_cases.diff import plan_difference
from mergeplan.planner.session.use_cases.drift import add_drift_warnings
from mergeplan.planner.session.use_cases.environments import (
    Invalidated,
    RolledBack,
    Swept,
    check_droppable,
    invalidate_environment,
    plan_rollback,
    roll_back_environment,
    run_janitor,
)
from mergeplan.planner.session.use_cases.lineage import find_lineage
from mergeplan.planner.session.use_cases.lint import LintReport, lint_project
from mergeplan.planner.session.use_cases.physical_plan import physical_diffs_of_environment
from mergeplan.planner.session.use_cases.plan import (
    check_options,
    keep_categories,
    prepare_plan,
    rebuild_plan,
    renew_expiry,
)
from mergeplan.planner.session.use_cases.planning import add_declaration_warnings, estimate_costs, save_plan
from mergeplan.planner.session.use_cases.run import RunResult, compute_due_models
from mergeplan.planner.session.use_cases.table_diff import table_diffs
from mergeplan.planner.session.use_cases.unit_tests import TestReport, run_tests
from mergeplan.planner.session.witness.checking import add_checks
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name
from mergeplan.planner.state.passed.audit_results import LISTED


class Opened:
    """A project that is open: Spark and the state database are opened when they are first needed, until `close`."""

    def __init__(self, settings: SessionSettings, execution_time: str | None = None) -> None:
        if not settings.root.is_dir():
            raise RequestError(f"There is no folder `{settings.root}`.")
        self._execution_time = execution_time
        self._work = Workspace(settings, "backfill")
        self._turn, self._busy = threading.Lock(), False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        with self._take_turn():
            self._work.close()
            self._work = Workspace(self._work.settings, self._work.profile)

    def cancel(self) -> None:
        """End the call that is under way, from another thread or from its `on_event`: it raises Cancelled.

        What is recorded stays recorded, and the same call goes on from there. A promotion that has begun is put back or
        comes to its end.
        """
        if self._busy:
            self._work.cancel()

    def fetch(self, sql: str, limit: int | None = None) -> FetchedRows:
        """Return the rows of a query, run on the project's Spark."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            rows = work.engine.fetch(sql, limit)
            return FetchedRows(rows.columns, rows.rows)

    def catalog(self, environment: str = PROD) -> Catalog:
        """Return the models of the project's files with columns and lineage, beside those that an environment shows."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            return make_catalog(work, parse_environment_name(environment))

    def data_diff(self, environment: str, options: DataDiffOptions | None = None) -> DataDiffs:
        """Compare the rows of an environment's changed tables with prod's, over the time that both hold."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            pairs = pairs_of_environment(work, environment)
            return DataDiffs(data_diffs(work, pairs, (PROD, environment), options or DataDiffOptions()))

    def physical_plan(self, environment: str) -> PhysicalDiffs:
        """Compare the physical plans of an environment's edited queries with prod's.

        Both queries are explained over the same tables.
        """
        with self._begin_call(ignore_event, only_looks=True) as work:
            return PhysicalDiffs(physical_diffs_of_environment(work, environment))

    def audit_history(
        self, environment: str = PROD, models: Collection[str] = (), limit: int = LISTED
    ) -> RecordedAudits:
        """Return the results of an environment's audits in the last three months, passes included, newest first.

        `models` are selectors; () means all models and standalone audits.
        """
        with self._begin_call(ignore_event, only_looks=True) as work:
            shown = work.environment(parse_environment_name(environment))
            return RecordedAudits(audit_history(work, shown, models, limit))

    def freshness(self, environment: str = PROD, models: Collection[str] = ()) -> FreshnessResults:
        """Return how old the tables of an environment are whose models declare `freshness`.

        `models` are selectors; () means all.
        """
        with self._begin_call(ignore_event, only_looks=True) as work:
            shown = work.environment(parse_environment_name(environment))
            return FreshnessResults(stream_freshness(work, shown, models))

    def plan_rollback(self, environment: str, revision: int | None = None) -> RollbackPlan:
        """Return what `rollback` would do, without any change; `refusal` is the reason if it is impossible, or None."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            return plan_rollback(work, parse_environment_name(environment), revision)

    @contextmanager
    def _begin_call(self, on_event: Emit, *, only_looks: bool = False, at: str | None = None) -> Iterator[Workspace]:
        with self._take_turn(), cancel_on_signals(self.cancel):
            call_time = datetime.now(UTC)
            call_time = parse_moment(at or self._execution_time, call_time) or call_time
            emit = self._work.cancellation.checking(on_event)
            self._work.begin(call_time, emit, only_looks=only_looks)
            self._busy = True
            try:
                yield self._work
            except KeyboardInterrupt:
                raise Cancelled("the run was cancelled.") from None
            finally:
                self._busy = False

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        """Allow one call at a time; raise RequestError, because a call from `on_event` would wait for ever."""
        if not self._turn.acquire(blocking=False):
            message = "Another call of this session is under way."
            raise RequestError(message, hint="Wait for it, or end it with `cancel`.")
        try:
            yield
        finally:
            self._turn.release()


class Session(Opened):
    """Every use case of a project as a call: typed options in, data out, MergeplanError on failure.

    Each call reads the project's files again. The first call that needs it finishes what a crash left half promoted.
    """

    def plan(
        self, environment: str | None = None, options: PlanOptions | None = None, *, on_event: Emit = ignore_event
    ) -> SessionPlan:
        """Plan what an environment would become (None: the default that the project names, or prod); change nothing.

        The linter's rules and the unit tests run first; raise ProjectErrors or MergeplanError if they fail.
        """
        plan_options = options or PlanOptions()
        if environment is not None:
            plan_options = replace(plan_options, environment=parse_environment_name(environment))
        plan_options = replace(plan_options, execution_time=plan_options.execution_time or self._execution_time)
        with self._begin_call(on_event, at=plan_options.execution_time) as work:
            plan_options = check_options(work, plan_options)
            planned = add_checks(work, plan_options, prepare_plan(work, plan_options))
            if plan_options.refresh or work.has_engine or work.is_warm:
                planned = add_drift_warnings(work, planned, describe=plan_options.refresh)
                planned = add_declaration_warnings(work, planned)
            if not planned.blockers and work.has_engine:
                check_queries(work, planned)
            if not (planned.is_empty or planned.blockers):
                save_plan(work, planned, plan_options)
            return SessionPlan(planned, plan_options, estimate_costs(work, planned), self.apply)

    def apply(
        self, plan: SessionPlan | str, *, note: str = "", check: bool = True, on_event: Emit = ignore_event
    ) -> Outcome:
        """Apply the plan, or the stored plan of this id: create tables, fill and audit them, and only then promote.

        The plan is made again first. Raise PlanMoved, with what moved, if the result differs, and Refused if it is
        blocked. A model that fails prevents the promotion. Its error is raised when all others are done, or with
        `check=False` is listed in the outcome's `failures`.
        """
        with self._begin_call(on_event) as work:
            outcome = _conclude_empty_plan(work, plan) or _apply_saved_plan(
                work, plan if isinstance(plan, str) else plan.id, note
            )
        if check:
            outcome.raise_failure()
        return outcome

    def restate(
        self,
        models: Collection[str],
        environment: str = PROD,
        start: str | None = None,
        end: str | None = None,
        *,
        on_event: Emit = ignore_event,
    ) -> SessionPlan:
        """Plan to compute these models (selectors) again where they are, with everything downstream."""
        return self.plan(environment, PlanOptions(restate=tuple(models), start=start, end=end), on_event=on_event)

    def run(
        self,
        environment: str = PROD,
        options: RunOptions | None = None,
        *,
        check: bool = True,
        on_event: Emit = ignore_event,
    ) -> RunResult:
        """Compute what has come due in an environment since its tables were last filled; leave its views as they are.

        A model's error is raised when all others are done, or with `check=False` is listed in the outcome's `failures`.
        """
        run_options = replace(options or RunOptions(), environment=parse_environment_name(environment))
        with self._begin_call(on_event) as work:
            result = compute_due_models(work, run_options)
        if check and result.outcome is not None:
            result.outcome.raise_failure()
        return result

    def diff(self, environment: str = PROD, other: str | None = None) -> Difference:
        """Compare the project's files, or another environment, with an environment."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            return Difference(plan_difference(work, environment, other), other or "")

    def rollback(
        self,
        environment: str,
        revision: int | None = None,
        *,
        who: str = "",
        note: str = "",
        on_event: Emit = ignore_event,
    ) -> RolledBack:
        """Point the environment again at what it showed at a revision (None: the last that was different)."""
        name = parse_environment_name(environment)
        with self._begin_call(on_event) as work:
            return roll_back_environment(work, name, revision, Record(who, note))

    def environments(self) -> Environments:
        with self._begin_call(ignore_event, only_looks=True) as work:
            return Environments(work.store.environments.all())

    def history(self, environment: str = PROD) -> History:
        """Return the revisions of an environment, newest first."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            return History(work.store.environments.history(work.environment(parse_environment_name(environment)).name))

    def invalidate(self, environment: str, *, who: str = "", on_event: Emit = ignore_event) -> Invalidated:
        """Drop the environment at once: its views, and the tables that only it used. Raise RequestError for prod."""
        name = parse_environment_name(environment)
        check_droppable(name)
        with self._begin_call(on_event) as work:
            return invalidate_environment(work, name, who)

    def janitor(
        self,
        retention: timedelta | None = None,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
        on_event: Emit = ignore_event,
    ) -> Swept:
        """Drop expired environments except those to `keep`, and the tables that nothing refers to any more.

        Remove old versions of the other tables if the project limits how long they are stored. With `dry_run`, only
        name them.
        """
        with self._begin_call(on_event, only_looks=dry_run) as work:
            return run_janitor(work, retention, keep)

    def lineage(self, model: str, column: str | None = None, *, downstream: bool = False) -> LineageView:
        """Return what a model or a column is made from, or with `downstream` what is made from it."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            target = model if column is None else f"{model}.{column}"
            return LineageView(find_lineage(work, target, downstream=downstream), work.project.models)

    def table_diff(
        self, first: str, second: str, model: str | None = None, options: TableDiffOptions | None = None
    ) -> TableDiffs:
        """Compare two tables, a model in two environments, or all models that differ there."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            return TableDiffs(table_diffs(work, first, second, model, options or TableDiffOptions()))

    def test(self, options: TestOptions | None = None) -> TestReport:
        """Run the project's unit tests on Spark; a failed one is in the report and raises nothing."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            return run_tests(work, options or TestOptions())

    def audit(
        self, environment: str = PROD, options: AuditOptions | None = None, *, on_event: Emit = ignore_event
    ) -> AuditResults:
        """Run the audits of an environment's models on the rows of its tables; a failed one raises nothing."""
        with self._begin_call(on_event, only_looks=True) as work:
            return AuditResults(
                stream_audits(work, work.environment(parse_environment_name(environment)), options or AuditOptions())
            )

    def lint(self, models: Collection[str] = ()) -> LintReport:
        """Check the models (selectors; () for all) against the rules of `linter` in config.yaml."""
        with self._begin_call(ignore_event, only_looks=True) as work:
            return lint_project(work, tuple(models), lint_refusals(work.project))


def _conclude_empty_plan(work: Workspace, plan: SessionPlan | str) -> Outcome | None:
    """Return the outcome of a plan with nothing to do, or None; raise Refused for a blocked one."""
    if isinstance(plan, str):
        return None
    if plan.blockers:
        raise Refused(plan.blockers[0].message, place=plan.blockers[0].place)
    if not plan.is_empty:
        return None
    keep_categories(work, plan.decision, plan.options)  # a category alone moves no table
    renew_expiry(work, plan.decision)
    return Outcome((), Filled(), None, plan=plan.decision)


def _apply_saved_plan(work: Workspace, plan_id: str, note: str) -> Outcome:
    planned, options = rebuild_plan(work, plan_id)
    if planned.blockers:
        raise Refused(planned.blockers[0].message, place=planned.blockers[0].place)
    check_catalogs(work, planned)
    check_queries(work, planned)
    return apply_plan(work, planned, options, note)
