"""REST: pull requests and reviews."""

from typing import Any

from mergeplan.bot.sandbox import pulls, talk
from mergeplan.bot.sandbox.access import EDIT_PULL, LABEL, OPEN_PULL, PUSH, READ, may_edit
from mergeplan.bot.sandbox.api import shapes, shapes_pulls
from mergeplan.bot.sandbox.api.calls import Call, Router, no_content, route
from mergeplan.bot.sandbox.api.limits import ApiError, not_found
from mergeplan.bot.sandbox.git import repos
from mergeplan.bot.sandbox.git.diffs import diff_files
from mergeplan.bot.sandbox.state import Json, PullRequest, Repository

router = Router("/repos/{owner}/{name}/pulls")


def full_shape(call: Call, repo: Repository, pull: PullRequest) -> Json:
    """Return the whole pull request; hide its mergeability when that switch is on."""
    shape = shapes_pulls.full_pull(call.state, repo, pull)
    if pull.state == "open" and call.site.faults.hides_mergeability():
        shape |= {"mergeable": None, "rebaseable": None, "mergeable_state": "unknown"}
    return shape


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


@route(router, "POST", "", 201)
def open_pull(call: Call) -> Any:
    repo = call.repo(OPEN_PULL)
    return full_shape(call, repo, pulls.open_pull(call.site, repo, call.caller.login, call.body))


@route(router, "GET", "/{number}")
def get_pull(call: Call) -> Any:
    repo = call.repo(READ)
    return full_shape(call, repo, call.pull(repo))


@route(router, "PATCH", "/{number}")
def edit_pull(call: Call) -> Any:
    repo = call.repo(OPEN_PULL)
    pull = call.pull(repo)
    if not may_edit(call.state, repo, call.caller, pull.author):
        raise ApiError(403, "Must have write access to this repository.")
    pulls.edit_issue(call.site, repo, pull, call.caller.login, call.body)
    return full_shape(call, repo, pull)


def _commit_span(call: Call, repo: Repository, pull: PullRequest) -> tuple[str, str]:
    folder = call.state.git(repo.full_name)
    return repos.merge_base(folder, pull.base_sha, pull.head_sha) or pull.base_sha, pull.head_sha


@route(router, "GET", "/{number}/files")
def list_files(call: Call) -> Any:
    repo = call.repo(READ)
    start, head = _commit_span(call, repo, call.pull(repo))
    changes = diff_files(call.state.git(repo.full_name), start, head)
    return call.page(shapes_pulls.file_shapes(call.state, repo, changes, head))


@route(router, "GET", "/{number}/commits")
def list_commits(call: Call) -> Any:
    """Return the commits, oldest first."""
    repo = call.repo(READ)
    start, head = _commit_span(call, repo, call.pull(repo))
    log = repos.list_commits(call.state.git(repo.full_name), "--reverse", f"{start}..{head}")
    return call.page([shapes_pulls.commit_shape(call.state, repo, item) for item in log])


@route(router, "GET", "/{number}/merge", 204)
def is_merged(call: Call) -> Any:
    """Answer 204 if it is merged, 404 otherwise."""
    repo = call.repo(READ)
    if call.pull(repo).merged_at is None:
        raise not_found()
    return no_content()


@route(router, "PUT", "/{number}/merge")
def merge_pull(call: Call) -> Any:
    repo = call.repo(PUSH)
    sha = pulls.merge_pull(call.site, repo, call.pull(repo), call.caller.login, call.body)
    return {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}


@route(router, "PUT", "/{number}/update-branch", 202)
def update_branch(call: Call) -> Any:
    repo = call.repo(PUSH)
    pull = call.pull(repo)
    pulls.update_branch(call.site, repo, pull, call.caller.login, call.body.get("expected_head_sha"))
    return {
        "message": "Updating pull request branch.",
        "url": shapes_pulls.pull_shape(call.state, repo, pull)["html_url"],
    }


@route(router, "GET", "/{number}/reviews")
def list_reviews(call: Call) -> Any:
    """Return the reviews, oldest first."""
    repo = call.repo(READ)
    return call.page([shapes_pulls.review_shape(call.state, repo, item) for item in call.pull(repo).reviews])


@route(router, "POST", "/{number}/reviews")
def create_review(call: Call) -> Any:
    repo = call.repo(OPEN_PULL)
    item = talk.submit_review(call.site, repo, call.pull(repo), call.caller.login, call.body)
    return shapes_pulls.review_shape(call.state, repo, item)


@route(router, "PUT", "/{number}/reviews/{review_id:int}/dismissals")
def dismiss_review(call: Call) -> Any:
    repo = call.repo(EDIT_PULL)
    review_id = call.request.path_params["review_id"]
    item = talk.dismiss_review(call.site, repo, call.pull(repo), int(review_id), call.caller.login)
    return shapes_pulls.review_shape(call.state, repo, item)


@route(router, "GET", "/{number}/requested_reviewers")
def requested_reviewers(call: Call) -> Any:
    pull = call.pull(call.repo(READ))
    return {"users": [shapes.user_shape(call.state, login) for login in pull.requested_reviewers], "teams": []}


@route(router, "POST", "/{number}/requested_reviewers", 201)
def request_reviewers(call: Call) -> Any:
    repo = call.repo(LABEL)
    pull = call.pull(repo)
    pull.requested_reviewers += [
        login for login in call.body.get("reviewers") or [] if login not in pull.requested_reviewers
    ]
    return shapes_pulls.pull_shape(call.state, repo, pull)
