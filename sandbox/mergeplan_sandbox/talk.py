"""What people and bots say: issues, comments, reactions, reviews."""

from dataclasses import replace

from mergeplan_sandbox import webhooks
from mergeplan_sandbox.api.limits import (
    COMMENT_BODY,
    REACTIONS,
    ApiError,
    check_comment,
    check_issue,
    check_length,
    field_error,
    one_of,
    require_text,
)
from mergeplan_sandbox.pulls import next_number
from mergeplan_sandbox.state import (
    Comment,
    Issue,
    Json,
    PullRequest,
    Reaction,
    Repository,
    Review,
    ReviewState,
    State,
    now,
)
from mergeplan_sandbox.webhooks import Site

REVIEW_EVENTS: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}


def open_issue(site: Site, repo: Repository, author: str, body: Json) -> Issue:
    check_issue("Issue", body)
    title = require_text("Issue", body, "title")
    issue = Issue(site.state.next_id(), next_number(repo), title, body.get("body") or "", author, now(), now())
    repo.issues[issue.number] = issue
    return issue


def add_comment(site: Site, repo: Repository, number: int, author: str, body: Json, *, by_app: bool = False) -> Comment:
    item = Comment(site.state.next_id(), number, author, check_comment(body), now(), now(), by_app=by_app)
    repo.comments[item.id] = item
    repo.issues[number].updated_at = now()
    webhooks.issue_comment(site, repo, item, "created", author)
    return item


def edit_comment(site: Site, repo: Repository, item: Comment, sender: str, body: Json) -> None:
    """Replace a comment's text; an equal text changes nothing and sends nothing."""
    was, text = item.body, check_comment(body)
    if text != was:
        item.body, item.updated_at, item.edited_at, item.editor = text, now(), now(), sender
        webhooks.issue_comment(site, repo, item, "edited", sender, was)


def delete_comment(site: Site, repo: Repository, item: Comment, sender: str) -> None:
    del repo.comments[item.id]
    webhooks.issue_comment(site, repo, item, "deleted", sender)


def add_reaction(state: State, reactions: list[Reaction], author: str, content: str) -> tuple[Reaction, bool]:
    """Add a reaction and return True with it; return an equal existing one with False."""
    one_of("Reaction", "content", content, REACTIONS)
    for item in reactions:
        if (item.author, item.content) == (author, content):
            return item, False
    reactions.append(Reaction(state.next_id(), author, content, now()))
    return reactions[-1], True


def submit_review(site: Site, repo: Repository, pull: PullRequest, author: str, body: Json) -> Review:
    """Submit a review of the head, or of `commit_id`; refuse to approve or reject one's own pull request."""
    state = REVIEW_EVENTS.get(body.get("event") or "")
    if state is None:
        raise field_error("PullRequestReview", "event", "event must be APPROVE, REQUEST_CHANGES or COMMENT", "invalid")
    check_length("PullRequestReview", "body", body.get("body"), COMMENT_BODY)
    if author == pull.author and state != "COMMENTED":
        raise ApiError(422, "Unprocessable Entity", [{"message": "Can not approve or refuse your own pull request"}])
    if state != "APPROVED":
        require_text("PullRequestReview", body, "body")
    commit_id = body.get("commit_id") or pull.head_sha
    item = Review(site.state.next_id(), pull.number, author, state, body.get("body") or "", commit_id, now())
    pull.reviews.append(item)
    pull.updated_at = now()
    webhooks.announce_review(site, repo, pull, item, "submitted", author)
    return item


def dismiss_review(site: Site, repo: Repository, pull: PullRequest, review_id: int, sender: str) -> Review:
    for index, item in enumerate(pull.reviews):
        if item.id == review_id:
            pull.reviews[index], pull.updated_at = replace(item, state="DISMISSED"), now()
            webhooks.announce_review(site, repo, pull, pull.reviews[index], "dismissed", sender)
            return pull.reviews[index]
    raise ApiError(404, "Not Found")
