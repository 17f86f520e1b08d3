"""Unit tests, audits, the linter and table diffs: started by a form, with their last results."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from mergeplan.planner.api.access import Mode, Scope
from mergeplan.planner.api.context import ApiContext, Context
from mergeplan.planner.api.jobs.requests import AuditBody, Jobs, TableDiffBody, TestBody
from mergeplan.planner.api.jobs.results import CheckResult
from mergeplan.planner.api.routes.environments import check_environment
from mergeplan.planner.contract.from_events import lint_line
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.unopened import lint_refusals
from mergeplan.planner.session.use_cases.lint import lint_project
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.state.passed.audit_results import RecordedAudit
from mergeplan.planner.ui.catalog_pages import AuditResultRow
from mergeplan.planner.ui.job_pages import check_row, recorded_row
from mergeplan.planner.ui.render import render
from mergeplan.planner.ui.routes.answers import (
    OwnForm,
    PageRoute,
    check_scope,
    form_choices,
    form_page,
    frame_of,
    html_response,
    make_body,
    read_catalog,
    redirect_to,
    split_words,
)

router = APIRouter(route_class=PageRoute)
ROWS_MOST = 200
RECORDED_MAX = 1_000  # results that are looked at
SAMPLES = 5  # rows of each sort, masked
COMPARED = ("first", "second", "model", "on", "where")


@router.get("/checks")
def show_checks(request: Request, context: Context) -> Response:
    check_scope(request, Scope.READ)
    last = {sort: islice(_last_results(context.checks.list(sort)), ROWS_MOST) for sort in ("audit", "test")}
    audits = _recorded_audits(context) or tuple(map(check_row, last["audit"]))
    values = {"audits": audits, "tests": tuple(map(check_row, last["test"])), "catalog": read_catalog(request)}
    choices = form_choices(request)
    return html_response(render("checks.html", frame_of(request), here="Checks", **values, **choices))


@router.get("/checks/lint")
def show_lint(request: Request, context: Context) -> Response:
    check_scope(request, Scope.READ)
    with context.reader.open() as work:
        report = lint_project(work, (), lint_refusals(work.project))
    rows = tuple(map(lint_line, report.violations))
    values = {"violations": rows, "catalog": read_catalog(request)}
    return html_response(render("lint.html", frame_of(request), here="Checks", **values))


@router.post("/checks/tests")
def run_tests(request: Request, context: Context, form: OwnForm) -> Response:
    who = check_scope(request, Scope.PLAN)
    body = make_body(TestBody, names=split_words(form.get("names", "")))
    return redirect_to(f"/jobs/{context.submit(Jobs(context.settings, who).test(body)).id}")


@router.post("/checks/audits")
def run_audits(request: Request, context: Context, form: OwnForm) -> Response:
    who = check_scope(request, Scope.PLAN)
    body = make_body(
        AuditBody, environment=form.get("environment", "").strip(), select=split_words(form.get("select", ""))
    )
    check_environment(context, body.environment or PROD)
    return redirect_to(f"/jobs/{context.submit(Jobs(context.settings, who).audit(body)).id}")


@router.get("/diff")
def show_diff(
    request: Request,
    first: Annotated[str, Query(max_length=300)] = "",
    second: Annotated[str, Query(max_length=300)] = "",
) -> Response:
    check_scope(request, Scope.READ, Mode.PLAN)
    values = dict.fromkeys(COMPARED, "") | {"first": first, "second": second}
    return form_page(request, "diff.html", "Table diff", values)


@router.post("/diff")
def compare(request: Request, context: Context, form: OwnForm) -> Response:
    """Compare two tables; an error in the form is shown above it."""
    who = check_scope(request, Scope.PLAN)
    if form.get("where"):
        check_scope(request, Scope.APPLY)  # a condition and a count are enough to find out values
    texts = {name: form.get(name, "").strip() for name in ("first", "second", "model", "where")}
    try:
        body = make_body(TableDiffBody, **texts, on=split_words(form.get("on", "")), samples=SAMPLES)
    except RequestError as error:
        values = dict.fromkeys(COMPARED, "") | dict(form)
        return form_page(request, "diff.html", "Table diff", values, error.message)
    return redirect_to(f"/jobs/{context.submit(Jobs(context.settings, who).table_diff(body)).id}")


def _recorded_audits(context: ApiContext) -> tuple[AuditResultRow, ...]:
    with context.reader.open_state() as work:
        recorded = work.store.audit_results.load(limit=RECORDED_MAX)
    last: dict[tuple[str, str, str], RecordedAudit] = {}
    for result in recorded:
        last.setdefault((result.audit, result.model, result.environment), result)
    return tuple(map(recorded_row, islice(last.values(), ROWS_MOST)))


def _last_results(results: Iterable[CheckResult]) -> Iterator[CheckResult]:
    yielded_checks: set[tuple[str, str]] = set()
    for result in results:
        if (result.name, result.model) not in yielded_checks:
            yielded_checks.add((result.name, result.model))
            yield result
