"""The REST API as one application, with GitHub's way to refuse."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mergeplan.bot.sandbox.api import api_app, api_checks, api_git, api_graphql, api_issues, api_pulls
from mergeplan.bot.sandbox.api.limits import ApiError, not_found
from mergeplan.bot.sandbox.gate import Gate
from mergeplan.bot.sandbox.webhooks import Site

# The first parts of the paths that are the API's; all other paths are pages or git.
ROOTS = ("repos", "user", "users", "app", "app-manifests", "installation", "rate_limit", "graphql", "orgs")


def build_api(site: Site) -> Gate:
    def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return JSONResponse(error.body(site.state.base_url), error.status)

    def unknown(request: Request, error: Exception) -> Response:
        return JSONResponse(not_found().body(site.state.base_url), 404)

    # Checks come before git: its `/commits/{sha}` would take `/commits/{sha}/check-runs` for a ref.
    parts = (api_app, api_graphql, api_issues, api_pulls, api_checks, api_git)
    routes = [route for part in parts for route in part.router.routes]
    app = Starlette(routes=routes, exception_handlers={ApiError: refuse, HTTPException: unknown})
    app.state.site = site
    return Gate(site, app)
