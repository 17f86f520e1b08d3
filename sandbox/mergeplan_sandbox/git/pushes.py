"""What a push does: branches move, pull requests follow, the App hears of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan_sandbox import webhooks
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.git.repos import ZERO_SHA, Person
from mergeplan_sandbox.state import Json, PullRequest, Repository, State, now
from mergeplan_sandbox.webhooks import Site

Files = Mapping[str, str | bytes | None]


def find_person(state: State, login: str) -> Person:
    user = state.users[login]
    return Person(user.name, user.email)


@dataclass(frozen=True)
class Change:
    """The files of a commit; a file of None is deleted."""

    files: Files
    message: str
    author: str


def push_commit(site: Site, repo: Repository, branch: str, change: Change, *, force: bool = False) -> str:
    """Push one commit onto the branch; a new or a forced branch starts from the default branch's tip."""
    folder = site.state.git(repo.full_name)
    if not repos.valid_branch(branch):
        raise ApiError(422, f"{branch!r} is not a branch name")
    old_sha = repos.list_refs(folder).get(f"refs/heads/{branch}")
    parent = repos.find_tip(folder, repo.default_branch) if force or old_sha is None else old_sha
    author = find_person(site.state, change.author)
    new_sha = repos.commit_files(folder, branch, change.files, change.message, author, parent)
    notify_push(site, repo, branch, old_sha or ZERO_SHA, new_sha, change.author)
    return new_sha


def point_branch(site: Site, repo: Repository, branch: str, sha: str | None, pusher: str) -> None:
    """Create, move or delete a branch."""
    folder = site.state.git(repo.full_name)
    old_sha = repos.list_refs(folder).get(f"refs/heads/{branch}")
    if old_sha != sha:
        repos.set_ref(folder, f"refs/heads/{branch}", sha)
        notify_push(site, repo, branch, old_sha or ZERO_SHA, sha or ZERO_SHA, pusher)


def receive_push(site: Site, repo: Repository, before: Mapping[str, str], pusher: str) -> None:
    new_refs = repos.list_refs(site.state.git(repo.full_name))
    for ref in sorted(before.keys() | new_refs.keys()):
        if before.get(ref) != new_refs.get(ref):
            branch = ref.removeprefix("refs/heads/")
            notify_push(site, repo, branch, before.get(ref, ZERO_SHA), new_refs.get(ref, ZERO_SHA), pusher)


def notify_push(site: Site, repo: Repository, branch: str, before: str, after: str, pusher: str) -> None:
    """Announce the push, then update every pull request that it changed."""
    repo.pushed_at = now()
    webhooks.announce_push(site, repo, f"refs/heads/{branch}", before, after, pusher)
    for base in list(site.state.repositories.values()):
        for pull in base.pulls:
            if pull.state != "open":
                continue
            if pull.head_repository == repo.full_name and pull.head_ref == branch:
                _head_moved(site, base, pull, after, pusher)
            elif base is repo and pull.base_ref == branch:
                _base_moved(site, base, pull, after, pusher)


def _head_moved(site: Site, repo: Repository, pull: PullRequest, after: str, pusher: str) -> None:
    if after == ZERO_SHA:
        close_pull(site, repo, pull, pusher)
        return
    old_head, pull.head_sha = pull.head_sha, after
    pull.updated_at = now()
    refresh_pull(site, repo, pull)
    pull.base_sha = repos.find_tip(site.state.git(repo.full_name), pull.base_ref) or pull.base_sha
    webhooks.pull_request(site, repo, pull, "synchronize", pusher, {"before": old_head, "after": after})


def _base_moved(site: Site, repo: Repository, pull: PullRequest, after: str, pusher: str) -> None:
    # GitHub leaves `base.sha` as it was at the last change of the head; only mergeability follows the base.
    if after == ZERO_SHA:
        merged_into = next((p.base_ref for p in repo.pulls if p.merged_at and p.head_ref == pull.base_ref), None)
        if merged_into is None:
            close_pull(site, repo, pull, pusher)
        else:  # as when the branch of a merged pull request is deleted by its button
            retarget_pull(site, repo, pull, merged_into, pusher)
    elif repos.is_ancestor(site.state.git(repo.full_name), pull.head_sha, after):
        pull.merged_at, pull.merged_by, pull.merge_commit_sha = now(), pusher, pull.head_sha
        close_pull(site, repo, pull, pusher)
    else:
        refresh_pull(site, repo, pull)


def retarget_pull(site: Site, repo: Repository, pull: PullRequest, base: str, sender: str) -> None:
    changes = change_base(site, repo, pull, base)
    pull.updated_at = now()
    webhooks.pull_request(site, repo, pull, "edited", sender, {"changes": {"base": changes}})


def change_base(site: Site, repo: Repository, pull: PullRequest, base: str) -> Json:
    """Give a pull request another base branch, and return what it was as a webhook says it."""
    old_base = {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}
    pull.base_ref, pull.base_sha = base, repos.find_tip(site.state.git(repo.full_name), base) or pull.base_sha
    refresh_pull(site, repo, pull)
    return old_base


def refresh_pull(site: Site, repo: Repository, pull: PullRequest) -> None:
    """Update `refs/pull/N/head`, `refs/pull/N/merge` and the mergeability."""
    folder = site.state.git(repo.full_name)
    prefix = f"refs/pull/{pull.number}"
    if pull.head_repository != repo.full_name:
        repos.fetch_commit(folder, site.state.git(pull.head_repository), pull.head_sha, f"{prefix}/head")
    else:
        repos.set_ref(folder, f"{prefix}/head", pull.head_sha)
    base = repos.find_tip(folder, pull.base_ref) or pull.base_sha
    tree = repos.merge_trees(folder, base, pull.head_sha)
    pull.mergeable = tree is not None
    pull.merge_commit_sha = None
    if tree:
        message = f"Merge {pull.head_sha} into {base}"
        pull.merge_commit_sha = repos.commit_tree(
            folder, tree, (base, pull.head_sha), message, find_person(site.state, pull.author)
        )
        repos.set_ref(folder, f"{prefix}/merge", pull.merge_commit_sha)


def close_pull(site: Site, repo: Repository, pull: PullRequest, sender: str) -> None:
    pull.state, pull.closed_at, pull.updated_at = "closed", now(), now()
    webhooks.pull_request(site, repo, pull, "closed", sender)
