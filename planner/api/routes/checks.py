"""/audits and /tests: what there is of them, and what they found the last times."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from mergeplan.planner.api.access import Scope
from mergeplan.planner.api.context import Closed, Context, NoQuery, require_scope
from mergeplan.planner.api.jobs.results import CheckResult
from mergeplan.planner.api.names import EnvironmentName, Word
from mergeplan.planner.contract.base import Data
from mergeplan.planner.data_field import describe

router = APIRouter(tags=["checks"], dependencies=[require_scope(Scope.READ)])
MOST = 1000


class HistoryQuery(Closed):
    """Which results are listed."""

    name: Word = describe("", "of the audit or test of this name")
    model: Word = describe("", "of this model; an audit's")
    environment: EnvironmentName = describe("", "of this environment; an audit's")
    failed: bool = describe(False, "only what found something wrong")
    limit: int = Field(default=100, ge=1, le=MOST, description="how many a page has at most")
    offset: int = Field(default=0, ge=0, le=1_000_000, description="how many come before the page")


class CheckPage(Data):
    """Some results, the newest job first."""

    total: int = Field(description="how many there are")
    limit: int = Field(description="how many a page has at most")
    offset: int = Field(description="how many come before this page")
    results: tuple[CheckResult, ...] = Field(description="the results")


class CheckRow(Data):
    """An audit of a model, or a unit test, and its last result."""

    name: str = Field(description="the audit or test")
    model: str = Field(description="its model; `@` and the name of a macro for a test of one")
    path: str = describe("", "the file of a test")
    line: int = describe(0, "its line")
    last: CheckResult | None = describe(None, "what it found last; null: no job ran it that is kept")


class CheckList(Data):
    """The audits, or the unit tests, of the project."""

    checks: tuple[CheckRow, ...] = Field(description="by model and name")


@router.get("/audits", summary="List audits")
def list_audits(context: Context, _: Annotated[NoQuery, Query()]) -> CheckList:
    """List the audits of each model, and what each found last, in any environment."""
    last = {(one.model, one.name): one for one in reversed(context.checks.list("audit"))}
    rows = (
        CheckRow(name=audit.name, model=row.name, last=last.get((row.name, audit.name)))
        for row in context.reader.read().models.values()
        for audit in row.audits
    )
    return CheckList(checks=tuple(sorted(rows, key=lambda row: (row.model, row.name))))


@router.get("/tests", summary="List unit tests")
def list_tests(context: Context, _: Annotated[NoQuery, Query()]) -> CheckList:
    """List the unit tests of models and macros, and how each ended last."""
    last = {one.name: one for one in reversed(context.checks.list("test"))}
    rows = (
        CheckRow(name=test.name, model=test.model, path=test.path, line=test.line, last=last.get(test.name))
        for test in context.reader.read().project.tests
    )
    return CheckList(checks=tuple(sorted(rows, key=lambda row: (row.model, row.name))))


@router.get("/audits/history", summary="Show results of audits")
def show_audit_history(context: Context, query: Annotated[HistoryQuery, Query()]) -> CheckPage:
    """List the findings of audits in the jobs that are kept, with those that passed."""
    return _result_page(context.checks.list("audit"), query)


@router.get("/tests/history", summary="Show results of unit tests")
def show_test_history(context: Context, query: Annotated[HistoryQuery, Query()]) -> CheckPage:
    """How unit tests ended in the jobs that are kept."""
    return _result_page(context.checks.list("test"), query)


def _result_page(results: tuple[CheckResult, ...], query: HistoryQuery) -> CheckPage:
    matches = [
        result
        for result in results
        if query.name in ("", result.name)
        and query.model in ("", result.model)
        and query.environment in ("", result.environment)
        and not (query.failed and result.ok)
    ]
    page = tuple(matches[query.offset : query.offset + query.limit])
    return CheckPage(total=len(matches), limit=query.limit, offset=query.offset, results=page)
