"""What can be done with a pull request: open, edit, label, merge, close, reopen."""

from pathlib import Path
from typing import get_args

from mergeplan_sandbox import webhooks
from mergeplan_sandbox.api import shapes_issues, shapes_pulls
from mergeplan_sandbox.api.limits import (
    LABEL_NAME,
    ApiError,
    check_issue,
    check_length,
    field_error,
    one_of,
    require_text,
)
from mergeplan_sandbox.git import pushes, repos
from mergeplan_sandbox.git.repos import GitError, Person
from mergeplan_sandbox.state import Issue, Json, Label, MergeMethod, PullRequest, Repository, now
from mergeplan_sandbox.webhooks import Site

MERGE_METHODS = get_args(MergeMethod)


def open_pull(site: Site, repo: Repository, author: str, body: Json) -> PullRequest:
    """Open a pull request from `head` (`branch` or `owner:branch`) into `base`."""
    title, base, head = (require_text("PullRequest", body, field) for field in ("title", "base", "head"))
    check_issue("PullRequest", body)
    source, branch = _find_source(site, repo, head)
    head_sha = repos.list_refs(site.state.git(source.full_name)).get(f"refs/heads/{branch}")
    base_sha = repos.list_refs(site.state.git(repo.full_name)).get(f"refs/heads/{base}")
    if head_sha is None:
        raise field_error("PullRequest", "head", "head is not a branch", "invalid")
    if base_sha is None:
        raise field_error("PullRequest", "base", "base is not a branch", "invalid")
    for pull in repo.pulls:
        if (pull.state, pull.head_repository, pull.head_ref, pull.base_ref) == ("open", source.full_name, branch, base):
            raise field_error("PullRequest", "head", f"A pull request already exists for {source.owner}:{branch}.")
    pull = PullRequest(
        id=site.state.next_id(),
        number=next_number(repo),
        title=title,
        body=body.get("body") or "",
        author=author,
        created_at=now(),
        updated_at=now(),
        head_repository=source.full_name,
        head_ref=branch,
        head_sha=head_sha,
        base_ref=base,
        base_sha=base_sha,
        draft=bool(body.get("draft")),
    )
    pushes.refresh_pull(site, repo, pull)
    if repos.is_ancestor(site.state.git(repo.full_name), head_sha, base_sha):
        raise field_error("PullRequest", "head", f"No commits between {base} and {branch}")
    repo.issues[pull.number] = pull
    webhooks.pull_request(site, repo, pull, "opened", author)
    return pull


def next_number(repo: Repository) -> int:
    """Return the next number; issues and pull requests share one sequence."""
    return max(repo.issues, default=0) + 1


def _find_source(site: Site, repo: Repository, head: str) -> tuple[Repository, str]:
    owner, _, branch = head.rpartition(":")
    for candidate in site.state.repositories.values():
        if owner == candidate.owner and repo.full_name in (candidate.full_name, candidate.fork_of):
            return candidate, branch
    if owner:
        raise field_error("PullRequest", "head", "head is not in a fork of this repository", "invalid")
    return repo, branch


def edit_issue(site: Site, repo: Repository, item: Issue, sender: str, body: Json) -> None:
    check_issue("PullRequest", body)
    changes: Json = {}
    for field in ("title", "body"):
        if body.get(field) is not None and body[field] != getattr(item, field):
            changes[field] = {"from": getattr(item, field)}
            setattr(item, field, body[field])
    if isinstance(item, PullRequest) and body.get("base") not in (None, item.base_ref):
        base = body["base"]
        sha = repos.list_refs(site.state.git(repo.full_name)).get(f"refs/heads/{base}")
        if sha is None or item.state != "open":
            raise field_error("PullRequest", "base", "base is not a branch", "invalid")
        changes["base"] = pushes.change_base(site, repo, item, base)
    item.updated_at = now()
    if changes and isinstance(item, PullRequest):
        webhooks.pull_request(site, repo, item, "edited", sender, {"changes": changes})


def close_issue(site: Site, repo: Repository, item: Issue, sender: str) -> None:
    """Close an issue or pull request; closing it twice changes nothing."""
    if item.state == "closed":
        return
    if isinstance(item, PullRequest):
        pushes.close_pull(site, repo, item, sender)
    else:
        item.state, item.closed_at = "closed", now()


def reopen_issue(site: Site, repo: Repository, item: Issue, sender: str) -> None:
    """Reopen an issue, or a pull request that is not merged and whose branch still exists."""
    if isinstance(item, PullRequest):
        branches = repos.list_refs(site.state.git(item.head_repository))
        head = branches.get(f"refs/heads/{item.head_ref}")
        if item.merged_at or head is None:
            raise field_error("PullRequest", "state", "state cannot be changed. The branch was merged or deleted.")
        item.head_sha = head
        pushes.refresh_pull(site, repo, item)
    item.state, item.closed_at, item.updated_at = "open", None, now()
    if isinstance(item, PullRequest):
        webhooks.pull_request(site, repo, item, "reopened", sender)


def add_label(site: Site, repo: Repository, item: Issue, name: str, sender: str) -> None:
    """Add a label; create it if the repository has none of that name."""
    check_length("Label", "name", name, LABEL_NAME)
    stored_label = repo.labels.setdefault(name, Label(site.state.next_id(), name))
    if name not in item.labels:
        item.labels.append(name)
        _labels_changed(site, repo, item, stored_label, "labeled", sender)


def remove_label(site: Site, repo: Repository, item: Issue, name: str, sender: str) -> None:
    """Remove a label; answer 404 if the issue does not have it."""
    if name not in item.labels:
        raise ApiError(404, "Label does not exist")
    item.labels.remove(name)
    _labels_changed(site, repo, item, repo.labels[name], "unlabeled", sender)


def _labels_changed(site: Site, repo: Repository, item: Issue, changed_label: Label, action: str, sender: str) -> None:
    item.updated_at = now()
    if isinstance(item, PullRequest):
        shape = shapes_issues.label_shape(site.state, repo, changed_label)
        webhooks.pull_request(site, repo, item, action, sender, {"label": shape})


def merge_pull(site: Site, repo: Repository, pull: PullRequest, sender: str, body: Json) -> str:
    """Merge a pull request and return the new commit.

    Answer 409 if the head is not `sha` any more and 405 if it cannot be merged.
    """
    method: MergeMethod = body.get("merge_method") or "merge"
    one_of("PullRequest", "merge_method", method, MERGE_METHODS)
    if body.get("sha") not in (None, pull.head_sha):
        raise ApiError(409, "Head branch was modified. Review and try the merge again.")
    check_mergeable(repo, pull)
    folder = site.state.git(repo.full_name)
    old_tip = repos.find_tip(folder, pull.base_ref)
    assert old_tip is not None  # a pull request whose base is deleted is closed
    new_tip = commit_merge(folder, pull, old_tip, pushes.find_person(site.state, sender), method, body)
    repos.set_ref(folder, f"refs/heads/{pull.base_ref}", new_tip)
    conclude_merge(pull, sender, new_tip, old_tip)
    pushes.close_pull(site, repo, pull, sender)
    pushes.notify_push(site, repo, pull.base_ref, old_tip, new_tip, sender)
    return new_tip


def conclude_merge(pull: PullRequest, sender: str, tip: str, onto: str) -> None:
    pull.merged_at, pull.merged_by, pull.merge_commit_sha, pull.merged_onto = now(), sender, tip, onto


def check_mergeable(repo: Repository, pull: PullRequest) -> None:
    if pull.state != "open" or pull.draft or not pull.mergeable:
        raise ApiError(405, "Pull Request is not mergeable")
    if missing := shapes_pulls.missing_checks(repo, pull):
        raise ApiError(405, f'Required status check "{missing[0]}" is expected.')


def commit_merge(folder: Path, pull: PullRequest, base: str, author: Person, method: MergeMethod, body: Json) -> str:
    if method == "rebase":
        try:
            return repos.rebase_commits(folder, base, pull.head_sha, author)
        except GitError as error:
            raise ApiError(405, "This branch can't be rebased") from error
    tree = repos.merge_trees(folder, base, pull.head_sha)
    if tree is None:
        raise ApiError(405, "Pull Request is not mergeable")
    head_owner = pull.head_repository.split("/")[0]
    squash = method == "squash"
    usual = (
        f"{pull.title} (#{pull.number})"
        if squash
        else f"Merge pull request #{pull.number} from {head_owner}/{pull.head_ref}"
    )
    text = f"{body.get('commit_title') or usual}\n\n{body.get('commit_message') or pull.title}\n"
    parents = (base,) if squash else (base, pull.head_sha)
    return repos.commit_tree(folder, tree, parents, text, author)


def revert_pull(site: Site, repo: Repository, pull: PullRequest, sender: str, body: Json) -> PullRequest:
    """Open a pull request that reverts a merged one, from `revert-NUMBER-BRANCH`; answer 422 if git cannot."""
    folder = site.state.git(repo.full_name)
    tip, merge_sha = repos.find_tip(folder, pull.base_ref), pull.merge_commit_sha
    if pull.merged_at is None or merge_sha is None:
        raise ApiError(422, "The pull request is not merged, so it cannot be reverted.")
    parent_commit = repos.read_commit(folder, pull.merged_onto or repos.read_commit(folder, merge_sha).parents[0])
    who, text = pushes.find_person(site.state, sender), f'Revert "{pull.title}"\n\nThis reverts commit {merge_sha}.\n'
    back = repos.commit_tree(folder, parent_commit.tree, (merge_sha,), text, who)  # merged into what has come since
    tree = repos.merge_trees(folder, tip, back) if tip else None
    if tip is None or tree is None or tree == repos.read_commit(folder, tip).tree:
        raise ApiError(422, "Sorry, this pull request couldn't be reverted automatically.")
    title = body.get("title") or f'Revert "{pull.title}"'
    sha = repos.commit_tree(folder, tree, (tip,), text, who)
    branch = _free_branch(folder, f"revert-{pull.number}-{pull.head_ref}")
    pushes.point_branch(site, repo, branch, sha, sender)
    about = body.get("body") or f"Reverts {repo.full_name}#{pull.number}"
    made = {"title": title, "body": about, "head": branch, "base": pull.base_ref, "draft": body.get("draft")}
    return open_pull(site, repo, sender, made)


def _free_branch(folder: Path, name: str) -> str:
    taken = {ref.removeprefix("refs/heads/") for ref in repos.list_refs(folder)}
    names = (name, *(f"{name}-{number}" for number in range(1, len(taken) + 1)))
    return next(candidate for candidate in names if candidate not in taken)
