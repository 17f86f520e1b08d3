"""/plans: plans as resources: made, shown, applied as they were shown, cancelled."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from mergeplan.planner.api.access import Principal, Scope
from mergeplan.planner.api.context import ApiContext, Context, NoQuery, principal_of, require_scope
from mergeplan.planner.api.dates import check_dates
from mergeplan.planner.api.jobs.job import JobKind, JobPage, JobRecord, JobRow, JobStatus, JobView
from mergeplan.planner.api.jobs.requests import ApplyBody, Jobs, PlanBody, RestatementBody
from mergeplan.planner.api.problems import Conflict, problem_responses
from mergeplan.planner.api.routes import jobs
from mergeplan.planner.errors import PlanMoved, RequestError
from mergeplan.planner.session.use_cases.plan import rebuild_plan

router = APIRouter(tags=["plans"])
PLANS = (JobKind.PLAN, JobKind.RESTATEMENT)
PLANNER = require_scope(Scope.PLAN)
APPLIER = require_scope(Scope.APPLY)
ACCEPTED = {202: {"description": "It is begun; `Location` is where it is"}} | problem_responses(400, 413, 429)
Nothing = Annotated[NoQuery, Query()]


@router.post("/plans", summary="Make a plan", status_code=202, responses=ACCEPTED)
def make_plan(
    context: Context, body: PlanBody, response: Response, _: Nothing, principal: Annotated[Principal, PLANNER]
) -> JobRow:
    """Plan an environment; nothing is computed but the unit tests. The plan is kept, and can be applied by its id."""
    check_dates(body.start, body.end, body.execution_time, body.effective_from)
    record = context.submit(Jobs(context.settings, principal.name).plan(body))
    return accept_job(record, response, "plans")


@router.post("/restatements", summary="Plan a restatement", status_code=202, responses=ACCEPTED)
def make_restatement(
    context: Context, body: RestatementBody, response: Response, _: Nothing, principal: Annotated[Principal, PLANNER]
) -> JobRow:
    """Plan to compute models again where they are: a plan like any other, which is applied by its id."""
    check_dates(body.start, body.end)
    record = context.submit(Jobs(context.settings, principal.name).restatement(body))
    return accept_job(record, response, "plans")


@router.get("/plans", summary="List plans", dependencies=[jobs.READS])
def list_plans(context: Context, query: Annotated[jobs.JobsQuery, Query()]) -> JobPage:
    """List the plans that are kept, the newest first."""
    kinds = PLANS if query.kind is None else tuple(kind for kind in PLANS if kind is query.kind)
    return jobs.page_of(context.jobs.list(kinds, query.environment) if kinds else (), query)


@router.get("/plans/{job_id}", summary="Show a plan", dependencies=[jobs.READS], responses=problem_responses(404))
def show_plan(request: Request, context: Context, job_id: jobs.JobId, _: Nothing) -> JobView:
    """Return a plan as soon as it is made, or the errors that prevented it."""
    return context.jobs.view(jobs.find_job(context, job_id, principal_of(request), PLANS))


@router.get(
    "/plans/{job_id}/events",
    summary="Follow a plan",
    dependencies=[jobs.READS],
    responses=jobs.EVENTS | problem_responses(404),
)
def follow_plan(
    request: Request, context: Context, job_id: jobs.JobId, _: Nothing, last_event_id: jobs.LastEventId = None
) -> Response:
    """Stream the JSON lines of the planning as server-sent events."""
    return jobs.follow_events(context, jobs.find_job(context, job_id, principal_of(request), PLANS), last_event_id)


@router.post(
    "/plans/{job_id}/apply", summary="Apply a plan", status_code=202, responses=ACCEPTED | problem_responses(404)
)
def apply_plan(
    context: Context,
    job_id: jobs.JobId,
    body: ApplyBody,
    response: Response,
    _: Nothing,
    principal: Annotated[Principal, APPLIER],
) -> JobRow:
    """Apply a plan as it was shown: it is made again first, and refused (409) if the result differs."""
    record = submit_apply(context, jobs.find_job(context, job_id, principal, PLANS), body, principal)
    return accept_job(record, response, "jobs")


@router.post(
    "/plans/{job_id}/cancel", summary="Cancel a plan", status_code=202, dependencies=[PLANNER],
    responses=problem_responses(404),
)  # fmt: skip
def cancel_plan(request: Request, context: Context, job_id: jobs.JobId, _: Nothing) -> JobRow:
    """Ask a planning to end; refused for one that has ended. What applies a plan is a job of its own."""
    principal = principal_of(request)
    return jobs.cancel_record(context, jobs.find_job(context, job_id, principal, PLANS), principal)


def submit_apply(context: ApiContext, planned: JobRecord, body: ApplyBody, principal: Principal) -> JobRecord:
    """Submit the job that applies a plan; raise Conflict or PlanMoved if it cannot be applied as it was shown."""
    view = context.jobs.view(planned)
    if planned.status is not JobStatus.DONE or view.plan is None:
        raise Conflict(f"There is no plan to apply: its job is {planned.status}.")
    if view.plan.empty:
        raise Conflict("The plan has nothing to apply.")
    context.jobs.check_apply(view.plan.id)  # which `submit` asks again: here it saves the work of planning
    context.reader.expire()
    with context.reader.open() as work:
        try:
            rebuild_plan(work, view.plan.id)
        except PlanMoved:
            raise
        except RequestError as error:
            if "needs Spark" not in error.message:  # the job checks that
                raise
    return context.submit(Jobs(context.settings, principal.name).apply(view.plan.id, view.plan.environment, body))


def accept_job(record: JobRecord, response: Response, resource: str) -> JobRow:
    """Return the new job and set the address of its result in the response."""
    response.headers["Location"] = f"/api/v1/{resource}/{record.id}"
    return jobs.row_of(record)
