"""/jobs: what was done and is being done, its events, and how it is cancelled."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from mergeplan.planner.api.access import Mode, Principal, Scope
from mergeplan.planner.api.context import ApiContext, Closed, Context, NoQuery, principal_of, require_scope
from mergeplan.planner.api.events import MEDIA_TYPE, OPEN_MOST
from mergeplan.planner.api.jobs.job import JOB_ID, JobKind, JobPage, JobRecord, JobRow, JobView
from mergeplan.planner.api.names import EnvironmentName
from mergeplan.planner.api.problems import ApiError, Conflict, NotFound, problem_responses
from mergeplan.planner.data_field import describe

READS = require_scope(Scope.READ, Mode.PLAN)
router = APIRouter(tags=["jobs"], dependencies=[READS])
JobId = Annotated[str, Path(pattern=f"^{JOB_ID.pattern}$", description="the job")]
LastEventId = Annotated[str | None, Header(description="the id of the last event that was received", max_length=20)]
EVENTS: dict[int | str, dict[str, Any]] = problem_responses(429) | {
    200: {"description": "The events", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
    204: {"description": "The job has ended, and every event was received"},
}


class JobsQuery(Closed):
    """Which jobs are listed."""

    kind: JobKind | None = describe(None, "of this kind")
    environment: EnvironmentName = describe("", "about this environment")
    limit: int = Field(default=50, ge=1, le=200, description="how many a page has at most")
    offset: int = Field(default=0, ge=0, le=1_000_000, description="how many come before the page")


@router.get("/jobs", summary="List jobs")
def list_jobs(context: Context, query: Annotated[JobsQuery, Query()]) -> JobPage:
    """List the jobs that are kept, the newest first."""
    return page_of(context.jobs.list([query.kind] if query.kind else (), query.environment), query)


@router.get("/jobs/{job_id}", summary="Show a job", responses=problem_responses(404))
def show_job(request: Request, context: Context, job_id: JobId, _: Annotated[NoQuery, Query()]) -> JobView:
    """Return a job and its result so far."""
    record = find_job(context, job_id, principal_of(request))
    return context.jobs.view(record)


@router.post("/jobs/{job_id}/cancel", summary="Cancel a job", status_code=202, responses=problem_responses(404))
def cancel_job(request: Request, context: Context, job_id: JobId, _: Annotated[NoQuery, Query()]) -> JobRow:
    """Ask a job to end: a promotion that has begun comes to its end. Refused for one that has ended."""
    return cancel_record(context, find_job(context, job_id, principal_of(request)), principal_of(request))


@router.get("/jobs/{job_id}/events", summary="Follow a job", responses=EVENTS | problem_responses(404))
def follow_job(
    request: Request, context: Context, job_id: JobId, _: Annotated[NoQuery, Query()], last_event_id: LastEventId = None
) -> Response:
    """Stream the JSON lines of a job as server-sent events: an id is a line's number, `Last-Event-ID` resumes there."""
    return follow_events(context, find_job(context, job_id, principal_of(request)), last_event_id)


def page_of(records: tuple[JobRecord, ...], query: JobsQuery) -> JobPage:
    page = records[query.offset : query.offset + query.limit]
    return JobPage(total=len(records), limit=query.limit, offset=query.offset, jobs=tuple(map(row_of, page)))


def row_of(record: JobRecord) -> JobRow:
    return JobRow(**record.model_dump(include=set(JobRow.model_fields)))


def find_job(
    context: ApiContext, job_id: str, principal: Principal | None, kinds: tuple[JobKind, ...] = ()
) -> JobRecord:
    """Return the job with an id if its kind matches (none: any) and it may be read; raise NotFound otherwise."""
    record = context.jobs.get(job_id)
    if record is None or (kinds and record.kind not in kinds):
        raise NotFound(f"There is no {kinds[0] if kinds else 'job'} `{job_id}`.", hint="It may be forgotten by now.")
    context.check(principal, record.kind.readers)
    return record


def cancel_record(context: ApiContext, record: JobRecord, principal: Principal | None) -> JobRow:
    """Cancel the job and return its row; raise Conflict if it has ended."""
    context.check(principal, record.kind.scope)
    ended = context.jobs.cancel(record.id)
    if ended is None:
        raise Conflict("The job has ended already.")
    return row_of(ended)


def follow_events(context: ApiContext, record: JobRecord, last_event_id: str | None) -> Response:
    """Return the stream of a job's events after that one; 204, which stops a browser, if no more will follow."""
    last = int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdecimal() else 0
    if record.status.is_final and last >= context.jobs.view(record).events:
        return Response(status_code=204)
    if context.streams.is_full:
        message = f"{OPEN_MOST} event streams are open already."
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, message, hint="Close one, or ask for the job itself.", retry=True)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    events = context.streams.follow(context.jobs, record.id, last)
    return StreamingResponse(events, headers=headers, media_type=MEDIA_TYPE)
