"""How GitHub writes pull requests, reviews and changed files as JSON."""

from pathlib import Path

from mergeplan_sandbox.api import shapes, shapes_issues
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.git.diffs import diff_files
from mergeplan_sandbox.git.repos import FileChange
from mergeplan_sandbox.state import Json, PullRequest, Repository, Review, State

PASSED = ("success", "neutral", "skipped")  # conclusions of a check that let a pull request be merged


def _pull_links(state: State, repo: Repository, item: PullRequest) -> dict[str, str]:
    repo_api = shapes.api_url(state, repo)
    api, issue = f"{repo_api}/pulls/{item.number}", f"{repo_api}/issues/{item.number}"
    return {
        "self": api,
        "html": f"{shapes.html_url(state, repo)}/pull/{item.number}",
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{api}/comments",
        "review_comment": f"{repo_api}/pulls/comments{{/number}}",
        "commits": f"{api}/commits",
        "statuses": f"{repo_api}/statuses/{item.head_sha}",
    }


def pull_shape(state: State, repo: Repository, item: PullRequest) -> Json:
    """Return a pull request as lists show it."""
    links = _pull_links(state, repo, item)
    page = links["html"]
    addresses = {name: links[name] for name in ("commits", "review_comments", "review_comment", "comments", "statuses")}
    return {
        "url": links["self"],
        "id": item.id,
        "node_id": shapes.node_id("PR", item.id),
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": links["issue"],
        **{f"{name}_url": address for name, address in addresses.items()},
        "number": item.number,
        "state": item.state,
        "locked": False,
        "title": item.title,
        "user": shapes.author_shape(state, item.author),
        "body": item.body,
        "labels": shapes_issues.label_shapes(state, repo, item),
        **dict.fromkeys(["milestone", "active_lock_reason", "assignee", "auto_merge"]),
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "created_at": shapes.format_time(item.created_at),
        "updated_at": shapes.format_time(item.updated_at),
        "closed_at": shapes.format_time(item.closed_at),
        "merged_at": shapes.format_time(item.merged_at),
        "merge_commit_sha": item.merge_commit_sha,
        "head": _branch_end(state, state.repositories.get(item.head_repository), item.head_ref, item.head_sha),
        "base": _branch_end(state, repo, item.base_ref, item.base_sha),
        "_links": {name: {"href": address} for name, address in links.items()},
        "author_association": shapes.author_association(state, repo, item.author),
        "draft": item.draft,
        "stack": stack_shape(repo, item),
    }


def stack_shape(repo: Repository, item: PullRequest) -> Json | None:
    """Return the place of a pull request in its stack; None for one in no stack. A preview of GitHub's."""
    number = next((number for number, members in repo.stacks.items() if item.number in members), None)
    if number is None:
        return None
    members = repo.stacks[number]
    lowest = repo.issues[members[0]]
    assert isinstance(lowest, PullRequest)
    return {
        "id": lowest.id,
        "number": number,
        "size": len(members),
        "position": members.index(item.number) + 1,
        "base": {"ref": lowest.base_ref, "sha": lowest.base_sha},
    }


def full_pull(state: State, repo: Repository, item: PullRequest) -> Json:
    """Return a pull request as `GET` of it alone shows it, with the numbers that git computes."""
    folder = state.git(repo.full_name)
    start = repos.merge_base(folder, item.base_sha, item.head_sha) or item.base_sha
    changes = diff_files(folder, start, item.head_sha)
    return pull_shape(state, repo, item) | {
        "merged": item.merged_at is not None,
        "merged_by": shapes.user_shape(state, item.merged_by) if item.merged_by else None,
        "mergeable": item.mergeable if item.state == "open" else None,
        "rebaseable": item.mergeable if item.state == "open" else None,
        "mergeable_state": _mergeable_state(repo, item),
        "comments": sum(comment.number == item.number for comment in repo.comments.values()),
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": len(repos.list_commits(folder, f"{start}..{item.head_sha}")),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "changed_files": len(changes),
    }


def _mergeable_state(repo: Repository, item: PullRequest) -> str:
    if item.state != "open":
        return "unknown"
    if not item.mergeable:
        return "dirty"
    if item.draft:
        return "draft"
    return "blocked" if missing_checks(repo, item) else "clean"


def missing_checks(repo: Repository, item: PullRequest) -> list[str]:
    """Return the checks that the base branch, or that of the stack, requires and that have not succeeded."""
    runs = sorted((run for run in repo.checks.values() if run.head_sha == item.head_sha), key=lambda run: run.id)
    passed = {run.name: run.conclusion in PASSED for run in runs}
    stack = stack_shape(repo, item)
    base = stack["base"]["ref"] if stack else item.base_ref
    return [name for name in repo.required_checks.get(base, []) if not passed.get(name)]


def _branch_end(state: State, repo: Repository | None, ref: str, sha: str) -> Json:
    owner = repo.owner if repo else "unknown"
    return {
        "label": f"{owner}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": shapes.user_shape(state, owner),
        "repo": shapes.repository(state, repo) if repo else None,
    }


def minimal_pull(state: State, repo: Repository, item: PullRequest) -> Json:
    """Return a pull request as checks refer to it."""
    head = state.repositories.get(item.head_repository, repo)
    ends = [("head", head, item.head_ref, item.head_sha), ("base", repo, item.base_ref, item.base_sha)]
    return {
        "id": item.id,
        "number": item.number,
        "url": f"{shapes.api_url(state, repo)}/pulls/{item.number}",
        **{
            name: {
                "ref": ref,
                "sha": sha,
                "repo": {"id": where.id, "url": shapes.api_url(state, where), "name": where.name},
            }
            for name, where, ref, sha in ends
        },
    }


def review_shape(state: State, repo: Repository, item: Review) -> Json:
    """Return a review, its state in capitals as in the API (webhooks use lower case)."""
    api = f"{shapes.api_url(state, repo)}/pulls/{item.number}"
    page = f"{shapes.html_url(state, repo)}/pull/{item.number}#pullrequestreview-{item.id}"
    return {
        "id": item.id,
        "node_id": shapes.node_id("PRR", item.id),
        "user": shapes.author_shape(state, item.author),
        "body": item.body,
        "state": item.state,
        "html_url": page,
        "pull_request_url": api,
        "_links": {"html": {"href": page}, "pull_request": {"href": api}},
        "submitted_at": shapes.format_time(item.submitted_at),
        "commit_id": item.commit_id,
        "author_association": shapes.author_association(state, repo, item.author),
    }


def login_of(state: State, email: str) -> str | None:
    return next((user.login for user in state.users.values() if user.email == email), None)


def empty_tree(folder: Path) -> str:
    """Return the empty tree, with which a first commit is compared."""
    return repos.git(folder, "hash-object", "-t", "tree", "-w", "--stdin").strip()


def file_shape(state: State, repo: Repository, change: FileChange, sha: str) -> Json:
    page = shapes.html_url(state, repo)
    shape: Json = {
        "sha": change.sha,
        "filename": change.filename,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{page}/blob/{sha}/{change.filename}",
        "raw_url": f"{page}/raw/{sha}/{change.filename}",
        "contents_url": f"{shapes.api_url(state, repo)}/contents/{change.filename}?ref={sha}",
    }
    shape |= {"patch": change.patch} if change.patch else {}
    return shape | ({"previous_filename": change.previous_filename} if change.previous_filename else {})
