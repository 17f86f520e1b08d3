"""REST: users, the App, its installations and webhooks, repositories and their refs."""

from typing import Any

from mergeplan_sandbox import manifests
from mergeplan_sandbox.access import (
    READ,
    READ_MEMBERS,
    READ_ROLES,
    check_installation,
    has_permission,
    issue_token,
    narrow_permissions,
)
from mergeplan_sandbox.api import shapes
from mergeplan_sandbox.api.calls import Call, Router, route
from mergeplan_sandbox.api.limits import REQUESTS_PER_HOUR, ApiError, not_found
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.state import Delivery, Installation, Json, Repository

router = Router()


def _app_only(call: Call) -> None:
    if call.caller.kind != "app":
        raise ApiError(401, "A JSON web token could not be decoded")


def _find_installation(call: Call) -> Installation:
    for item in call.state.installations.values():
        if str(item.id) == call.request.path_params["installation_id"]:
            return item
    raise not_found()


@route(router, "GET", "/rate_limit")
def rate_limit(call: Call) -> Any:
    """Return a full budget; the live numbers are in every answer's headers."""
    core = {"limit": REQUESTS_PER_HOUR, "remaining": REQUESTS_PER_HOUR, "used": 0, "reset": 0}
    return {"resources": {"core": core, "search": core}, "rate": core}


@route(router, "GET", "/user")
def get_user(call: Call) -> Any:
    """Return the person who owns the token; refuse an App, which has no user."""
    if call.caller.kind != "user":
        raise ApiError(403, "Resource not accessible by integration")
    return shapes.full_user(call.state, call.caller.login)


@route(router, "GET", "/app")
def get_app(call: Call) -> Any:
    _app_only(call)
    return shapes.app_shape(call.state) | {"installations_count": len(call.state.installations)}


@route(router, "GET", "/app/installations")
def list_installations(call: Call) -> Any:
    _app_only(call)
    return call.page([shapes.installation_shape(call.state, item) for item in call.state.installations.values()])


@route(router, "GET", "/app/installations/{installation_id}")
def get_installation(call: Call) -> Any:
    _app_only(call)
    return shapes.installation_shape(call.state, _find_installation(call))


@route(router, "POST", "/app/installations/{installation_id}/access_tokens", 201)
def access_token(call: Call) -> Any:
    """Create a token for one hour, narrowed to the requested repositories and permissions."""
    _app_only(call)
    item = check_installation(_find_installation(call), gone_status=404)
    names = call.body.get("repositories")
    chosen = frozenset(f"{item.account}/{name}" for name in names) if names else None
    if call.body.get("repository_ids"):
        ids = call.body["repository_ids"]
        chosen = frozenset(name for name in item.repositories if call.state.repositories[name].id in ids)
    if chosen and not chosen <= item.repositories:
        raise ApiError(422, "There is at least one repository that does not exist or is not accessible.")
    rights = narrow_permissions(call.body.get("permissions"))
    token = issue_token(
        call.state,
        call.state.app.bot_login,
        "installation",
        installation_id=item.id,
        repositories=chosen,
        permissions=rights,
    )
    shape = {"token": token.value, "expires_at": shapes.format_time(token.expires_at), "permissions": rights}
    return shape | {"repository_selection": "selected"}


@route(router, "GET", "/installation/repositories")
def list_repositories(call: Call) -> Any:
    """Return the repositories that the installation's token covers."""
    token = call.caller.token
    if token is None or token.kind == "user":
        raise ApiError(403, "You must authenticate with an installation access token.")
    items = [call.state.repositories[name] for name in sorted(call.state.token_repositories(token))]
    return call.page([shapes.repository(call.state, item, item.owner) for item in items], key="repositories")


@route(router, "GET", "/repos/{owner}/{name}/installation")
def repository_installation(call: Call) -> Any:
    _app_only(call)
    repo = call.state.repositories.get("{owner}/{name}".format(**call.request.path_params))
    item = call.state.installation_of(repo) if repo else None
    if item is None:
        raise not_found()
    return shapes.installation_shape(call.state, item)


@route(router, "POST", "/app-manifests/{code}/conversions", 201, is_open=True)
def convert_manifest(call: Call) -> Any:
    """Return the App that a manifest created, with its key and secrets.

    The code alone is enough, works once, and needs no token.
    """
    return manifests.convert_code(call.state, call.request.path_params["code"])


@route(router, "GET", "/orgs/{org}/teams/{team}/memberships/{login}")
def get_membership(call: Call) -> Any:
    path = call.request.path_params
    if call.caller.token is None or (
        call.caller.kind != "user" and not has_permission(call.caller.token, READ_MEMBERS)
    ):
        raise ApiError(403, "Resource not accessible by integration")
    if path["login"] not in call.state.teams.get(f"{path['org']}/{path['team']}", set()):
        raise not_found()
    url = f"{call.state.base_url}/orgs/{path['org']}/teams/{path['team']}/memberships/{path['login']}"
    return {"url": url, "role": "member", "state": "active"}


def _find_delivery(call: Call) -> Delivery:
    for item in call.state.deliveries:
        if str(item.id) == call.request.path_params["delivery_id"]:
            return item
    raise not_found()


def _delivery_shape(item: Delivery) -> Json:
    return {
        "id": item.id,
        "guid": item.guid,
        "delivered_at": shapes.format_time(item.delivered_at),
        "redelivery": item.redelivery,
        "duration": item.duration,
        "status": item.status,
        "status_code": item.status_code,
        "event": item.event,
        "action": item.action,
        "installation_id": item.installation_id,
        "repository_id": item.repository_id,
        "throttled_at": None,
    }


@route(router, "GET", "/app/hook/deliveries")
def list_deliveries(call: Call) -> Any:
    """Return the webhook attempts, newest first."""
    _app_only(call)
    # GitHub pages these by a cursor; `page` is what the sandbox has, and PyGithub follows either.
    return call.page([_delivery_shape(item) for item in reversed(call.state.deliveries)])


@route(router, "GET", "/app/hook/deliveries/{delivery_id}")
def get_delivery(call: Call) -> Any:
    _app_only(call)
    item = _find_delivery(call)
    answer: Json = {"headers": {}, "payload": None}
    request = {"headers": {"X-GitHub-Event": item.event, "X-GitHub-Delivery": item.guid}, "payload": item.payload}
    return _delivery_shape(item) | {"url": call.state.hook.url or "", "request": request, "response": answer}


@route(router, "POST", "/app/hook/deliveries/{delivery_id}/attempts", 202)
def redeliver_webhook(call: Call) -> Any:
    """Send a webhook again under its old GUID."""
    _app_only(call)
    call.site.courier.redeliver(_find_delivery(call))
    return {}


@route(router, "GET", "/repos/{owner}/{name}")
def get_repository(call: Call) -> Any:
    return shapes.full_repository(call.state, call.repo(READ), call.caller.login)


@route(router, "GET", "/repos/{owner}/{name}/collaborators/{login}/permission")
def get_permission(call: Call) -> Any:
    repo, login = call.repo(READ_ROLES), call.request.path_params["login"]
    if login not in call.state.users:
        raise not_found()
    return shapes.collaborator_permission(call.state, repo, login)


def _ref_shape(call: Call, repo: Repository, ref: str, sha: str) -> Json:
    api = shapes.api_url(call.state, repo)
    target = {"type": "commit", "sha": sha, "url": f"{api}/git/commits/{sha}"}
    return {"ref": ref, "node_id": f"REF_{sha}", "url": f"{api}/git/{ref}", "object": target}


@route(router, "GET", "/repos/{owner}/{name}/git/ref/{ref:path}")
def ref(call: Call) -> Any:
    """Return one ref, also `pull/N/head` and `pull/N/merge`."""
    repo, name = call.repo(READ), f"refs/{call.request.path_params['ref']}"
    sha = repos.list_refs(call.state.git(repo.full_name), "refs/").get(name)
    if sha is None:
        raise not_found()
    return _ref_shape(call, repo, name, sha)


@route(router, "GET", "/repos/{owner}/{name}/git/matching-refs/{ref:path}")
def matching_refs(call: Call) -> Any:
    repo, prefix = call.repo(READ), f"refs/{call.request.path_params['ref']}"
    refs = repos.list_refs(call.state.git(repo.full_name), "refs/")
    return call.page([_ref_shape(call, repo, name, sha) for name, sha in refs.items() if name.startswith(prefix)])
