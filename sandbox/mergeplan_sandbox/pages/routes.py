"""The pages that a person sees: repositories, pull requests, checks and diffs, and the forms that act."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import FormData

from mergeplan_sandbox import manifests
from mergeplan_sandbox.access import READ, Caller, require_repository
from mergeplan_sandbox.admin import same_origin
from mergeplan_sandbox.api import shapes_pulls
from mergeplan_sandbox.api.limits import ApiError, not_found
from mergeplan_sandbox.api.shapes_checks import latest_runs
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.git.diffs import diff_files
from mergeplan_sandbox.markdown import render_markdown, toggle_box
from mergeplan_sandbox.stage import Stage
from mergeplan_sandbox.state import CheckRun, PullRequest, Repository

router = APIRouter(include_in_schema=False)
templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
EMOJI = {
    "+1": "👍",
    "-1": "👎",
    "laugh": "😄",
    "confused": "😕",
    "heart": "❤️",
    "hooray": "🎉",
    "rocket": "🚀",
    "eyes": "👀",
}
templates.filters["markdown"] = render_markdown
templates.filters["hue"] = lambda login: sum(ord(char) * 37 for char in login) % 360
templates.globals["emoji"] = EMOJI
COOKIE = "person"


class View:
    """One request for a page: the stage, and who is looking."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.stage: Stage = request.app.state.stage
        self.state = self.stage.state
        people = [user.login for user in self.state.users.values() if user.kind == "User"]
        chosen = request.cookies.get(COOKIE, "")
        self.people = people
        self.person = chosen if chosen in people else next(iter(people), "")

    def repo(self, full_name: str) -> Repository:
        return require_repository(self.state, Caller(self.person, "user"), full_name, READ)

    def html(self, template: str, **values: Any) -> Response:
        """Render a page that may load only its own styles and images, and one script by this answer's nonce."""
        nonce = secrets.token_urlsafe(12)
        text = templates.get_template(template).render(
            view=self, state=self.state, nonce=nonce, error=self.request.query_params.get("error", ""), **values
        )
        policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; script-src 'nonce-{nonce}'; "
        policy += "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        return HTMLResponse(text, headers={"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"})


def _register_page(
    path: str, template: str
) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., dict[str, Any]]]:
    """Register a page; the function collects its values with the state locked."""

    def register(gather: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        def show(request: Request) -> Response:
            with request.app.state.stage.state.lock:
                view = View(request)
                try:
                    return view.html(template, **gather(view, **request.path_params))
                except ApiError as error:
                    return HTMLResponse(f"<h1>{error.status}</h1>", error.status)

        router.add_api_route(path, show, methods=["GET"], response_model=None)
        return gather

    return register


@_register_page("/", "home.html")
def show_home(view: View) -> dict[str, Any]:
    roles = {name: view.state.role(repo, view.person) for name, repo in view.state.repositories.items()}
    return {"repositories": [view.state.repositories[name] for name, role in roles.items() if role != "none"]}


@_register_page("/{owner}/{name}", "repository.html")
def show_repository(view: View, owner: str, name: str) -> dict[str, Any]:
    repo = view.repo(f"{owner}/{name}")
    folder = view.state.git(repo.full_name)
    readme = repos.read_blob(folder, repo.default_branch, "README.md")
    return {
        "repo": repo,
        "branches": repos.list_refs(folder),
        "paths": repos.list_files(folder, repo.default_branch),
        "readme": readme[1].decode("utf-8", "replace") if readme else "",
        "head": repos.read_commit(folder, repo.default_branch),
    }


@_register_page("/{owner}/{name}/pulls", "pulls.html")
def pull_list(view: View, owner: str, name: str) -> dict[str, Any]:
    """Show the pull requests of a repository, newest first."""
    repo = view.repo(f"{owner}/{name}")
    return {
        "repo": repo,
        "pulls": repo.pulls[::-1],
        "runs": {pull.number: _latest_runs(repo, pull) for pull in repo.pulls},
    }


def _find_pull(view: View, owner: str, name: str, number: str) -> tuple[Repository, PullRequest]:
    repo = view.repo(f"{owner}/{name}")
    item = repo.issues.get(int(number)) if number.isdecimal() else None
    if not isinstance(item, PullRequest):
        raise not_found()
    return repo, item


def _latest_runs(repo: Repository, pull: PullRequest) -> list[CheckRun]:
    return list(latest_runs([run for run in repo.checks.values() if run.head_sha == pull.head_sha]).values())


@_register_page("/{owner}/{name}/pull/{number}", "pull.html")
def show_conversation(view: View, owner: str, name: str, number: str) -> dict[str, Any]:
    repo, pull = _find_pull(view, owner, name, number)
    folder = view.state.git(repo.full_name)
    start = repos.merge_base(folder, pull.base_sha, pull.head_sha) or pull.base_sha
    comments = [item for item in repo.comments.values() if item.number == pull.number]
    events = [(item.created_at, item.id, "comment", item) for item in comments]
    events += [(item.submitted_at, item.id, "review", item) for item in pull.reviews]  # type: ignore[misc]
    return {
        "repo": repo,
        "pull": pull,
        "commits": repos.list_commits(folder, "--reverse", f"{start}..{pull.head_sha}"),
        "events": sorted(events, key=lambda event: event[:2]),
        "runs": _latest_runs(repo, pull),
        "missing": shapes_pulls.missing_checks(repo, pull),
        "role": view.state.role(repo, view.person),
        "tab": "conversation",
    }


@_register_page("/{owner}/{name}/pull/{number}/checks", "checks.html")
def show_checks(view: View, owner: str, name: str, number: str) -> dict[str, Any]:
    repo, pull = _find_pull(view, owner, name, number)
    return {"repo": repo, "pull": pull, "runs": _latest_runs(repo, pull), "tab": "checks"}


@_register_page("/{owner}/{name}/pull/{number}/files", "files.html")
def show_files(view: View, owner: str, name: str, number: str) -> dict[str, Any]:
    repo, pull = _find_pull(view, owner, name, number)
    folder = view.state.git(repo.full_name)
    start = repos.merge_base(folder, pull.base_sha, pull.head_sha) or pull.base_sha
    return {"repo": repo, "pull": pull, "changes": diff_files(folder, start, pull.head_sha), "tab": "files"}


@_register_page("/{owner}/{name}/runs/{run_id}", "checks.html")
def show_check(view: View, owner: str, name: str, run_id: str) -> dict[str, Any]:
    repo = view.repo(f"{owner}/{name}")
    run = repo.checks.get(int(run_id)) if run_id.isdecimal() else None
    if run is None:
        raise not_found()
    pull = next((pull for pull in repo.pulls if run.head_sha in (pull.head_sha, pull.merge_commit_sha)), None)
    return {"repo": repo, "pull": pull, "runs": [run], "tab": "checks"}


@_register_page("/{owner}/{name}/commit/{sha}", "commit.html")
def show_commit(view: View, owner: str, name: str, sha: str) -> dict[str, Any]:
    repo = view.repo(f"{owner}/{name}")
    folder = view.state.git(repo.full_name)
    if repos.find_tip(folder, sha) is None:
        raise not_found()
    item = repos.read_commit(folder, sha)
    parent = item.parents[0] if item.parents else shapes_pulls.empty_tree(folder)
    return {"repo": repo, "commit": item, "changes": diff_files(folder, parent, item.sha)}


@_register_page("/{owner}/{name}/blob/{rest:path}", "blob.html")
def show_blob(view: View, owner: str, name: str, rest: str) -> dict[str, Any]:
    """Show a file at a commit or at a branch without a slash in its name."""
    repo = view.repo(f"{owner}/{name}")
    ref, _, path = rest.partition("/")
    folder = view.state.git(repo.full_name)
    content = repos.read_blob(folder, ref, path) if repos.find_tip(folder, ref) else None
    if content is None:
        raise not_found()
    return {"repo": repo, "ref": ref, "path": path, "text": content[1].decode("utf-8", "replace")}


# --- forms ---


def _post_comment(view: View, repo: str, number: int, form: FormData) -> None:
    view.stage.comment(repo, number, str(form.get("body", "")).replace("\r\n", "\n"), author=view.person)


def _tick_box(view: View, repo: str, number: int, form: FormData) -> None:
    item = view.state.repositories[repo].comments[int(str(form["comment"]))]
    view.stage.edit_comment(repo, item.id, toggle_box(item.body, int(str(form["line"]))), author=view.person)


def _merge_pull(view: View, repo: str, number: int, form: FormData) -> None:
    method = str(form.get("method", "merge"))
    view.stage.merge(repo, number, author=view.person, method=method)  # type: ignore[arg-type]  # merge() checks it


DEEDS: dict[str, Callable[[View, str, int, FormData], object]] = {
    "comment": _post_comment,
    "tick": _tick_box,
    "merge": _merge_pull,
    "close": lambda view, repo, number, _: view.stage.close(repo, number, author=view.person),
    "reopen": lambda view, repo, number, _: view.stage.reopen(repo, number, author=view.person),
    "approve": lambda view, repo, number, form: view.stage.review(
        repo, number, "APPROVED", author=view.person, body=str(form.get("body", ""))
    ),
    "rerequest": lambda view, repo, _, form: view.stage.rerequest(repo, int(str(form["run"])), author=view.person),
    "click": lambda view, repo, _, form: view.stage.click(
        repo, int(str(form["run"])), str(form["identifier"]), author=view.person
    ),
}


@router.post("/{owner}/{name}/pull/{number}/{deed}")
async def act(request: Request, owner: str, name: str, number: int, deed: str) -> Response:
    """Do what a form requests, as the chosen person, and show the page again."""
    if not same_origin(request) or deed not in DEEDS:
        return Response("Forms of other sites are not taken.", 403)
    form = await request.form()
    with request.app.state.stage.state.lock:
        view = View(request)
    person = str(form.get("person", ""))
    view.person = person if person in view.people else view.person
    back, problem = _way_back(request), ""
    try:
        await run_in_threadpool(DEEDS[deed], view, f"{owner}/{name}", number, form)
    except ApiError as error:
        problem = "; ".join([error.message, *(str(item.get("message", "")) for item in error.errors or [])])
    except (KeyError, ValueError):
        problem = "That is not there any more."
    return _build_redirect(back + (f"?error={quote(problem)}" if problem else ""), view.person)


@router.post("/settings/apps/new")
@router.post("/organizations/{organization}/settings/apps/new")
async def new_app(request: Request) -> Response:
    """Take a manifest from the form of another site; the sandbox's App gets the webhook that it names."""
    form = await request.form()
    with request.app.state.stage.state.lock:
        address, problem = manifests.take_manifest(request.app.state.stage.state, str(form.get("manifest", "")))
    if problem:
        return Response(problem, 422, media_type="text/plain")
    state = request.query_params.get("state", "")
    return RedirectResponse(f"{address}{f'&state={quote(state)}' if state else ''}", 302)


@router.post("/person")
async def become(request: Request) -> Response:
    """Choose the person who acts from now on."""
    if not same_origin(request):
        return Response("Forms of other sites are not taken.", 403)
    form = await request.form()
    return _build_redirect(_way_back(request), str(form.get("person", "")))


def _way_back(request: Request) -> str:
    # Only the path of where one came from: a redirect never leaves this site.
    path = urlsplit(request.headers.get("referer", "/")).path
    return "/" + quote(path.lstrip("/"))


def _build_redirect(target: str, person: str) -> Response:
    answer = RedirectResponse(target, 303)
    if all(char.isalnum() or char in "-_" for char in person):
        answer.set_cookie(COOKIE, person, httponly=True, samesite="strict")
    return answer
