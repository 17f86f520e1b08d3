"""The project as a whole: meta, modules, lint, render, format."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from mergeplan.planner.api.access import Mode, Scope
from mergeplan.planner.api.context import Closed, Context, NoQuery, principal_of, require_scope
from mergeplan.planner.api.dates import check_dates
from mergeplan.planner.api.jobs.job import JobStatus
from mergeplan.planner.api.names import Date, Name
from mergeplan.planner.api.problems import problem_responses
from mergeplan.planner.api.routes.models import find_model
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.contract.base import VERSION, Data, Names
from mergeplan.planner.contract.from_events import lint_line
from mergeplan.planner.contract.lines import LintLine
from mergeplan.planner.contract.result import FormatResult, LeftFile
from mergeplan.planner.data_field import describe
from mergeplan.planner.parsing.sql.tokens import parse_dialect
from mergeplan.planner.project.sql_files import open_sql_files, style_of
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.rendering import RenderFilling, check_dialect, find_rendering, render_query, write_sql
from mergeplan.planner.session.unopened import lint_refusals
from mergeplan.planner.session.use_cases.lint import lint_project
from mergeplan.planner.versions import mergeplan_version

router = APIRouter(tags=["project"], dependencies=[require_scope(Scope.READ)])
Nothing = Annotated[NoQuery, Query()]


class Meta(Data):
    """The server, and what the sender may do there."""

    version: str = Field(description="of mergeplan")
    contract: int = Field(description="the version of the [contract](json.md)")
    project: str = Field(description="the project's name, or that of its folder")
    mode: Mode = Field(description="what the server does at all")
    scope: Scope = Field(description="what the sender may do, within the mode")
    edit: bool = Field(description="files may be written")
    models: int = Field(description="how many models open")
    running: int = Field(description="jobs that run")
    waiting: int = Field(description="jobs that wait for their turn")


class Modules(Data):
    """The parts of the API that the sender may use."""

    modules: Names = Field(description="of `catalog`, `files`, `plans`, `checks`, `apply`, `evaluate`, `edit`")


class LintQuery(Closed):
    """Which models are looked at."""

    model: list[Name] = Field(default=[], max_length=200, description="selectors; none: all models")


class LintAnswer(Data):
    """The rules of the linter that models break."""

    ok: bool = Field(description="nothing would stop a plan")
    models: int = Field(description="how many models were looked at")
    violations: tuple[LintLine, ...] = Field(description="each rule that a model breaks")


class RenderQuery(Closed):
    """What is filled in."""

    start: Date | None = describe(None, "as if computing from this day")
    end: Date | None = describe(None, "as if computing up to and including this day")
    execution_time: Date | None = describe(None, "as if it were this moment")
    expand: list[Name] = Field(default=[], max_length=100, description="models whose queries replace their names")
    dialect: Name = describe("spark", "write it in another SQL dialect; it runs as Spark SQL")
    pretty: bool = describe(True, "with lines and indentation")


class RenderAnswer(Data):
    """A query as Spark would run it."""

    model: str = Field(description="the model")
    sql: str = Field(description="the query")


@router.get("/meta", summary="Describe the server")
def meta(request: Request, context: Context, _: Nothing) -> Meta:
    """Return the version, the mode, and what the sender may do."""
    principal, snapshot, jobs = principal_of(request), context.reader.read(with_queries=False), context.jobs.list()
    assert principal is not None
    mode_scope = context.access.mode.scope
    return Meta(
        version=mergeplan_version(),
        contract=VERSION,
        project=snapshot.catalog.project,
        mode=context.access.mode,
        scope=principal.scope if mode_scope.includes(principal.scope) else mode_scope,
        edit=context.edit,
        models=len(snapshot.models),
        running=sum(job.status is JobStatus.RUNNING for job in jobs),
        waiting=sum(job.status is JobStatus.WAITING for job in jobs),
    )


@router.get("/modules", summary="List modules")
def modules(request: Request, context: Context, _: Nothing) -> Modules:
    """List the parts of the API that the sender may use; the others answer 403."""
    principal = principal_of(request)
    may_apply = context.allows(principal, Scope.APPLY)
    offered = {
        "catalog": True,
        "files": context.allows(principal, Scope.READ, Mode.PLAN),
        "plans": context.allows(principal, Scope.PLAN),
        "checks": context.allows(principal, Scope.PLAN),
        "apply": may_apply,
        "evaluate": may_apply,
        "edit": may_apply and context.edit,
    }
    return Modules(modules=tuple(name for name, is_offered in offered.items() if is_offered))


@router.get("/lint", summary="Lint the models")
def lint(context: Context, query: Annotated[LintQuery, Query()]) -> LintAnswer:
    """Check the models by the rules of the linter."""
    with context.reader.open() as work:
        report = lint_project(work, tuple(query.model), lint_refusals(work.project))
    return LintAnswer(ok=report.ok, models=report.models, violations=tuple(map(lint_line, report.violations)))


@router.get("/render/{model}", summary="Render a query", responses=problem_responses(404))
def render(context: Context, model: Annotated[Name, Path()], query: Annotated[RenderQuery, Query()]) -> RenderAnswer:
    """Return a model's query as Spark would run it, with dates, macros and embedded models filled in."""
    check_dates(query.execution_time)
    dialect = check_dialect(query.dialect)
    name = find_model(context.reader.read(), model).name
    with context.reader.open() as work:
        work.now = parse_moment(query.execution_time, work.now) or work.now
        filling = RenderFilling(query.start, query.end, tuple(query.expand))
        sql = render_query(work, find_rendering(work, name, filling))
    return RenderAnswer(model=name, sql=write_sql(sql, dialect, in_one_line=not query.pretty))


@router.get("/format", summary="Check the layout")
def check_format(context: Context, _: Nothing) -> FormatResult:
    """Which SQL files `mergeplan format` would lay out otherwise; nothing is written."""
    settings = context.settings
    config, document, files = open_sql_files(settings.root, settings.isolation, Cache(settings.cache))
    dialect = parse_dialect(config.model_defaults.dialect, document.place(("model_defaults", "dialect")))
    laid_out = list(files.format(files.names, dialect, style_of(config)))
    return FormatResult(
        changed=tuple(file.name for file, formatted in laid_out if formatted.text != file.text),
        left=tuple(LeftFile(path=file.name, reason=formatted.left) for file, formatted in laid_out if formatted.left),
        files=len(laid_out),
    )
