"""The pages that only read: the catalog, models, lineage, environments and their history."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from mergeplan.planner.api.access import Mode, Scope
from mergeplan.planner.api.context import ApiContext, Context, context_of
from mergeplan.planner.api.jobs.job import JobKind, JobRecord
from mergeplan.planner.api.names import EnvironmentName
from mergeplan.planner.api.problems import NotFound
from mergeplan.planner.api.routes.environments import find_environment
from mergeplan.planner.api.routes.models import find_model
from mergeplan.planner.contract.from_history import environment_row, revision_row
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.ui.catalog_pages import AuditResultRow, CatalogPages, ModelActivity, PlanRow, RunRow, VersionRow
from mergeplan.planner.ui.job_pages import check_row, recorded_row, run_row
from mergeplan.planner.ui.lineage_page import LineageQuery, lineage_page
from mergeplan.planner.ui.render import format_when, render
from mergeplan.planner.ui.routes.answers import PageRoute, Ui, check_scope, frame_of, html_response, is_allowed, ui_of
from mergeplan.planner.ui.state import UiState

router = APIRouter(route_class=PageRoute)
JOBS_LOOKED_AT = 20  # the newest, searched for those about a model
RESULTS_MOST = 10
PLANS = (JobKind.PLAN, JobKind.RESTATEMENT)
RUNS = (JobKind.APPLY, JobKind.RUN)
Words = Annotated[str, Query(max_length=500)]


@router.get("/")
def show_catalog(
    request: Request, context: Context, ui: Ui, q: Words = "", page: Annotated[int, Query(ge=1, le=100_000)] = 1
) -> Response:
    """Show the catalog, or the matches of a search, which needs the columns."""
    check_scope(request, Scope.READ)
    snapshot = context.reader.read_for_page(with_queries=bool(q.strip()))
    listing = ui.pages(snapshot).listing(frame_of(request), q.strip(), page, counts_unused=snapshot.has_queries)
    return html_response(listing)


@router.get("/models/{name}")
def show_model(request: Request, context: Context, ui: Ui, name: str) -> Response:
    check_scope(request, Scope.READ)
    snapshot = context.reader.read_for_page()
    row = find_model(snapshot, name)
    pages = ui.pages(snapshot)
    versions: dict[tuple[str, str], list[str]] = {}
    for environment in snapshot.environments:
        if shown := environment.snapshots.get(row.name):
            key = shown.version, shown.table if shown.kind.has_view else ""
            versions.setdefault(key, []).append(environment.name)
    reads_jobs = is_allowed(request, Scope.READ, Mode.PLAN)
    activity = ModelActivity(
        tuple(VersionRow(version, table, tuple(names)) for (version, table), names in versions.items()),
        _newest_audits(context, row.name),
        tuple(_newest_plans(context, ui, row.name)) if reads_jobs else (),
        tuple(_newest_runs(context, ui, row.name)) if reads_jobs else (),
    )
    return html_response(pages.model(frame_of(request), row.name, activity))


@router.get("/unused")
def show_unused(request: Request) -> Response:
    pages = _read_pages(request)
    return html_response(pages.list_unused(frame_of(request)))


@router.get("/unused/link")
def show_unused_link(request: Request) -> Response:
    """Show the link that a page has to the columns that nothing needs."""
    return html_response(_read_pages(request).link_unused(frame_of(request)))


@router.get("/lineage")
def show_lineage(request: Request, query: Annotated[LineageQuery, Query()]) -> Response:
    """Show a part of the graph of models, or of one column's lineage."""
    pages = _read_pages(request, with_queries=bool(query.focus or query.column))
    wish = query.wish(_plan_categories(request, query.plan) if query.plan else {})
    return html_response(lineage_page(pages, frame_of(request), wish))


@router.get("/environments")
def show_environments(request: Request) -> Response:
    check_scope(request, Scope.READ)
    with context_of(request).reader.open_state() as work:
        rows = tuple(map(environment_row, work.store.environments.all()))
    return html_response(render("environments.html", frame_of(request), here="Environments", environments=rows))


@router.get("/environments/{name}")
def show_environment(request: Request, context: Context, name: EnvironmentName) -> Response:
    check_scope(request, Scope.READ)
    with context.reader.open_state() as work:
        current = find_environment(work, name).revision
        rows = tuple(map(revision_row, work.store.environments.history(name)))
    values = {"environment": name, "revisions": rows, "current": current, "prod": PROD}
    return html_response(render("environment.html", frame_of(request), here="Environments", **values))


def plan_rows(records: tuple[JobRecord, ...]) -> Iterator[PlanRow]:
    for record in records:
        environment = record.environment or PROD
        address = f"/plans/{record.id}"
        yield PlanRow(record.id, environment, str(record.status), format_when(record.created_at), address)


def _read_pages(request: Request, *, with_queries: bool = True) -> CatalogPages:
    check_scope(request, Scope.READ)
    return ui_of(request).pages(context_of(request).reader.read_for_page(with_queries=with_queries))


def _newest_plans(context: ApiContext, ui: UiState, model: str) -> Iterator[PlanRow]:
    records = [record for record in context.jobs.list(PLANS)[:JOBS_LOOKED_AT] if record.status.is_final]
    for record in records:
        plan = ui.facts(context, record).plan
        if plan and any(change.name == model for change in plan.models):
            yield from plan_rows((record,))


def _newest_runs(context: ApiContext, ui: UiState, model: str) -> Iterator[RunRow]:
    for record in context.jobs.list(RUNS)[:JOBS_LOOKED_AT]:
        for progress in ui.facts(context, record).progress.models:
            if progress.name == model and progress.done:
                yield run_row(record, progress)


def _newest_audits(context: ApiContext, model: str) -> tuple[AuditResultRow, ...]:
    """Return the results on record, or else those of jobs: what a job has found is recorded when it ends."""
    with context.reader.open_state() as work:
        recorded = work.store.audit_results.load([model], limit=RESULTS_MOST)
    if recorded:
        return tuple(map(recorded_row, recorded))
    results = (result for result in context.checks.list("audit") if result.model == model)
    return tuple(map(check_row, islice(results, RESULTS_MOST)))


def _plan_categories(request: Request, job_id: str) -> dict[str, str]:
    """Return the models of a plan with their categories; raise NotFound if there is no such plan."""
    check_scope(request, Scope.READ, Mode.PLAN)
    record = context_of(request).jobs.get(job_id)
    if record is None or not record.kind.is_plan:
        raise NotFound(f"There is no plan `{job_id}`.", hint="It may be forgotten by now.")
    plan = ui_of(request).facts(context_of(request), record).plan
    return {model.name: str(model.category or model.change) for model in plan.models} if plan else {}
