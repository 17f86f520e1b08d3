"""The application: `/api/v1` over one project, behind the rules of `Access`, and the pages beside it.

A page reads as the endpoints do, from `request.app.state.context`, an `ApiContext`. Its reader blocks, so it is
called in a plain `def` endpoint, which runs in a thread.

`create_app(context, pages=router)` mounts a router of pages beside `/api/v1`. Its paths `/login` and `/assets/` are
answered without a token: `/login` sets the cookie `guard.COOKIE` (HttpOnly, SameSite=Strict) to a token that
`access.principal` knows. A page whose address asks for HTML and has no token is redirected there.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from fastapi import APIRouter, FastAPI, Security
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.guard import Guard
from mergeplan.planner.api.problems import Problem, handle_errors, problem_responses
from mergeplan.planner.api.routes import ROUTERS
from mergeplan.planner.versions import mergeplan_version

PREFIX = "/api/v1"
BEARER = HTTPBearer(auto_error=False, description="A token of the server; none is needed where it has none.")


def create_app(context: ApiContext, pages: APIRouter | None = None) -> ASGIApp:
    """Return the application over an open context; `pages` are routes of HTML beside `/api/v1`."""
    app = make_api(context)
    if pages is not None:
        app.include_router(pages, include_in_schema=False)
    return Guard(app, context.access)


def make_api(context: ApiContext | None = None) -> FastAPI:
    """Return the endpoints alone; without a context they can be described, but not called."""

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        yield
        if context is not None:
            context.jobs.close()
            context.reader.close()

    app = FastAPI(
        title="mergeplan",
        version=mergeplan_version(),
        summary="The models, environments, plans and jobs of one project.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # its scripts come from another host
        redoc_url=None,
        lifespan=closing,
    )
    app.state.context = context
    handle_errors(app)
    app.router.routes.extend(_build_routes())

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    app.openapi = partial(_describe_api, app)  # type: ignore[method-assign]
    return app


@cache
def _build_routes() -> tuple[BaseRoute, ...]:
    """Return the routes below `/api/v1`, built once in a process: FastAPI builds included ones for each application."""
    every, responses = APIRouter(), problem_responses(401, 403, 409, 421, 422, 503)
    for router in ROUTERS:
        every.include_router(router, prefix=PREFIX, responses=responses, dependencies=[Security(BEARER)])
    return tuple(every.routes)


@cache
def _describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the schema of problems, which no endpoint returns by itself."""
    document = FastAPI.openapi(app)
    problem = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
    return document
