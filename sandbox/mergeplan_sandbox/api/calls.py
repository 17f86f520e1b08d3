"""One API call: who makes it, on which repository, with which body; and how lists are paged."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mergeplan_sandbox.access import Caller, Need, caller_of, require_repository
from mergeplan_sandbox.api.limits import PER_PAGE, PER_PAGE_MOST, ApiError, not_found
from mergeplan_sandbox.api.versions import HEADER, check_version, drop_fields
from mergeplan_sandbox.git.repos import find_tip
from mergeplan_sandbox.state import CheckRun, Comment, Deployment, Issue, Json, PullRequest, Repository, State
from mergeplan_sandbox.webhooks import Site

T = TypeVar("T")


class Call:
    """What an endpoint gets: the site, the caller, and the things that the path names (404 when there are none)."""

    caller: Caller

    def __init__(self, site: Site, request: Request, body: Json) -> None:
        self.site = site
        self.state: State = site.state
        self.request = request
        self.body = body
        self.version = check_version(request.headers.get(HEADER, ""))

    def identify(self) -> None:
        """Set the caller, also for the log of calls."""
        self.caller = caller_of(self.state, self.request.headers.get("authorization"))
        self.request.state.login = self.caller.login

    def repo(self, need: Need) -> Repository:
        """Return the repository of the path if the caller has the needed permission."""
        path = self.request.path_params
        return require_repository(self.state, self.caller, f"{path['owner']}/{path['name']}", need)

    def issue(self, repo: Repository) -> Issue:
        return find_or_404(repo.issues, self.request.path_params["number"])

    def pull(self, repo: Repository) -> PullRequest:
        """Return the pull request of the path; answer 404 for an issue."""
        item = self.issue(repo)
        if not isinstance(item, PullRequest):
            raise not_found()
        return item

    def comment(self, repo: Repository) -> Comment:
        return find_or_404(repo.comments, self.request.path_params["comment_id"])

    def run(self, repo: Repository) -> CheckRun:
        return find_or_404(repo.checks, self.request.path_params["run_id"])

    def deployment(self, repo: Repository) -> Deployment:
        return find_or_404(repo.deployments, self.request.path_params["deployment_id"])

    def commit(self, repo: Repository, ref: str) -> str:
        """Return the SHA that a ref points to, or 422."""
        sha = find_tip(self.state.git(repo.full_name), ref)
        if sha is None:
            raise ApiError(422, f"No commit found for SHA: {ref}")
        return sha

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def page(self, items: list[Any], *, key: str | None = None) -> Response:
        """Return one page of a list, with Link headers to the others; `key` wraps it as GitHub does for checks."""
        size = min(max(_parse_number(self.query("per_page"), PER_PAGE), 1), PER_PAGE_MOST)
        page = max(_parse_number(self.query("page"), 1), 1)
        last = max((len(items) + size - 1) // size, 1)
        part = drop_fields(items[(page - 1) * size : page * size], self.version)
        links = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page >= last:
            links = {name: links[name] for name in ("prev", "first")}
        if page == 1:
            links = {name: links[name] for name in links if name in ("next", "last")}
        address = self.request.url
        values = [f'<{address.include_query_params(page=number)}>; rel="{name}"' for name, number in links.items()]
        headers = {"Link": ", ".join(values)} if values else {}
        return JSONResponse({"total_count": len(items), key: part} if key else part, headers=headers)


def find_or_404(things: dict[int, T], number: str) -> T:
    item = things.get(int(number)) if number.isdecimal() else None
    if item is None:
        raise not_found()
    return item


def _parse_number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() else default


async def call_of(request: Request) -> Call:
    """Read the body before a thread takes over; refuse one that is no JSON object."""
    raw = await request.body()
    try:
        body = json.loads(raw) if raw else {}
    except ValueError as error:
        raise ApiError(400, "Problems parsing JSON") from error
    if not isinstance(body, dict):
        raise ApiError(400, "Body should be a JSON object")
    return Call(request.app.state.site, request, body)


Endpoint = Callable[[Call], Any]


@dataclass(frozen=True)
class Router:
    """The endpoints below a path; they read their own bodies and parameters, so that nothing has to be analysed."""

    prefix: str = ""
    routes: list[Route] = field(default_factory=list)


def route(
    router: Router, method: str, path: str, status: int = 200, *, is_open: bool = False
) -> Callable[[Endpoint], Endpoint]:
    """Register an endpoint, which runs with the state locked and, unless it is open to all, an identified caller."""

    def register(endpoint: Endpoint) -> Endpoint:
        def call_locked(call: Call) -> Response:
            with call.state.lock:
                if not is_open:
                    call.identify()
                answer = endpoint(call)
                if isinstance(answer, Response):
                    return answer
                return JSONResponse(drop_fields(answer, call.version), status)

        async def respond(request: Request) -> Response:
            return await run_in_threadpool(call_locked, await call_of(request))

        router.routes.append(Route(router.prefix + path, respond, methods=[method]))
        return endpoint

    return register
