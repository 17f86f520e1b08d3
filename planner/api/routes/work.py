"""Everything else that is done as a job: runs, rollbacks, audits, unit tests, diffs, evaluations."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from mergeplan.planner.api.access import Principal, Scope
from mergeplan.planner.api.context import ApiContext, Context, NoQuery, require_scope
from mergeplan.planner.api.dates import check_dates
from mergeplan.planner.api.jobs.job import JobRow
from mergeplan.planner.api.jobs.requests import (
    AuditBody,
    DataDiffBody,
    EvaluationBody,
    Jobs,
    PhysicalPlanBody,
    RollbackBody,
    RunBody,
    TableDiffBody,
    TestBody,
)
from mergeplan.planner.api.problems import problem_responses
from mergeplan.planner.api.routes.environments import OneName, check_environment
from mergeplan.planner.api.routes.models import find_model
from mergeplan.planner.api.routes.plans import ACCEPTED, accept_job
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.rendering import RenderFilling, find_rendering, render_query
from mergeplan.planner.session.use_cases.environments import check_droppable
from mergeplan.planner.snapshot.environment import PROD

router = APIRouter(tags=["jobs"])
Planner = Annotated[Principal, require_scope(Scope.PLAN)]
Applier = Annotated[Principal, require_scope(Scope.APPLY)]
Nothing = Annotated[NoQuery, Query()]
NOT_THERE = ACCEPTED | problem_responses(404)


@router.post("/runs", summary="Run what is due", status_code=202, responses=NOT_THERE)
def run(context: Context, body: RunBody, response: Response, _: Nothing, principal: Applier) -> JobRow:
    """Compute what has come due in an environment since its tables were last filled."""
    check_dates(body.start, body.end)
    check_environment(context, body.environment or PROD)
    return accept_job(context.submit(_make_jobs(context, principal).run(body)), response, "jobs")


@router.post("/environments/{name}/rollback", summary="Roll back", status_code=202, responses=NOT_THERE)
def roll_back(
    context: Context, name: OneName, body: RollbackBody, response: Response, _: Nothing, principal: Applier
) -> JobRow:
    """Point an environment back to what it showed before; nothing is computed."""
    check_environment(context, name)
    return accept_job(context.submit(_make_jobs(context, principal).rollback(name, body)), response, "jobs")


@router.delete("/environments/{name}", summary="Drop an environment", status_code=202, responses=NOT_THERE)
def invalidate(context: Context, name: OneName, response: Response, _: Nothing, principal: Applier) -> JobRow:
    """Drop an environment: its views, and the tables that only it used. Prod cannot be dropped."""
    check_droppable(name)
    check_environment(context, name)
    return accept_job(context.submit(_make_jobs(context, principal).invalidate(name)), response, "jobs")


@router.post("/audits", summary="Run audits", status_code=202, responses=NOT_THERE)
def audit(context: Context, body: AuditBody, response: Response, _: Nothing, principal: Planner) -> JobRow:
    """Run the audits of an environment's models on what its tables hold; bad rows are masked."""
    check_dates(body.start, body.end)
    check_environment(context, body.environment or PROD)
    return accept_job(context.submit(_make_jobs(context, principal).audit(body)), response, "jobs")


@router.post("/tests", summary="Run unit tests", status_code=202, responses=ACCEPTED)
def test(context: Context, body: TestBody, response: Response, _: Nothing, principal: Planner) -> JobRow:
    """Run the project's unit tests, all or some."""
    return accept_job(context.submit(_make_jobs(context, principal).test(body)), response, "jobs")


@router.post("/table-diffs", summary="Compare tables", status_code=202, responses=ACCEPTED)
def diff_tables(context: Context, body: TableDiffBody, response: Response, _: Nothing, principal: Planner) -> JobRow:
    """Compare two tables, or models in two environments; rows are masked."""
    _check_condition(context, principal, body.where)
    return accept_job(context.submit(_make_jobs(context, principal).table_diff(body)), response, "jobs")


@router.post("/data-diffs", summary="Compare rows", status_code=202, responses=NOT_THERE)
def diff_data(context: Context, body: DataDiffBody, response: Response, _: Nothing, principal: Planner) -> JobRow:
    """Compare the rows of an environment's changed models with prod's; samples are masked."""
    check_environment(context, body.environment or PROD)
    _check_condition(context, principal, body.where)
    return accept_job(context.submit(_make_jobs(context, principal).data_diff(body)), response, "jobs")


@router.post("/physical-plans", summary="Compare physical plans", status_code=202, responses=NOT_THERE)
def explain(context: Context, body: PhysicalPlanBody, response: Response, _: Nothing, principal: Planner) -> JobRow:
    """Compare Spark's physical plans of an environment's edits with those of prod; compute nothing."""
    check_environment(context, body.environment or PROD)
    return accept_job(context.submit(_make_jobs(context, principal).physical_plan(body)), response, "jobs")


@router.post("/evaluations", summary="Fetch rows", status_code=202, responses=NOT_THERE)
def evaluate(context: Context, body: EvaluationBody, response: Response, _: Nothing, principal: Applier) -> JobRow:
    """Return the first rows, at most `limit`, of a model's query over prod's tables."""
    filling = RenderFilling(body.start, body.end)
    check_dates(body.execution_time)
    name = find_model(context.reader.read(), body.model).name
    with context.reader.open() as work:
        work.now = parse_moment(body.execution_time, work.now) or work.now
        sql = render_query(work, find_rendering(work, name, filling))
    return accept_job(context.submit(_make_jobs(context, principal).evaluation(sql, body)), response, "jobs")


def _make_jobs(context: ApiContext, principal: Principal) -> Jobs:
    return Jobs(context.settings, principal.name)


def _check_condition(context: ApiContext, principal: Principal, where: str) -> None:
    """Require the scope `apply` for a condition: with a count it reveals values, masked or not."""
    if where:
        context.check(principal, Scope.APPLY)
