"""git over HTTP: `git http-backend` behind the sandbox's own rules of who may read and push."""

import subprocess
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from mergeplan_sandbox.access import PUSH, READ, Caller, Need, caller_of, require_repository
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.git import pushes, repos
from mergeplan_sandbox.git.repos import GIT_TIMEOUT
from mergeplan_sandbox.state import Repository
from mergeplan_sandbox.webhooks import Site

DELIMITER, FLUSH = b"0001", b"0000"
# A tag may be an object of its own, which git has to look into.
OF_COMMITS = ("HEAD", "refs/heads/", "refs/pull/")
router = APIRouter()
FETCHES = "service=git-upload-pack"
READ_CONTENTS = Need(("contents",), "read", "read")
DELIMITER, FLUSH = b"0001", b"0000"
# A tag may be an object of its own, which git has to look into.
OF_COMMITS = ("HEAD", "refs/heads/", "refs/pull/")


@router.api_route("/{owner}/{name}.git/{path:path}", methods=["GET", "POST"])
async def git(request: Request, owner: str, name: str, path: str) -> Response:
    """Serve one request of a git client; after a push, update pull requests and send webhooks."""
    body = await request.body()
    return await run_in_threadpool(_serve_request, request, f"{owner}/{name}", path, body)


def _serve_request(request: Request, full_name: str, path: str, body: bytes) -> Response:
    site: Site = request.app.state.site
    pushing = path == "git-receive-pack" or request.query_params.get("service") == "git-receive-pack"
    with site.state.lock:
        if moved_to := _find_move(site, full_name):
            return RedirectResponse(f"/{moved_to}.git/{path}?{request.url.query}", 301)
        try:
            repo, login = _authorize_request(site, request, full_name, pushing)
        except ApiError as error:
            challenge = {"WWW-Authenticate": 'Basic realm="GitHub"'} if error.status == 401 else {}
            return Response(error.message + "\n", error.status, challenge, "text/plain")
        if path != "git-receive-pack":
            login = login or "anonymous"
        else:
            # A push keeps the lock: nothing else may move a branch between both looks at them.
            old_refs = repos.list_refs(site.state.git(full_name))
            answer = _run_backend(site, request, full_name, path, body, login)
            pushes.receive_push(site, repo, old_refs, login)
            return answer
    is_command = path == "git-upload-pack" and request.headers.get("git-protocol") == "version=2"
    if is_command and (listing := list_references(site.state.git(full_name), body)) is not None:
        return Response(listing, media_type="application/x-git-upload-pack-result")
    return _run_backend(site, request, full_name, path, body, login)


def _find_move(site: Site, full_name: str) -> str:
    """Return the present name of a repository that is asked for by an earlier one; '' if it is no earlier name."""
    state = site.state
    if full_name in state.repositories or full_name not in state.moved:
        return ""
    return next((repo.full_name for repo in state.repositories.values() if repo.id == state.moved[full_name]), "")


def _authorize_request(site: Site, request: Request, full_name: str, pushing: bool) -> tuple[Repository, str]:
    authorization = request.headers.get("authorization")
    repo = site.state.repositories.get(full_name)
    if authorization is None and repo is not None and not repo.private and not pushing:
        return repo, ""
    caller: Caller = caller_of(site.state, authorization)
    if caller.kind == "app":
        raise ApiError(401, "Bad credentials")
    if repo and not repo.private and not pushing:
        return require_repository(site.state, caller, full_name, READ), caller.login
    return require_repository(site.state, caller, full_name, PUSH if pushing else READ_CONTENTS), caller.login


def _run_backend(site: Site, request: Request, full_name: str, path: str, body: bytes, login: str) -> Response:
    env = repos.git_environment() | {
        "GIT_PROJECT_ROOT": str(site.state.folder.resolve()),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{full_name}.git/{unquote(path)}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.url.query,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
        "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
        "REMOTE_USER": login,
        "REMOTE_ADDR": "127.0.0.1",
        "GIT_COMMITTER_NAME": login,
        "GIT_COMMITTER_EMAIL": f"{login}@localhost",
    }
    if path == "info/refs" and env["GIT_PROTOCOL"] == "version=2" and env["QUERY_STRING"] == FETCHES:
        answer = _ask_once(tuple(env.items()))
        if answer[1] != 200:
            _ask_once.cache_clear()
        return Response(*answer)
    return Response(*_call_backend(env, body))


def _call_backend(env: Mapping[str, str], body: bytes = b"") -> tuple[bytes, int, dict[str, str]]:
    done = subprocess.run(
        [_find_program()], input=body, env=dict(env), capture_output=True, timeout=GIT_TIMEOUT, check=False
    )
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode("latin-1").splitlines() if ": " in line)
    status = int(fields.pop("Status", "200" if done.returncode == 0 else "500").split()[0])
    return content, status, fields


@lru_cache(maxsize=200)
def _ask_once(env: tuple[tuple[str, str], ...]) -> tuple[bytes, int, dict[str, str]]:
    """Return the start of a fetch by git's version 2: the server's capabilities, which no push changes."""
    return _call_backend(dict(env))


@cache
def _find_program() -> str:
    run = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, timeout=GIT_TIMEOUT, check=True)
    return f"{run.stdout.strip()}/git-http-backend"


def list_references(repo: Path, body: bytes) -> bytes | None:
    """Return the answer to a command `ls-refs` of git's version 2, read from files; None if git has to answer."""
    lines = list(_read_lines(body))
    if not lines or lines[0] != "command=ls-refs":
        return None
    prefixes = tuple(line.removeprefix("ref-prefix ") for line in lines if line.startswith("ref-prefix "))
    every = repos.list_refs(repo, "refs/")
    at = (repo / "HEAD").read_text().strip().removeprefix("ref: ")
    if at in every:
        every = {"HEAD": every[at], **every}
    names = {name: sha for name, sha in every.items() if name.startswith(prefixes or "")}
    if at not in every or not all(name.startswith(OF_COMMITS) for name in names):
        return None
    targets = {"HEAD": f" symref-target:{at}"} if "symrefs" in lines else {}
    answer = (f"{sha} {name}{targets.get(name, '')}\n" for name, sha in names.items())
    return b"".join(f"{len(line.encode()) + 4:04x}{line}".encode() for line in answer) + FLUSH


def _read_lines(body: bytes) -> Iterator[str]:
    """Yield the lines of a request up to its end; stop at data that is not in such lines."""
    at = 0
    while (size := body[at : at + 4]) and size != FLUSH:
        if size == DELIMITER:
            at += 4
            continue
        try:
            length = int(size, 16)
        except ValueError:
            return
        if length < 5:
            return
        yield body[at + 4 : at + length].decode("utf-8", "replace").removesuffix("\n")
        at += length
