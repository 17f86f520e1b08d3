"""Asynchronous merges: a request is accepted at once, and done or refused later."""

import uuid

from mergeplan_sandbox import pulls, queue, stacks
from mergeplan_sandbox.api.limits import ApiError, one_of
from mergeplan_sandbox.pulls import MERGE_METHODS
from mergeplan_sandbox.state import Json, MergeRequest, PullRequest, Repository
from mergeplan_sandbox.webhooks import Site

ACTIONS = ("default", "direct_merge", "merge_queue")
CODES = {"pending": 202, "failed": 400}


def request_merge(repo: Repository, pull: PullRequest, sender: str, body: Json) -> tuple[int, Json]:
    """Accept a merge, and return the status and the answer; of what cannot wait, only the state is checked."""
    for name, allowed in (("merge_method", MERGE_METHODS), ("merge_action", ACTIONS)):
        if body.get(name) is not None:
            one_of("PullRequest", name, body[name], allowed)
    waiting = [request for request in repo.merge_requests if request.number == pull.number]
    if waiting and waiting[-1].status == "pending":
        return 409, result_shape(waiting[-1])
    request = MergeRequest(
        str(uuid.uuid4()),
        pull.number,
        sender,
        body.get("sha") or pull.head_sha,
        body.get("merge_method") or "merge",
        body.get("merge_action") or "default",
    )
    if pull.merged_at:
        request.status, request.sha = "merged", pull.merge_commit_sha or ""
    elif any(group.number == pull.number for group in repo.queue):
        request.status = "enqueued"
    elif pull.state != "open" or pull.draft:
        request.status, request.message = "failed", "Pull Request is not mergeable"
    else:
        repo.merge_requests.append(request)
    return CODES.get(request.status, 200), result_shape(request)


def run_merge(site: Site, repo: Repository, request: MergeRequest) -> None:
    """Do what was accepted: merge a pull request, with the layers below it, or put it into the queue."""
    pull = next(pull for pull in repo.pulls if pull.number == request.number)
    try:
        if pull.head_sha != request.head_sha:
            raise ApiError(409, "Head branch was modified. Review and try the merge again.")
        if request.action == "merge_queue":
            queue.enqueue_pull(site, repo, pull, request.sender)
            request.status = "enqueued"
        elif any(pull.number in members for members in repo.stacks.values()):
            request.sha = stacks.merge_stack(site, repo, pull, request.sender, request.method)
            request.status = "merged"
        else:
            body = {"merge_method": request.method}
            request.sha = pulls.merge_pull(site, repo, pull, request.sender, body)
            request.status = "merged"
    except ApiError as error:
        request.status, request.message = "failed", error.message


def result_shape(request: MergeRequest) -> Json:
    details: Json = {"message": request.message or f"The merge is {request.status}."}
    if request.status == "pending":
        details |= {"uuid": request.uuid, "expected_head_sha": request.head_sha}
        details |= {"merge_method": request.method, "merge_action": request.action, "bypass_rules": False}
    elif request.status == "merged":
        details["sha"] = request.sha
    return {"status": request.status, "details": details}
