"""REST: issues, comments, reactions."""

from datetime import datetime
from typing import Any

from starlette.responses import JSONResponse

from mergeplan_sandbox import talk
from mergeplan_sandbox.access import COMMENT, READ, may_edit
from mergeplan_sandbox.api import shapes_issues
from mergeplan_sandbox.api.calls import Call, Router, route
from mergeplan_sandbox.api.limits import ApiError, require_text
from mergeplan_sandbox.state import PullRequest

router = Router("/repos/{owner}/{name}")


@route(router, "GET", "/issues/comments/{comment_id}")
def get_comment(call: Call) -> Any:
    repo = call.repo(READ)
    return shapes_issues.comment_shape(call.state, repo, call.comment(repo))


@route(router, "PATCH", "/issues/comments/{comment_id}")
def edit_comment(call: Call) -> Any:
    repo = call.repo(COMMENT)
    item = call.comment(repo)
    if not may_edit(call.state, repo, call.caller, item.author):
        raise ApiError(403, "Must have write access to this repository.")
    talk.edit_comment(call.site, repo, item, call.caller.login, call.body)
    return shapes_issues.comment_shape(call.state, repo, item)


@route(router, "GET", "/issues/{number}")
def get_issue(call: Call) -> Any:
    """Return one issue, or a pull request in the form of an issue."""
    repo = call.repo(READ)
    return shapes_issues.issue(call.state, repo, call.issue(repo)) | {"closed_by": None}


@route(router, "GET", "/issues/{number}/events")
def list_events(call: Call) -> Any:
    repo = call.repo(READ)
    item = call.issue(repo)
    merged = [item] if isinstance(item, PullRequest) and item.merged_at else []
    return call.page([shapes_issues.merge_event(call.state, repo, pull) for pull in merged])


@route(router, "GET", "/issues/{number}/comments")
def list_comments(call: Call) -> Any:
    """Return the comments, oldest first, optionally only those since a time."""
    repo = call.repo(READ)
    number = call.issue(repo).number
    items = [item for item in repo.comments.values() if item.number == number]
    if since := call.query("since"):
        items = [item for item in items if item.updated_at >= datetime.fromisoformat(since)]
    return call.page([shapes_issues.comment_shape(call.state, repo, item) for item in items])


@route(router, "POST", "/issues/{number}/comments", 201)
def create_comment(call: Call) -> Any:
    repo = call.repo(COMMENT)
    number, by_app = call.issue(repo).number, call.caller.kind != "user"
    item = talk.add_comment(call.site, repo, number, call.caller.login, call.body, by_app=by_app)
    return shapes_issues.comment_shape(call.state, repo, item)


@route(router, "POST", "/issues/comments/{comment_id}/reactions")
def create_reaction(call: Call) -> Any:
    """Add a reaction; answer 201 if it is new, 200 if it exists."""
    content = require_text("Reaction", call.body, "content")
    reactions = call.comment(call.repo(COMMENT)).reactions
    item, new = talk.add_reaction(call.state, reactions, call.caller.login, content)
    return JSONResponse(shapes_issues.reaction_shape(call.state, item), 201 if new else 200)
