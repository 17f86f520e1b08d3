"""REST: pull requests and reviews."""

from typing import Any

from starlette.responses import JSONResponse

from mergeplan_sandbox import merges, pulls
from mergeplan_sandbox.access import PUSH, READ
from mergeplan_sandbox.api import shapes_pulls
from mergeplan_sandbox.api.calls import Call, Router, route
from mergeplan_sandbox.api.limits import not_found
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.git.diffs import diff_files

router = Router("/repos/{owner}/{name}/pulls")


@route(router, "GET", "")
def list_pulls(call: Call) -> Any:
    repo, state = call.repo(READ), call.query("state", "open")
    head, base = call.query("head"), call.query("base")
    matches = [
        pull
        for pull in repo.pulls
        if state in ("all", pull.state)
        and head in ("", f"{pull.head_repository.split('/')[0]}:{pull.head_ref}")
        and base in ("", pull.base_ref)
    ]
    key = "updated_at" if call.query("sort") == "updated" else "created_at"
    newest_first = call.query("direction", "desc" if call.query("sort", "created") == "created" else "asc") == "desc"
    matches.sort(key=lambda pull: (getattr(pull, key), pull.number), reverse=newest_first)
    return call.page([shapes_pulls.pull_shape(call.state, repo, pull) for pull in matches])


@route(router, "GET", "/{number}")
def get_pull(call: Call) -> Any:
    """Return the whole pull request; hide its mergeability when that switch is on."""
    repo = call.repo(READ)
    pull = call.pull(repo)
    shape = shapes_pulls.full_pull(call.state, repo, pull)
    if pull.state == "open" and call.site.faults.hides_mergeability():
        shape |= {"mergeable": None, "rebaseable": None, "mergeable_state": "unknown"}
    return shape


@route(router, "GET", "/{number}/files")
def list_files(call: Call) -> Any:
    repo = call.repo(READ)
    pull, folder = call.pull(repo), call.state.git(repo.full_name)
    start = repos.merge_base(folder, pull.base_sha, pull.head_sha) or pull.base_sha
    changes = diff_files(folder, start, pull.head_sha)
    return call.page([shapes_pulls.file_shape(call.state, repo, change, pull.head_sha) for change in changes])


@route(router, "PUT", "/{number}/merge")
def merge_pull(call: Call) -> Any:
    repo = call.repo(PUSH)
    sha = pulls.merge_pull(call.site, repo, call.pull(repo), call.caller.login, call.body)
    return {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}


@route(router, "PUT", "/{number}/merge-async")
def request_merge(call: Call) -> Any:
    repo = call.repo(PUSH)
    status, shape = merges.request_merge(repo, call.pull(repo), call.caller.login, call.body)
    return JSONResponse(shape, status)


@route(router, "GET", "/{number}/merge-async/{uuid}")
def get_merge(call: Call) -> Any:
    repo = call.repo(READ)
    pull, key = call.pull(repo), call.request.path_params["uuid"]
    requests = [request for request in repo.merge_requests if (request.number, request.uuid) == (pull.number, key)]
    if not requests:
        raise not_found()
    return merges.result_shape(requests[0])


@route(router, "GET", "/{number}/reviews")
def list_reviews(call: Call) -> Any:
    """Return the reviews, oldest first."""
    repo = call.repo(READ)
    return call.page([shapes_pulls.review_shape(call.state, repo, item) for item in call.pull(repo).reviews])
