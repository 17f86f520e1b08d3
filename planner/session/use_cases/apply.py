"""apply: what a plan needs checked of Spark, and making it so."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from mergeplan.planner.apply.backfill.layout import Layout, locate_query_errors
from mergeplan.planner.apply.drift import check_catalog
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import ProjectError, ProjectErrors, QueryError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.catalogs import check_reads
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import ChangeKind
from mergeplan.planner.session.events import Revised
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.use_cases.applying import Record, execute_plan
from mergeplan.planner.session.use_cases.drift import check_sources
from mergeplan.planner.session.use_cases.plan import keep_categories, renew_expiry
from mergeplan.planner.session.use_cases.planning import confirm_plan, estimate_costs
from mergeplan.planner.session.witness.checking import make_checked_plan
from mergeplan.planner.session.workspace import Workspace

THREADS = 4  # queries at once


def check_queries(work: Workspace, plan: Plan) -> None:
    """Raise QueryError for a query that Spark cannot parse, before anything is changed, or shown if Spark runs."""
    if plan.changes:
        check_syntax(plan, Layout(plan.new.snapshots, plan.parents, work.now), work.engine)


def check_catalogs(work: Workspace, plan: Plan) -> None:
    """Raise ProjectError if a model of the plan reads a table in a catalog that does not exist."""
    for change in plan.changes:
        if change.new:
            check_reads(change.new.model, work.project.catalogs)


def apply_plan(work: Workspace, plan: Plan, options: PlanOptions, note: str = "") -> Outcome:
    """Apply the plan if it is unchanged once the lease on its environment is held; raise PlanMoved otherwise.

    Raise ProjectError, before anything is changed, if a model reads a table in a catalog that does not exist.
    """
    check_catalogs(work, plan)
    keep_categories(work, plan, options)
    with work.lease(plan.environment, f"plan {plan.id}") as lease:
        plan = confirm_plan(work, plan, options, lease)
        checked = plan if options.restate else replace(make_checked_plan(work, options, work.models), id=plan.id)
        check_catalog(checked.old, work.engine)
        check_sources(work, checked)
        outcome = execute_plan(
            work, checked, lease, Record(options.who, note), complete=not options.skip_backfill,
            replan=None if options.restate else lambda: make_checked_plan(work, options, work.models),
        )  # fmt: skip
        if not outcome.failures:
            renew_expiry(work, plan)
    if (final := outcome.plan or checked) != plan:
        work.on_event(Revised(final, estimate_costs(work, plan)))
    work.store.plans.close(plan.id, "failed" if outcome.failures else "applied")
    return outcome


def check_syntax(plan: Plan, layout: Layout, engine: Engine) -> None:
    """Raise ProjectErrors for the queries of new and edited models that Spark cannot parse."""
    edited = (ChangeKind.ADDED, ChangeKind.DIRECT)
    models = [change.new.model for change in plan.changes if change.new and change.change in edited]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="syntax") as pool:
        results = pool.map(
            lambda model: _find_syntax_error(model, layout, engine),
            [sql_model for sql_model in models if sql_model.sql],
        )
        errors = tuple(error for error in results if error is not None)
    if errors:
        raise errors[0] if len(errors) == 1 else ProjectErrors(errors)


def _find_syntax_error(model: Model, layout: Layout, engine: Engine) -> ProjectError | None:
    try:
        with locate_query_errors(model, layout):
            engine.engine_for(model.gateway).reads(layout.query(model, None))
    except QueryError as error:
        return ProjectError(f"{model.name}: {error.message}", place=error.located, hint=error.hint)
    return None
