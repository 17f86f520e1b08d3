"""REST: branches, refs, commits, comparisons, trees and file contents."""

import base64
from typing import Any

from mergeplan.bot.sandbox.access import PUSH, READ
from mergeplan.bot.sandbox.api import shapes, shapes_pulls
from mergeplan.bot.sandbox.api.calls import Call, Router, no_content, route
from mergeplan.bot.sandbox.api.limits import ApiError, check_sha, not_found, require_text
from mergeplan.bot.sandbox.git import pushes, repos
from mergeplan.bot.sandbox.state import Json, PullRequest, Repository

router = Router("/repos/{owner}/{name}")


def _branch_shape(call: Call, repo: Repository, branch: str, sha: str) -> Json:
    api = shapes.api_url(call.state, repo)
    required = repo.required_checks.get(branch, [])
    checks = {"enforcement_level": "non_admins" if required else "off", "contexts": required, "checks": []}
    return {
        "name": branch,
        "commit": {"sha": sha, "url": f"{api}/commits/{sha}"},
        "protected": bool(required),
        "protection": {"enabled": bool(required), "required_status_checks": checks},
        "protection_url": f"{api}/branches/{branch}/protection",
    }


@route(router, "GET", "/branches")
def list_branches(call: Call) -> Any:
    repo = call.repo(READ)
    refs = repos.list_refs(call.state.git(repo.full_name))
    return call.page([_branch_shape(call, repo, ref.removeprefix("refs/heads/"), sha) for ref, sha in refs.items()])


@route(router, "GET", "/branches/{branch:path}")
def branch(call: Call) -> Any:
    repo, name = call.repo(READ), call.request.path_params["branch"]
    folder = call.state.git(repo.full_name)
    sha = repos.list_refs(folder).get(f"refs/heads/{name}")
    if sha is None:
        raise ApiError(404, "Branch not found")
    page = f"{shapes.html_url(call.state, repo)}/tree/{name}"
    links = {"self": f"{shapes.api_url(call.state, repo)}/branches/{name}", "html": page}
    commit = shapes_pulls.commit_shape(call.state, repo, repos.read_commit(folder, sha))
    return _branch_shape(call, repo, name, sha) | {"commit": commit, "_links": links}


def _ref_shape(call: Call, repo: Repository, ref: str, sha: str) -> Json:
    api = shapes.api_url(call.state, repo)
    target = {"type": "commit", "sha": sha, "url": f"{api}/git/commits/{sha}"}
    return {"ref": ref, "node_id": f"REF_{sha}", "url": f"{api}/git/{ref}", "object": target}


@route(router, "GET", "/git/ref/{ref:path}")
def ref(call: Call) -> Any:
    """Return one ref, also `pull/N/head` and `pull/N/merge`."""
    repo, name = call.repo(READ), f"refs/{call.request.path_params['ref']}"
    sha = repos.list_refs(call.state.git(repo.full_name), "refs/").get(name)
    if sha is None:
        raise not_found()
    return _ref_shape(call, repo, name, sha)


@route(router, "GET", "/git/matching-refs/{ref:path}")
def matching_refs(call: Call) -> Any:
    repo, prefix = call.repo(READ), f"refs/{call.request.path_params['ref']}"
    refs = repos.list_refs(call.state.git(repo.full_name), "refs/")
    return call.page([_ref_shape(call, repo, name, sha) for name, sha in refs.items() if name.startswith(prefix)])


@route(router, "POST", "/git/refs", 201)
def create_ref(call: Call) -> Any:
    """Create a branch, as a push does."""
    repo = call.repo(PUSH)
    name, sha = require_text("Reference", call.body, "ref"), require_text("Reference", call.body, "sha")
    check_sha("Reference", "sha", sha)
    branch = name.removeprefix("refs/heads/")
    folder = call.state.git(repo.full_name)
    if branch == name or not repos.valid_branch(branch):
        raise ApiError(422, f"{name} is not a valid ref name.")
    if name in repos.list_refs(folder):
        raise ApiError(422, "Reference already exists")
    if repos.find_tip(folder, sha) is None:
        raise ApiError(422, "Object does not exist")
    pushes.point_branch(call.site, repo, branch, sha, call.caller.login)
    return _ref_shape(call, repo, name, sha)


@route(router, "PATCH", "/git/refs/heads/{branch:path}")
def move_ref(call: Call) -> Any:
    """Move a branch, as a push does; refuse to move it backwards unless forced."""
    repo, name = call.repo(PUSH), call.request.path_params["branch"]
    sha, folder = require_text("Reference", call.body, "sha"), call.state.git(repo.full_name)
    old_sha = repos.list_refs(folder).get(f"refs/heads/{name}")
    if old_sha is None or repos.find_tip(folder, sha) is None:
        raise ApiError(422, "Reference does not exist")
    if not call.body.get("force") and not repos.is_ancestor(folder, old_sha, sha):
        raise ApiError(422, "Update is not a fast forward")
    pushes.point_branch(call.site, repo, name, sha, call.caller.login)
    return _ref_shape(call, repo, f"refs/heads/{name}", sha)


@route(router, "DELETE", "/git/refs/heads/{branch:path}", 204)
def delete_ref(call: Call) -> Any:
    repo, name = call.repo(PUSH), call.request.path_params["branch"]
    if f"refs/heads/{name}" not in repos.list_refs(call.state.git(repo.full_name)):
        raise ApiError(422, "Reference does not exist")
    pushes.point_branch(call.site, repo, name, None, call.caller.login)
    return no_content()


@route(router, "GET", "/commits")
def list_commits(call: Call) -> Any:
    """Return the history of a branch, newest first."""
    repo = call.repo(READ)
    sha = call.commit(repo, call.query("sha", repo.default_branch))
    log = repos.list_commits(call.state.git(repo.full_name), sha)
    return call.page([shapes_pulls.commit_shape(call.state, repo, item) for item in log])


@route(router, "GET", "/commits/{sha}/pulls")
def commit_pulls(call: Call) -> Any:
    repo = call.repo(READ)
    sha, folder = call.commit(repo, call.request.path_params["sha"]), call.state.git(repo.full_name)

    def holds(pull: PullRequest) -> bool:
        if sha == pull.merge_commit_sha:
            return True
        return repos.is_ancestor(folder, sha, pull.head_sha) and not repos.is_ancestor(folder, sha, pull.base_sha)

    return call.page([shapes_pulls.pull_shape(call.state, repo, pull) for pull in repo.pulls if holds(pull)])


@route(router, "GET", "/git/commits/{sha}")
def git_commit(call: Call) -> Any:
    repo = call.repo(READ)
    item = repos.read_commit(call.state.git(repo.full_name), call.commit(repo, call.request.path_params["sha"]))
    full = shapes_pulls.commit_shape(call.state, repo, item)
    shape = shapes_pulls.git_commit(call.state, repo, item)
    return shape | {
        "sha": item.sha,
        "node_id": full["node_id"],
        "html_url": full["html_url"],
        "parents": full["parents"],
    }


@route(router, "GET", "/git/trees/{sha:path}")
def get_tree(call: Call) -> Any:
    """Return the entries of a folder; with `recursive`, all below it."""
    repo, sha = call.repo(READ), call.request.path_params["sha"]
    api, folder = shapes.api_url(call.state, repo), call.state.git(repo.full_name)
    try:
        tree_entries = repos.tree(folder, repos.find_tip(folder, sha) or sha, recursive=bool(call.query("recursive")))
    except repos.GitError as error:
        raise not_found() from error
    entries = [
        {
            "path": entry.path,
            "mode": entry.mode,
            "type": entry.kind,
            "sha": entry.sha,
            "url": f"{api}/git/blobs/{entry.sha}",
        }
        | ({"size": entry.size} if entry.size is not None else {})
        for entry in tree_entries
    ]
    return {"sha": sha, "url": f"{api}/git/trees/{sha}", "truncated": False, "tree": entries}


@route(router, "GET", "/compare/{basehead:path}")
def compare_commits(call: Call) -> Any:
    repo = call.repo(READ)
    base, dots, head = call.request.path_params["basehead"].partition("...")
    ends = [repos.find_tip(call.state.git(repo.full_name), end.rpartition(":")[2]) for end in (base, head)]
    if not dots or ends[0] is None or ends[1] is None:
        raise not_found()
    return shapes_pulls.comparison_shape(call.state, repo, ends[0], ends[1])


def _content_shape(call: Call, repo: Repository, path: str, sha: str, size: int, kind: str) -> Json:
    ref = call.query("ref", repo.default_branch)
    api, page = shapes.api_url(call.state, repo), shapes.html_url(call.state, repo)
    links = {
        "self": f"{api}/contents/{path}?ref={ref}",
        "git": f"{api}/git/blobs/{sha}",
        "html": f"{page}/blob/{ref}/{path}",
    }
    where = {"url": links["self"], "git_url": links["git"], "html_url": links["html"]}
    shape: Json = {"type": kind, "size": size, "name": path.rsplit("/", 1)[-1], "path": path, "sha": sha}
    return shape | where | {"download_url": f"{page}/raw/{ref}/{path}" if kind == "file" else None, "_links": links}


@route(router, "GET", "/contents/{path:path}")
def get_contents(call: Call) -> Any:
    """Return a file in base64, or a folder's entries."""
    repo, path = call.repo(READ), call.request.path_params["path"].strip("/")
    folder = call.state.git(repo.full_name)
    sha = repos.find_tip(folder, call.query("ref", repo.default_branch))
    if sha is None:
        raise ApiError(404, f"No commit found for the ref {call.query('ref')}")
    if path and (blob := repos.read_blob(folder, sha, path)):
        text = {"encoding": "base64", "content": base64.encodebytes(blob[1]).decode()}
        return _content_shape(call, repo, path, blob[0], len(blob[1]), "file") | text
    try:
        entries = repos.tree(folder, sha, path)
    except repos.GitError as error:
        raise not_found() from error
    prefix = f"{path}/" if path else ""
    kinds = {"blob": "file", "tree": "dir", "commit": "submodule"}
    return [_content_shape(call, repo, prefix + e.path, e.sha, e.size or 0, kinds[e.kind]) for e in entries]


@route(router, "GET", "/commits/{sha:path}")
def commit(call: Call) -> Any:
    repo = call.repo(READ)
    return shapes_pulls.full_commit(call.state, repo, call.commit(repo, call.request.path_params["sha"]))
