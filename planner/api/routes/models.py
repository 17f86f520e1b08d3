"""/models: the models of the project, and one of them with all that is known of it."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from mergeplan.planner.api.access import Scope
from mergeplan.planner.api.catalog_reader import CatalogSnapshot
from mergeplan.planner.api.context import Closed, Context, require_scope
from mergeplan.planner.api.names import EnvironmentName, Name, Word
from mergeplan.planner.api.problems import NotFound, problem_responses
from mergeplan.planner.contract.base import Data, Names
from mergeplan.planner.contract.catalog import CatalogModelRow
from mergeplan.planner.data_field import describe
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.selection import strip_default_catalog
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.snapshot.environment import PROD

router = APIRouter(tags=["models"], dependencies=[require_scope(Scope.READ)])
ModelState = Literal["current", "edited", "missing"]
MOST = 500  # models of a page
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "As `If-None-Match` has it"}}


def answer_with_etag(request: Request, made_from: str, make: Callable[[], BaseModel]) -> Response:
    """Return the answer as JSON, or 304 if the request names the tag of what it would be made from."""
    tag = f'W/"{digest(made_from, str(request.url.path), str(request.url.query))[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in [part.strip() for part in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(make().model_dump_json(by_alias=True), headers=headers, media_type="application/json")


class ModelsQuery(Closed):
    """Which models are listed."""

    q: Word = describe("", "words that name, owner, tags, description or columns hold, all of them")
    select: Word = describe("", "a selector: `shop.*`, `tag:finance`, `+shop.orders`, `shop.orders+`")
    owner: Word = describe("", "exactly this owner")
    tag: Word = describe("", "with this tag")
    kind: Word = describe("", "of this kind, such as `FULL`")
    environment: EnvironmentName = describe(PROD, "beside which the files are read")
    limit: int = Field(default=50, ge=1, le=MOST, description="how many models a page has at most")
    offset: int = Field(default=0, ge=0, le=1_000_000, description="how many come before the page")


class OneQuery(Closed):
    """Beside which environment a model is read."""

    environment: EnvironmentName = describe(PROD, "beside which the files are read")


class ModelSummary(Data):
    """A model in a list."""

    name: str = Field(description="the model")
    kind: str = Field(description="its kind")
    owner: str = describe("", "who owns it")
    description: str = describe("", "what its file says of it")
    tags: Names = describe((), "its tags")
    path: str = describe("", "its file")
    line: int = describe(0, "its line")
    schedule: str = describe("", 'its cron, with the time zone; `""`: it is not scheduled')
    columns: int | None = describe(None, "how many it has; null: not known without Spark")
    parents: int = describe(0, "how many tables it reads")
    readers: int = describe(0, "how many models read it")
    state: ModelState = Field(description="beside the environment: as it is there, edited since, or not there")


class ModelPage(Data):
    """Some of the models, parents first."""

    environment: str = Field(description="beside which the files were read")
    total: int = Field(description="how many models the filters leave")
    limit: int = Field(description="how many a page has at most")
    offset: int = Field(description="how many come before this page")
    models: tuple[ModelSummary, ...] = Field(description="the models")
    unopened: Names = describe((), "files that cannot be opened: their models are not in the list")


class ModelVersion(Data):
    """What an environment has of a model."""

    environment: str = Field(description="the environment")
    version: str = Field(description="of the table")
    table: str = describe("", 'the physical table, `""` of a model without one')


class ModelView(CatalogModelRow):
    """A model, and which environments have which version of it."""

    versions: tuple[ModelVersion, ...] = describe((), "in each environment that has it")


@router.get("/models", summary="List models", response_model=ModelPage, responses=NOT_MODIFIED)
def list_models(request: Request, context: Context, query: Annotated[ModelsQuery, Query()]) -> Response:
    """List the models of the project's files, parents first; refuse a selector that names no model."""
    snapshot = context.reader.read(query.environment)
    return answer_with_etag(request, snapshot.etag, lambda: _model_page(snapshot, query))


@router.get(
    "/models/{name}", summary="Show a model", response_model=ModelView, responses=NOT_MODIFIED | problem_responses(404)
)
def show_model(
    request: Request, context: Context, name: Annotated[Name, Path()], query: Annotated[OneQuery, Query()]
) -> Response:
    """One model with its queries, columns, lineage, schedule, tests, audits, and the time that its table holds."""
    snapshot = context.reader.read(query.environment)
    row = find_model(snapshot, name)
    return answer_with_etag(
        request, snapshot.etag, lambda: ModelView(**dict(row), versions=_model_versions(snapshot, row))
    )


def find_model(snapshot: CatalogSnapshot, name: str) -> CatalogModelRow:
    """Return the row of a model; raise NotFound with similar names."""
    called = strip_default_catalog(name.lower(), snapshot.project.catalogs.default)
    if called in snapshot.models:
        return snapshot.models[called]
    snapshot.project.refused.check_model(called)
    raise NotFound(f"There is no model `{name}`.", hint=did_you_mean(called, snapshot.models))


def _model_page(snapshot: CatalogSnapshot, query: ModelsQuery) -> ModelPage:
    names = select_by_request(snapshot.project, [query.select], snapshot.graph) if query.select.strip() else None
    words = query.q.lower().split()
    rows = [
        row
        for row in snapshot.models.values()
        if (names is None or row.name in names)
        and query.owner in ("", row.owner)
        and (not query.tag or query.tag in row.tags)
        and query.kind.upper() in ("", row.kind.upper())
        and all(word in snapshot.texts[row.name] for word in words)
    ]
    return ModelPage(
        environment=snapshot.catalog.environment,
        total=len(rows),
        limit=query.limit,
        offset=query.offset,
        models=tuple(_summarize_model(row) for row in rows[query.offset : query.offset + query.limit]),
        unopened=tuple(dict.fromkeys(model.place.path for model in snapshot.catalog.unopened)),
    )


def _summarize_model(row: CatalogModelRow) -> ModelSummary:
    row_fields = {name: getattr(row, name) for name in ("name", "kind", "owner", "description", "tags", "path", "line")}
    state: ModelState = "missing" if row.deployed is None else "current" if row.deployed.current else "edited"
    return ModelSummary(
        **row_fields,
        schedule=row.schedule,
        columns=None if row.columns is None else len(row.columns),
        parents=len(row.parents),
        readers=len(row.readers),
        state=state,
    )


def _model_versions(snapshot: CatalogSnapshot, row: CatalogModelRow) -> tuple[ModelVersion, ...]:
    return tuple(
        ModelVersion(
            environment=environment.name, version=shown.version, table=shown.table if shown.kind.has_view else ""
        )
        for environment in snapshot.environments
        if (shown := environment.snapshots.get(row.name))
    )
