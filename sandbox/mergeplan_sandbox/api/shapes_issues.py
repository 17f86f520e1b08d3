"""How GitHub writes issues, comments, labels and reactions as JSON."""

from mergeplan_sandbox.api import shapes
from mergeplan_sandbox.api.limits import REACTIONS
from mergeplan_sandbox.state import Comment, Issue, Json, Label, PullRequest, Reaction, Repository, State


def label_shape(state: State, repo: Repository, item: Label) -> Json:
    return {
        "id": item.id,
        "node_id": shapes.node_id("LA", item.id),
        "url": f"{shapes.api_url(state, repo)}/labels/{item.name}",
        "name": item.name,
        "color": item.color,
        "description": item.description,
        "default": False,
        "archived_at": None,
        "archived_by": None,
    }


def label_shapes(state: State, repo: Repository, issue: Issue) -> list[Json]:
    return [label_shape(state, repo, repo.labels[name]) for name in issue.labels]


def reaction_shape(state: State, item: Reaction) -> Json:
    return {
        "id": item.id,
        "node_id": shapes.node_id("REA", item.id),
        "user": shapes.author_shape(state, item.author),
        "content": item.content,
        "created_at": shapes.format_time(item.created_at),
    }


def reaction_counts(url: str, items: list[Reaction]) -> Json:
    counts = {content: sum(item.content == content for item in items) for content in REACTIONS}
    return {"url": f"{url}/reactions", "total_count": len(items)} | counts


def comment_shape(state: State, repo: Repository, item: Comment) -> Json:
    """Return a comment; as on GitHub it does not name the commit at which it was written."""
    url = f"{shapes.api_url(state, repo)}/issues/comments/{item.id}"
    kind = "pull" if isinstance(repo.issues[item.number], PullRequest) else "issues"
    return {
        "id": item.id,
        "node_id": shapes.node_id("IC", item.id),
        "url": url,
        "html_url": f"{shapes.html_url(state, repo)}/{kind}/{item.number}#issuecomment-{item.id}",
        "issue_url": f"{shapes.api_url(state, repo)}/issues/{item.number}",
        "user": shapes.author_shape(state, item.author),
        "body": item.body,
        "created_at": shapes.format_time(item.created_at),
        "updated_at": shapes.format_time(item.updated_at),
        "author_association": shapes.author_association(state, repo, item.author),
        "performed_via_github_app": shapes.app_shape(state, item.author) if item.by_app else None,
        "reactions": reaction_counts(url, item.reactions),
    }


def issue(state: State, repo: Repository, item: Issue) -> Json:
    """Return an issue, or a pull request in the form of an issue."""
    url = f"{shapes.api_url(state, repo)}/issues/{item.number}"
    kind = "pull" if isinstance(item, PullRequest) else "issues"
    shape: Json = {
        "id": item.id,
        "node_id": shapes.node_id("I", item.id),
        "url": url,
        "repository_url": shapes.api_url(state, repo),
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "html_url": f"{shapes.html_url(state, repo)}/{kind}/{item.number}",
        "number": item.number,
        "state": item.state,
        "state_reason": None,
        "title": item.title,
        "body": item.body,
        "user": shapes.author_shape(state, item.author),
        "labels": label_shapes(state, repo, item),
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "locked": False,
        "active_lock_reason": None,
        "comments": sum(candidate.number == item.number for candidate in repo.comments.values()),
        "closed_at": shapes.format_time(item.closed_at),
        "created_at": shapes.format_time(item.created_at),
        "updated_at": shapes.format_time(item.updated_at),
        "author_association": shapes.author_association(state, repo, item.author),
        "reactions": reaction_counts(url, item.reactions),
    }
    return shape | (_pull_links(state, repo, item) if isinstance(item, PullRequest) else {})


def _pull_links(state: State, repo: Repository, pull: PullRequest) -> Json:
    page = f"{shapes.html_url(state, repo)}/pull/{pull.number}"
    links = {
        "url": f"{shapes.api_url(state, repo)}/pulls/{pull.number}",
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "merged_at": shapes.format_time(pull.merged_at),
    }
    return {"pull_request": links, "draft": pull.draft}


def merge_event(state: State, repo: Repository, pull: PullRequest) -> Json:
    api, sha = shapes.api_url(state, repo), pull.merge_commit_sha
    return {
        "id": pull.id,
        "node_id": shapes.node_id("ME", pull.id),
        "url": f"{api}/issues/events/{pull.id}",
        "actor": shapes.author_shape(state, pull.merged_by or pull.author),
        "event": "merged",
        "commit_id": sha,
        "commit_url": f"{api}/commits/{sha}",
        "created_at": shapes.format_time(pull.merged_at),
    }
