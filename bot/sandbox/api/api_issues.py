"""REST: issues, comments, reactions, labels."""

from datetime import datetime
from typing import Any

from starlette.responses import JSONResponse

from mergeplan.bot.sandbox import pulls, talk
from mergeplan.bot.sandbox.access import COMMENT, LABEL, READ, may_edit
from mergeplan.bot.sandbox.api import shapes_issues
from mergeplan.bot.sandbox.api.calls import Call, Router, no_content, route
from mergeplan.bot.sandbox.api.limits import LABEL_NAME, ApiError, check_length, not_found, require_text
from mergeplan.bot.sandbox.state import Comment, Issue, Label, Reaction, Repository

router = Router("/repos/{owner}/{name}")


@route(router, "GET", "/issues")
def list_issues(call: Call) -> Any:
    """Return the issues and pull requests, newest first."""
    repo, state = call.repo(READ), call.query("state", "open")
    label_names = {name for name in call.query("labels").split(",") if name}
    matches = [i for i in repo.issues.values() if state in ("all", i.state) and label_names <= set(i.labels)]
    return call.page([shapes_issues.issue(call.state, repo, item) for item in reversed(matches)])


@route(router, "POST", "/issues", 201)
def open_issue(call: Call) -> Any:
    repo = call.repo(COMMENT)
    return shapes_issues.issue(call.state, repo, talk.open_issue(call.site, repo, call.caller.login, call.body))


@route(router, "GET", "/issues/comments")
def all_comments(call: Call) -> Any:
    repo = call.repo(READ)
    return _comment_page(call, repo, list(repo.comments.values()))


@route(router, "GET", "/issues/comments/{comment_id}")
def get_comment(call: Call) -> Any:
    repo = call.repo(READ)
    return shapes_issues.comment_shape(call.state, repo, call.comment(repo))


def _own_comment(call: Call) -> tuple[Repository, Comment]:
    repo = call.repo(COMMENT)
    item = call.comment(repo)
    if not may_edit(call.state, repo, call.caller, item.author):
        raise ApiError(403, "Must have write access to this repository.")
    return repo, item


@route(router, "PATCH", "/issues/comments/{comment_id}")
def edit_comment(call: Call) -> Any:
    repo, item = _own_comment(call)
    talk.edit_comment(call.site, repo, item, call.caller.login, call.body)
    return shapes_issues.comment_shape(call.state, repo, item)


@route(router, "DELETE", "/issues/comments/{comment_id}", 204)
def delete_comment(call: Call) -> Any:
    repo, item = _own_comment(call)
    talk.delete_comment(call.site, repo, item, call.caller.login)
    return no_content()


@route(router, "GET", "/issues/{number}")
def get_issue(call: Call) -> Any:
    """Return one issue, or a pull request in the form of an issue."""
    repo = call.repo(READ)
    return shapes_issues.issue(call.state, repo, call.issue(repo)) | {"closed_by": None}


@route(router, "PATCH", "/issues/{number}")
def edit_issue(call: Call) -> Any:
    repo = call.repo(COMMENT)
    item = call.issue(repo)
    if not may_edit(call.state, repo, call.caller, item.author):
        raise ApiError(403, "Must have write access to this repository.")
    pulls.edit_issue(call.site, repo, item, call.caller.login, call.body)
    return shapes_issues.issue(call.state, repo, item)


@route(router, "GET", "/issues/{number}/comments")
def list_comments(call: Call) -> Any:
    """Return the comments, oldest first, optionally only those since a time."""
    repo = call.repo(READ)
    number = call.issue(repo).number
    return _comment_page(call, repo, [item for item in repo.comments.values() if item.number == number])


def _comment_page(call: Call, repo: Repository, items: list[Comment]) -> Any:
    if since := call.query("since"):
        items = [item for item in items if item.updated_at >= datetime.fromisoformat(since)]
    return call.page([shapes_issues.comment_shape(call.state, repo, item) for item in items])


@route(router, "POST", "/issues/{number}/comments", 201)
def create_comment(call: Call) -> Any:
    repo = call.repo(COMMENT)
    number, by_app = call.issue(repo).number, call.caller.kind != "user"
    item = talk.add_comment(call.site, repo, number, call.caller.login, call.body, by_app=by_app)
    return shapes_issues.comment_shape(call.state, repo, item)


def _reactions_of(call: Call, repo: Repository) -> list[Reaction]:
    thing: Comment | Issue = call.comment(repo) if "comment_id" in call.request.path_params else call.issue(repo)
    return thing.reactions


def list_reactions(call: Call) -> Any:
    content = call.query("content")
    reactions = [item for item in _reactions_of(call, call.repo(READ)) if content in ("", item.content)]
    return call.page([shapes_issues.reaction_shape(call.state, item) for item in reactions])


def create_reaction(call: Call) -> Any:
    """Add a reaction; answer 201 if it is new, 200 if it exists."""
    content = require_text("Reaction", call.body, "content")
    item, new = talk.add_reaction(call.state, _reactions_of(call, call.repo(COMMENT)), call.caller.login, content)
    return JSONResponse(shapes_issues.reaction_shape(call.state, item), 201 if new else 200)


def delete_reaction(call: Call) -> Any:
    talk.remove_reaction(_reactions_of(call, call.repo(COMMENT)), int(call.request.path_params["reaction_id"]))
    return no_content()


for _thing in ("/issues/comments/{comment_id}", "/issues/{number}"):
    route(router, "GET", f"{_thing}/reactions")(list_reactions)
    route(router, "POST", f"{_thing}/reactions")(create_reaction)
    route(router, "DELETE", f"{_thing}/reactions/{{reaction_id:int}}", 204)(delete_reaction)


def _label_names(call: Call) -> list[str]:
    label_items = call.body.get("labels") or []
    return [item["name"] if isinstance(item, dict) else str(item) for item in label_items]


@route(router, "GET", "/issues/{number}/labels")
def list_labels(call: Call) -> Any:
    repo = call.repo(READ)
    return call.page(shapes_issues.label_shapes(call.state, repo, call.issue(repo)))


@route(router, "POST", "/issues/{number}/labels")
def add_labels(call: Call) -> Any:
    repo = call.repo(LABEL)
    for name in _label_names(call):
        pulls.add_label(call.site, repo, call.issue(repo), name, call.caller.login)
    return shapes_issues.label_shapes(call.state, repo, call.issue(repo))


@route(router, "PUT", "/issues/{number}/labels")
def replace_labels(call: Call) -> Any:
    repo = call.repo(LABEL)
    item, new_labels = call.issue(repo), _label_names(call)
    for name in [name for name in item.labels if name not in new_labels]:
        pulls.remove_label(call.site, repo, item, name, call.caller.login)
    for name in new_labels:
        pulls.add_label(call.site, repo, item, name, call.caller.login)
    return shapes_issues.label_shapes(call.state, repo, item)


@route(router, "DELETE", "/issues/{number}/labels/{label:path}")
def remove_label(call: Call) -> Any:
    repo = call.repo(LABEL)
    pulls.remove_label(call.site, repo, call.issue(repo), call.request.path_params["label"], call.caller.login)
    return shapes_issues.label_shapes(call.state, repo, call.issue(repo))


@route(router, "GET", "/labels")
def repository_labels(call: Call) -> Any:
    repo = call.repo(READ)
    return call.page([shapes_issues.label_shape(call.state, repo, item) for item in repo.labels.values()])


@route(router, "GET", "/labels/{label:path}")
def repository_label(call: Call) -> Any:
    repo, name = call.repo(READ), call.request.path_params["label"]
    if name not in repo.labels:
        raise not_found()
    return shapes_issues.label_shape(call.state, repo, repo.labels[name])


@route(router, "POST", "/labels", 201)
def create_label(call: Call) -> Any:
    repo = call.repo(LABEL)
    name = require_text("Label", call.body, "name")
    check_length("Label", "name", name, LABEL_NAME)
    if name in repo.labels:
        raise ApiError(422, "Validation Failed", [{"resource": "Label", "code": "already_exists", "field": "name"}])
    color = str(call.body.get("color") or "ededed")
    repo.labels[name] = Label(call.state.next_id(), name, color, call.body.get("description"))
    return shapes_issues.label_shape(call.state, repo, repo.labels[name])
