"""Plans, jobs and rollbacks: started by a form, read while they run, applied and cancelled by a form."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from mergeplan.planner.api.access import Mode, Scope
from mergeplan.planner.api.context import Context, principal_of
from mergeplan.planner.api.dates import check_dates
from mergeplan.planner.api.jobs.job import JobKind, JobRecord
from mergeplan.planner.api.jobs.requests import ApplyBody, Jobs, PlanBody, RestatementBody, RollbackBody, RunBody
from mergeplan.planner.api.names import EnvironmentName
from mergeplan.planner.api.problems import Conflict
from mergeplan.planner.api.routes.environments import check_environment, find_environment
from mergeplan.planner.api.routes.jobs import cancel_record, find_job
from mergeplan.planner.api.routes.plans import PLANS, submit_apply
from mergeplan.planner.contract.from_history import rollback_view
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.use_cases.environments import check_droppable, plan_rollback
from mergeplan.planner.ui.job_pages import ShownJob, job_page, job_row, may_apply_plan, plan_page
from mergeplan.planner.ui.render import render
from mergeplan.planner.ui.routes.answers import (
    Form,
    OwnForm,
    PageRoute,
    Ui,
    check_confirmed,
    check_scope,
    form_page,
    frame_of,
    html_response,
    is_allowed,
    make_body,
    read_catalog,
    redirect_to,
    split_words,
)
from mergeplan.planner.ui.routes.reading import plan_rows

router = APIRouter(route_class=PageRoute)
LISTED = 50
OPTIONS = (
    "forward_only", "skip_backfill", "empty_backfill", "no_gaps", "include_unmodified", "skip_tests", "skip_linter"
)  # fmt: skip
FIELDS = ("environment", "start", "end", "select", "backfill", "restate", "effective_from")
CATEGORY = "category:"  # before a model's name in the form of categories


@router.get("/plans")
def list_plans(request: Request, context: Context) -> Response:
    """Show the plans and the other jobs, the newest first."""
    check_scope(request, Scope.READ, Mode.PLAN)
    plans = tuple(plan_rows(context.jobs.list(PLANS)[:LISTED]))
    jobs = [job_row(record) for record in context.jobs.list() if not record.kind.is_plan][:LISTED]
    return html_response(
        render("plans.html", frame_of(request), here="Plans", plans=plans, jobs=jobs, catalog=read_catalog(request))
    )


@router.get("/plans/new")
def show_form(
    request: Request,
    environment: Annotated[str, Query(max_length=100)] = "",
    restate: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    check_scope(request, Scope.PLAN)
    values = dict.fromkeys((*FIELDS, *OPTIONS, "more"), "") | {"environment": environment, "restate": restate}
    return form_page(request, "plan_new.html", "Plans", values)


@router.post("/plans")
def make_plan(request: Request, context: Context, form: OwnForm) -> Response:
    """Start a plan, and redirect to its page; an error in the form is shown above it."""
    who = check_scope(request, Scope.PLAN)
    try:
        check_dates(*(form.get(name) or None for name in ("start", "end", "effective_from")))
        jobs = Jobs(context.settings, who)
        request_of_job = (
            jobs.restatement(_restatement_body(form)) if form.get("restate") else jobs.plan(_plan_body(form))
        )
    except RequestError as error:
        values = dict.fromkeys((*FIELDS, *OPTIONS), "") | dict(form)
        values["more"] = "1" if any(form.get(name) for name in (*OPTIONS, "effective_from")) else ""
        sentence = f"{error.message} {error.hint}".strip()
        return form_page(request, "plan_new.html", "Plans", values, sentence)
    return redirect_to(f"/plans/{context.submit(request_of_job).id}")


@router.get("/plans/{job_id}")
def show_plan(request: Request, context: Context, ui: Ui, job_id: str) -> Response:
    check_scope(request, Scope.READ, Mode.PLAN)
    record = find_job(context, job_id, principal_of(request), PLANS)
    facts = ui.facts(context, record)
    applies = [job for job in context.jobs.list([JobKind.APPLY]) if facts.plan and job.plan_id == facts.plan.id]
    is_pending = any(not job.status.is_final or job.status == "done" for job in applies)
    job = ShownJob(
        record,
        facts,
        may_cancel=is_allowed(request, record.kind.scope),
        may_apply=is_allowed(request, Scope.APPLY) and may_apply_plan(record, facts.plan) and not is_pending,
        may_categorize=is_allowed(request, Scope.PLAN) and record.kind is JobKind.PLAN,
        events=_events_address(record),
    )
    return html_response(plan_page(read_catalog(request), frame_of(request), job, applies))


@router.post("/plans/{job_id}/categories")
def categorize(request: Request, context: Context, job_id: str, form: OwnForm) -> Response:
    """Plan again with the categories that were chosen."""
    who = check_scope(request, Scope.PLAN)
    record = find_job(context, job_id, principal_of(request), (JobKind.PLAN,))
    body = PlanBody.model_validate(record.request)
    chosen = {name.removeprefix(CATEGORY): text for name, text in form.items() if name.startswith(CATEGORY) and text}
    if not chosen:
        raise RequestError("No category was chosen.", hint="Choose one beside a model.")
    merged = body.model_dump(exclude_defaults=True) | {"categories": {**body.categories, **chosen}}
    new_job = context.submit(Jobs(context.settings, who).plan(make_body(PlanBody, **merged)))
    return redirect_to(f"/plans/{new_job.id}")


@router.post("/plans/{job_id}/apply")
def apply_plan(request: Request, context: Context, job_id: str, form: OwnForm) -> Response:
    check_scope(request, Scope.APPLY)
    check_confirmed(form)
    principal = principal_of(request)
    assert principal is not None
    planned = find_job(context, job_id, principal, PLANS)
    record = submit_apply(context, planned, make_body(ApplyBody, note=form.get("note", "")), principal)
    return redirect_to(f"/jobs/{record.id}")


@router.get("/jobs/{job_id}")
def show_job(request: Request, context: Context, ui: Ui, job_id: str) -> Response:
    """Show a job, or redirect to the page of a plan."""
    check_scope(request, Scope.READ, Mode.PLAN)
    record = find_job(context, job_id, principal_of(request))
    if record.kind.is_plan:
        return redirect_to(f"/plans/{record.id}")
    may_cancel = is_allowed(request, record.kind.scope)
    job = ShownJob(record, ui.facts(context, record), may_cancel=may_cancel, events=_events_address(record))
    return html_response(job_page(read_catalog(request), frame_of(request), job))


@router.post("/jobs/{job_id}/cancel")
def cancel_job(request: Request, context: Context, job_id: str, form: OwnForm) -> Response:
    check_scope(request, Scope.READ, Mode.PLAN)
    record: JobRecord = find_job(context, job_id, principal_of(request))
    cancel_record(context, record, principal_of(request))
    return redirect_to(f"/jobs/{job_id}")


@router.get("/environments/{name}/rollback")
def show_rollback(
    request: Request,
    context: Context,
    name: EnvironmentName,
    revision: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Show the effect of a rollback; nothing is changed."""
    check_scope(request, Scope.READ)
    with context.reader.open() as work:
        find_environment(work, name)
        plan = plan_rollback(work, name, revision)
    refusal = f"{plan.refusal.message} {plan.refusal.hint}".strip() if plan.refusal else ""
    values = {"dry": rollback_view(plan), "refusal": refusal, "current": 0}
    return html_response(
        render("rollback.html", frame_of(request), here="Environments", **values, catalog=read_catalog(request))
    )


@router.post("/environments/{name}/rollback")
def roll_back(request: Request, context: Context, name: EnvironmentName, form: OwnForm) -> Response:
    """Roll back to the revision that was shown, unless the environment has moved since."""
    who = check_scope(request, Scope.APPLY)
    check_confirmed(form)
    body = make_body(RollbackBody, revision=form.get("revision", ""), note=form.get("note", ""))
    with context.reader.open_state() as work:
        current = find_environment(work, name).revision
    if form.get("expected") != str(current):
        message = f"`{name}` is at revision {current} by now."
        raise Conflict(message, hint="Look at what the rollback would do now.")
    return redirect_to(f"/jobs/{context.submit(Jobs(context.settings, who).rollback(name, body)).id}")


@router.post("/environments/{name}/run")
def run(request: Request, context: Context, name: EnvironmentName, form: OwnForm) -> Response:
    """Compute what is due in an environment."""
    who = check_scope(request, Scope.APPLY)
    check_confirmed(form)
    check_environment(context, name)
    body = make_body(RunBody, environment=name, note=form.get("note", ""))
    return redirect_to(f"/jobs/{context.submit(Jobs(context.settings, who).run(body)).id}")


@router.post("/environments/{name}/drop")
def drop(request: Request, context: Context, name: EnvironmentName, form: OwnForm) -> Response:
    """Drop an environment; prod cannot be dropped."""
    who = check_scope(request, Scope.APPLY)
    check_confirmed(form)
    check_droppable(name)
    check_environment(context, name)
    return redirect_to(f"/jobs/{context.submit(Jobs(context.settings, who).invalidate(name)).id}")


def _events_address(record: JobRecord) -> str:
    return f"/api/v1/jobs/{record.id}/events"


def _plan_body(form: Form) -> PlanBody:
    chosen = {name: True for name in OPTIONS if form.get(name)}
    texts = {name: form.get(name, "").strip() for name in ("environment", "start", "end", "effective_from")}
    lists = {name: split_words(form.get(name, "")) for name in ("select", "backfill")}
    return make_body(PlanBody, **chosen, **texts, **lists)


def _restatement_body(form: Form) -> RestatementBody:
    texts = {name: form.get(name, "").strip() for name in ("environment", "start", "end")}
    return make_body(RestatementBody, models=split_words(form["restate"]), **texts)
