"""What the sandbox tells the App: GitHub's webhook payloads, written from the state as it is."""

from dataclasses import dataclass

from mergeplan_sandbox.api import shapes, shapes_checks, shapes_issues, shapes_pulls
from mergeplan_sandbox.courier import Courier
from mergeplan_sandbox.faults import Faults
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.git.diffs import diff_files
from mergeplan_sandbox.git.repos import Commit
from mergeplan_sandbox.state import (
    APP_EVENTS,
    CheckRun,
    CheckSuite,
    Comment,
    Installation,
    Json,
    MergeGroup,
    PullRequest,
    Repository,
    Review,
    State,
)

MOST_COMMITS = 20  # a push event lists no more


@dataclass(frozen=True)
class Site:
    """The sandbox as its parts see it: what is, what is broken on purpose, and who carries the news."""

    state: State
    faults: Faults
    courier: Courier


def send_event(site: Site, repo: Repository, event: str, sender: str, payload: Json) -> None:
    """Send the event to the App if it is installed on the repository."""
    installation = site.state.installation_of(repo)
    if installation is None or installation.suspended_at:
        return
    envelope: Json = {
        "repository": shapes.repository(site.state, repo),
        "sender": shapes.user_shape(site.state, sender),
        "installation": {"id": installation.id, "node_id": shapes.node_id("MDI", installation.id)},
    }
    owner = site.state.users[repo.owner]
    if owner.kind == "Organization":
        envelope["organization"] = organization_shape(site.state, owner.login)
    site.courier.send(event, envelope | payload, installation_id=installation.id, repository_id=repo.id)


def organization_shape(state: State, login: str) -> Json:
    api = f"{state.base_url}/orgs/{login}"
    links = {"repos": "/repos", "events": "/events", "hooks": "/hooks", "issues": "/issues"}
    members = {"members": "/members{/member}", "public_members": "/public_members{/member}"}
    return {
        "login": login,
        "id": state.users[login].id,
        "node_id": shapes.node_id("O", state.users[login].id),
        "url": api,
        "avatar_url": f"{state.base_url}/_sandbox/avatar/{login}",
        "description": None,
        **{f"{name}_url": api + path for name, path in (links | members).items()},
    }


def send_ping(site: Site) -> None:
    hook = site.state.hook
    config = {"content_type": "json", "insecure_ssl": "0", "url": hook.url or "", "secret": "********"}
    created = shapes.format_time(site.state.app.created_at)
    shape: Json = {
        "type": "App",
        "id": hook.id,
        "name": "web",
        "active": True,
        "app_id": site.state.app.id,
        "events": list(APP_EVENTS),
        "config": config,
        "created_at": created,
        "updated_at": created,
        "deliveries_url": f"{site.state.base_url}/app/hook/deliveries",
    }
    site.courier.send("ping", {"zen": "Keep it logically awesome.", "hook_id": hook.id, "hook": shape})


def installation_created(site: Site, installation: Installation, repo: Repository) -> None:
    """Announce that the App was installed on an account, or that its installation got another repository."""
    if installation.repositories == {repo.full_name}:
        installation_changed(site, installation, "created")
    else:
        repositories_changed(site, installation, "added", repo)


def installation_changed(site: Site, installation: Installation, action: str) -> None:
    items = [_short_repository(site.state.repositories[name]) for name in sorted(installation.repositories)]
    payload: Json = {"action": action, "repositories": items}
    payload |= {"requester": None} if action == "created" else {}
    _send_installation(site, installation, "installation", payload)


def repositories_changed(site: Site, installation: Installation, action: str, repo: Repository) -> None:
    lists: dict[str, list[Json]] = {"repositories_added": [], "repositories_removed": []}
    lists[f"repositories_{action}"] = [_short_repository(repo)]
    change_fields = {"action": action, "requester": None, "repository_selection": "selected"}
    _send_installation(site, installation, "installation_repositories", change_fields | lists)


def _send_installation(site: Site, installation: Installation, event: str, payload: Json) -> None:
    who = {"sender": shapes.user_shape(site.state, installation.account)}
    full_payload = {"installation": shapes.installation_shape(site.state, installation)} | who | payload
    site.courier.send(event, full_payload, installation_id=installation.id)


def _short_repository(repo: Repository) -> Json:
    return {
        "id": repo.id,
        "node_id": shapes.node_id("R", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.private,
    }


def pull_request(
    site: Site, repo: Repository, pull: PullRequest, action: str, sender: str, extra: Json | None = None
) -> None:
    shape = shapes_pulls.full_pull(site.state, repo, pull)
    payload = {"action": action, "number": pull.number, "pull_request": shape} | (extra or {})
    send_event(site, repo, "pull_request", sender, payload)


def merge_group(site: Site, repo: Repository, group: MergeGroup, action: str, sender: str, reason: str = "") -> None:
    commit = repos.read_commit(site.state.git(repo.full_name), group.head_sha)
    people = {"author": commit.author, "committer": commit.committer}
    head = {
        "id": commit.sha,
        "tree_id": commit.tree,
        "message": commit.message,
        "timestamp": commit.committer_date.isoformat(),
        **{role: {"name": person.name, "email": person.email} for role, person in people.items()},
    }
    shape = {"head_sha": group.head_sha, "head_ref": group.head_ref, "base_sha": group.base_sha}
    shape |= {"base_ref": f"refs/heads/{group.base_ref}"}
    payload: Json = {"action": action, "merge_group": {**shape, "head_commit": head}}
    send_event(site, repo, "merge_group", sender, payload | ({"reason": reason} if reason else {}))


def announce_review(site: Site, repo: Repository, pull: PullRequest, item: Review, action: str, sender: str) -> None:
    """Announce that a review was submitted or dismissed; its state is in lower case here."""
    shape = shapes_pulls.review_shape(site.state, repo, item)
    payload = {
        "action": action,
        "review": shape | {"state": item.state.lower(), "updated_at": shape["submitted_at"]},
        "pull_request": shapes_pulls.pull_shape(site.state, repo, pull),
    }
    send_event(site, repo, "pull_request_review", sender, payload)


def issue_comment(
    site: Site, repo: Repository, item: Comment, action: str, sender: str, was: str | None = None
) -> None:
    payload: Json = {
        "action": action,
        "issue": shapes_issues.issue(site.state, repo, repo.issues[item.number]),
        "comment": shapes_issues.comment_shape(site.state, repo, item),
    }
    payload |= {"changes": {"body": {"from": was}}} if action == "edited" else {}
    send_event(site, repo, "issue_comment", sender, payload)


def check_run(site: Site, repo: Repository, run: CheckRun, action: str, sender: str, identifier: str = "") -> None:
    payload: Json = {"action": action, "check_run": shapes_checks.webhook_run(site.state, repo, run)}
    payload |= {"requested_action": {"identifier": identifier}} if identifier else {}
    send_event(site, repo, "check_run", sender, payload)


def check_suite(site: Site, repo: Repository, suite: CheckSuite, action: str, sender: str) -> None:
    payload = {"action": action, "check_suite": shapes_checks.webhook_suite(site.state, repo, suite)}
    send_event(site, repo, "check_suite", sender, payload)


def announce_push(site: Site, repo: Repository, ref: str, before: str, after: str, sender: str) -> None:
    state, folder = site.state, site.state.git(repo.full_name)
    created, deleted = before == repos.ZERO_SHA, after == repos.ZERO_SHA
    commits = [_push_commit(state, repo, commit) for commit in _new_commits(site, repo, before, after)]
    page = shapes.html_url(state, repo)
    stamp = {name: int(getattr(repo, name).timestamp()) for name in ("created_at", "pushed_at")}
    head = commits[-1] if commits else None
    if head is None and not deleted:
        head = _push_commit(state, repo, repos.read_commit(folder, after))
    owner = shapes.user_shape(state, repo.owner) | {"name": repo.owner, "email": state.users[repo.owner].email}
    shape = shapes.repository(state, repo) | stamp | {"owner": owner, "url": page, "stargazers": 0}
    payload = {
        "ref": ref,
        "before": before,
        "after": after,
        "base_ref": None,
        "created": created,
        "deleted": deleted,
        "forced": not created and not deleted and not repos.is_ancestor(folder, before, after),
        "compare": f"{page}/compare/{before[:12]}...{after[:12]}",
        "commits": commits,
        "head_commit": head,
        "pusher": {"name": sender, "email": state.users[sender].email},
        "repository": shape | {"master_branch": repo.default_branch},
    }
    send_event(site, repo, "push", sender, payload)


def _new_commits(site: Site, repo: Repository, before: str, after: str) -> list[Commit]:
    if after == repos.ZERO_SHA:
        return []
    folder = site.state.git(repo.full_name)
    base_sha = repos.find_tip(folder, repo.default_branch) if before == repos.ZERO_SHA else before
    newest = repos.list_commits(folder, f"--max-count={MOST_COMMITS}", after, *([f"^{base_sha}"] if base_sha else []))
    return newest[::-1]


def _push_commit(state: State, repo: Repository, commit: Commit) -> Json:
    folder = state.git(repo.full_name)
    parent = commit.parents[0] if commit.parents else shapes_pulls.empty_tree(folder)
    changes = diff_files(folder, parent, commit.sha)
    people = {"author": commit.author, "committer": commit.committer}
    names = {role: {"name": person.name, "email": person.email} for role, person in people.items()}
    for role, person in people.items():
        if login := shapes_pulls.login_of(state, person.email):
            names[role]["username"] = login
    kinds = {"added": "added", "removed": "removed"}
    touched: dict[str, list[str]] = {"added": [], "removed": [], "modified": []}
    for change in changes:
        touched[kinds.get(change.status, "modified")].append(change.filename)
    return {
        "id": commit.sha,
        "tree_id": commit.tree,
        "distinct": True,
        "message": commit.message,
        "timestamp": commit.committer_date.isoformat(),
        "url": f"{shapes.html_url(state, repo)}/commit/{commit.sha}",
        **names,
        **touched,
    }
