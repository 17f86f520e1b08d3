"""The REST API as one application, with GitHub's way to refuse."""

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from mergeplan.bot.sandbox.api import api_app, api_checks, api_git, api_graphql, api_issues, api_pulls
from mergeplan.bot.sandbox.api.limits import ApiError, not_found
from mergeplan.bot.sandbox.gate import Gate
from mergeplan.bot.sandbox.webhooks import Site

# The first parts of the paths that are the API's; all other paths are pages or git.
ROOTS = ("repos", "user", "users", "app", "app-manifests", "installation", "rate_limit", "graphql", "orgs")


def build(site: Site) -> Gate:
    """The API behind its gate."""
    app = FastAPI(title="GitHub on a laptop", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.site = site
    # Checks come before git: its `/commits/{sha}` would take `/commits/{sha}/check-runs` for a ref.
    for part in (api_app, api_graphql, api_issues, api_pulls, api_checks, api_git):
        app.include_router(part.router)

    @app.exception_handler(ApiError)
    def refuse(request: Request, error: ApiError) -> JSONResponse:
        return JSONResponse(error.body(site.state.base_url), error.status)

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse(not_found().body(site.state.base_url), 404)

    return Gate(site, app)
