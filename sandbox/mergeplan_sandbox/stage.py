"""The sandbox as Python: act in its scene as a person would, and look at what came of it."""

import copy
from collections.abc import Mapping
from typing import TypedDict, Unpack

from mergeplan_sandbox import check_runs, merges, pulls, queue, stacks, talk
from mergeplan_sandbox.access import COMMENT, LABEL, OPEN_PULL, PUSH, Caller, may_edit
from mergeplan_sandbox.api.calls import find_or_404
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.api.shapes_checks import latest_runs
from mergeplan_sandbox.git import pushes, repos
from mergeplan_sandbox.scene import Scene
from mergeplan_sandbox.state import (
    ApiCall,
    CheckRun,
    Comment,
    Delivery,
    Issue,
    MergeMethod,
    PullRequest,
    Repository,
    ReviewState,
)

REVIEW_WORDS: dict[ReviewState, str] = {state: word for word, state in talk.REVIEW_EVENTS.items()}


class PullChanges(TypedDict, total=False):
    """What of a pull request is edited."""

    title: str
    body: str
    base: str


class Stage(Scene):
    """Every change sends the webhooks that GitHub would send; what a person may not do raises `ApiError`."""

    # --- acting as a person ---

    def commit(
        self,
        repository: str,
        branch: str,
        files: Mapping[str, str | None],
        message: str,
        *,
        author: str,
    ) -> str:
        """Push one commit (None deletes a file) and return its SHA."""
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            return pushes.push_commit(self.site, repo, branch, pushes.Change(files, message, author))

    def force_push(self, repository: str, branch: str, change: pushes.Change) -> str:
        """Replace a branch by one commit on the default branch's tip and return its SHA."""
        with self.state.lock:
            repo = self._require_repo(repository, change.author, PUSH)
            return pushes.push_commit(self.site, repo, branch, change, force=True)

    def create_branch(self, repository: str, branch: str, source: str, *, author: str) -> None:
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            tip = repos.find_tip(self.state.git(repo.full_name), source)
            pushes.point_branch(self.site, repo, branch, tip, author)

    def delete_branch(self, repository: str, branch: str, *, author: str) -> None:
        """Delete the branch as a push does; open pull requests from or into it are closed.

        Those into the branch of a merged pull request go where that one went.
        """
        with self.state.lock:
            pushes.point_branch(self.site, self._require_repo(repository, author, PUSH), branch, None, author)

    def open_issue(self, repository: str, title: str, body: str = "", *, author: str) -> int:
        """Open a plain issue; comments on it go through `comment` as well."""
        with self.state.lock:
            repo = self._require_repo(repository, author, COMMENT)
            return talk.open_issue(self.site, repo, author, {"title": title, "body": body}).number

    def open_pull_request(
        self,
        repository: str,
        head: str,
        base: str,
        title: str,
        *,
        author: str,
    ) -> int:
        """Open a pull request from `head` (`branch` or `owner:branch`) and return its number.

        As in a commit's message, the text after the title and an empty line is its body.
        """
        with self.state.lock:
            repo = self._require_repo(repository, author, OPEN_PULL)
            first, _, body = title.partition("\n\n")
            request_body = {"title": first, "body": body, "head": head, "base": base}
            return pulls.open_pull(self.site, repo, author, request_body).number

    def edit_pull_request(
        self,
        repository: str,
        number: int,
        *,
        author: str,
        **changes: Unpack[PullChanges],
    ) -> None:
        """Change title, body or base branch of a pull request: one's own, or any with write permission."""
        if unknown := changes.keys() - PullChanges.__optional_keys__:
            raise TypeError(f"A pull request has no {min(unknown)!r} to edit.")
        with self.state.lock:
            repo, item = self._own_issue(repository, number, author)
            pulls.edit_issue(self.site, repo, item, author, dict(changes))

    def label(self, repository: str, number: int, name: str, *, author: str, remove: bool = False) -> None:
        with self.state.lock:
            repo = self._require_repo(repository, author, LABEL)
            change = pulls.remove_label if remove else pulls.add_label
            change(self.site, repo, self._require_issue(repo, number), name, author)

    def comment(self, repository: str, number: int, body: str, *, author: str) -> int:
        with self.state.lock:
            repo = self._require_repo(repository, author, COMMENT)
            return talk.add_comment(
                self.site, repo, self._require_issue(repo, number).number, author, {"body": body}
            ).id

    def edit_comment(self, repository: str, comment_id: int, body: str, *, author: str) -> None:
        """Edit a comment: one's own, or any with write permission (a task-list box is ticked this way)."""
        with self.state.lock:
            repo, item = self._own_comment(repository, comment_id, author)
            talk.edit_comment(self.site, repo, item, author, {"body": body})

    def delete_comment(self, repository: str, comment_id: int, *, author: str) -> None:
        with self.state.lock:
            repo, item = self._own_comment(repository, comment_id, author)
            talk.delete_comment(self.site, repo, item, author)

    def react(self, repository: str, comment_id: int, content: str, *, author: str) -> None:
        """Add a reaction (`+1`, `eyes`, `rocket`, `confused`, ...) to a comment."""
        with self.state.lock:
            repo = self._require_repo(repository, author, COMMENT)
            talk.add_reaction(self.state, find_or_404(repo.comments, str(comment_id)).reactions, author, content)

    def review(self, repository: str, number: int, state: ReviewState, *, author: str, body: str = "") -> int:
        with self.state.lock:
            repo = self._require_repo(repository, author, OPEN_PULL)
            request_body = {"event": REVIEW_WORDS.get(state), "body": body or state}
            return talk.submit_review(self.site, repo, self._require_pull(repository, number), author, request_body).id

    def dismiss_review(self, repository: str, number: int, review_id: int, *, author: str) -> None:
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            talk.dismiss_review(self.site, repo, self._require_pull(repository, number), review_id, author)

    def merge(self, repository: str, number: int, *, author: str, method: MergeMethod = "merge") -> str:
        """Merge a pull request as the button does and return the new SHA of the base branch."""
        with self.state.lock:
            repo, pull = self._require_repo(repository, author, PUSH), self._require_pull(repository, number)
            return pulls.merge_pull(self.site, repo, pull, author, {"merge_method": method})

    def stack(self, repository: str, *numbers: int, author: str) -> int:
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            return stacks.create_stack(repo, [self._require_pull(repository, number) for number in numbers])

    def merge_stack(self, repository: str, number: int, *, author: str, method: MergeMethod = "merge") -> str:
        with self.state.lock:
            repo, pull = self._require_repo(repository, author, PUSH), self._require_pull(repository, number)
            return stacks.merge_stack(self.site, repo, pull, author, method)

    def request_merge(self, repository: str, number: int, *, author: str, action: str = "default") -> str:
        """Request an asynchronous merge and return the state of the request; `run_merge` does what was accepted."""
        with self.state.lock:
            repo, pull = self._require_repo(repository, author, PUSH), self._require_pull(repository, number)
            return str(merges.request_merge(repo, pull, author, {"merge_action": action})[1]["status"])

    def run_merge(self, repository: str, number: int) -> str:
        """Do the newest accepted merge of a pull request, in any order, and return its state."""
        with self.state.lock:
            repo = self._find_repository(repository)
            request = next(request for request in reversed(repo.merge_requests) if request.number == number)
            merges.run_merge(self.site, repo, request)
            return request.status

    def enqueue(self, repository: str, number: int, *, author: str, jump: bool = False) -> str:
        """Put a pull request into the merge queue, at its end or (jump) before all others; return its group's head."""
        with self.state.lock:
            repo, pull = self._require_repo(repository, author, PUSH), self._require_pull(repository, number)
            return queue.enqueue_pull(self.site, repo, pull, author, jump=jump).head_sha

    def dequeue(self, repository: str, number: int, *, author: str) -> None:
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            group = next(group for group in repo.queue if group.number == number)
            queue.dequeue_group(self.site, repo, group, author)

    def advance_queue(self, repository: str, *, author: str) -> list[int]:
        """Merge the groups whose checks passed and return the numbers; a group that failed leaves the queue."""
        with self.state.lock:
            return queue.advance_queue(self.site, self._require_repo(repository, author, PUSH), author)

    def close(self, repository: str, number: int, *, author: str) -> None:
        """Close a pull request or issue: one's own, or any with write permission."""
        with self.state.lock:
            pulls.close_issue(self.site, *self._own_issue(repository, number, author), author)

    def reopen(self, repository: str, number: int, *, author: str) -> None:
        with self.state.lock:
            pulls.reopen_issue(self.site, *self._own_issue(repository, number, author), author)

    def rerequest(self, repository: str, check_run_id: int, *, author: str) -> None:
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            check_runs.rerequest_run(self.site, repo, find_or_404(repo.checks, str(check_run_id)), author)

    def rerequest_suite(self, repository: str, sha: str, *, author: str) -> None:
        """Press *Re-run all checks* of a commit."""
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            for suite in [suite for suite in repo.suites.values() if suite.head_sha == sha]:
                check_runs.rerequest_suite(self.site, repo, suite, author)

    def click(self, repository: str, check_run_id: int, identifier: str, *, author: str) -> None:
        with self.state.lock:
            repo = self._require_repo(repository, author, PUSH)
            check_runs.press_button(self.site, repo, find_or_404(repo.checks, str(check_run_id)), identifier, author)

    # --- looking: what is returned is a copy of that moment ---

    def pull_request(self, repository: str, number: int) -> PullRequest:
        with self.state.lock:
            return copy.deepcopy(self._require_pull(repository, number))

    def comments(self, repository: str, number: int) -> list[Comment]:
        """Return the comments of an issue or pull request, oldest first, with their reactions."""
        with self.state.lock:
            stored_comments = self._find_repository(repository).comments.values()
            return copy.deepcopy([item for item in stored_comments if item.number == number])

    def checks(self, repository: str, sha: str) -> dict[str, CheckRun]:
        """Return the latest run of each check name on that commit."""
        with self.state.lock:
            runs = self._find_repository(repository).checks.values()
            return copy.deepcopy(latest_runs([run for run in runs if run.head_sha == sha]))

    def head(self, repository: str, branch: str = "main") -> str:
        return repos.list_refs(self.state.git(repository))[f"refs/heads/{branch}"]

    def read(self, repository: str, path: str, ref: str = "main") -> str:
        entry = repos.read_blob(self.state.git(repository), ref, path)
        assert entry is not None, f"{repository} has no {path} at {ref}"
        return entry[1].decode()

    @property
    def calls(self) -> list[ApiCall]:
        """Every API call so far: method, path, status, and whose token it was."""
        with self.state.lock:
            return list(self.state.calls)

    @property
    def deliveries(self) -> list[Delivery]:
        """Every webhook attempt so far, oldest first, with its payload."""
        with self.state.lock:
            return list(self.state.deliveries)

    def redeliver(self, delivery_id: int) -> None:
        """Send a logged webhook again, with the same GUID."""
        with self.state.lock:
            chosen = next(item for item in self.state.deliveries if item.id == delivery_id)
            self.site.courier.redeliver(chosen)

    def wait_idle(self, timeout: float = 10.0) -> None:
        """Wait until no webhook is pending, after releasing held ones; raise TimeoutError after `timeout` seconds."""
        self.site.courier.wait_idle(timeout)

    # --- whose ---

    def _require_issue(self, repo: Repository, number: int) -> Issue:
        return find_or_404(repo.issues, str(number))

    def _require_pull(self, repository: str, number: int) -> PullRequest:
        item = self._require_issue(self._find_repository(repository), number)
        if not isinstance(item, PullRequest):
            raise ApiError(404, f"{repository}#{number} is an issue")
        return item

    def _own_issue(self, repository: str, number: int, login: str) -> tuple[Repository, Issue]:
        repo = self._require_repo(repository, login, COMMENT)
        item = self._require_issue(repo, number)
        if not may_edit(self.state, repo, Caller(login, "user"), item.author):
            raise ApiError(403, "Must have write access to this repository.")
        return repo, item

    def _own_comment(self, repository: str, comment_id: int, login: str) -> tuple[Repository, Comment]:
        repo = self._require_repo(repository, login, COMMENT)
        item = find_or_404(repo.comments, str(comment_id))
        if not may_edit(self.state, repo, Caller(login, "user"), item.author):
            raise ApiError(403, "Must have write access to this repository.")
        return repo, item
