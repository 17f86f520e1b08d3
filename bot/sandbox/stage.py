"""The sandbox as Python: set the scene, act in it as a person would, look at what came of it."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, Unpack

from mergeplan.bot.sandbox import check_runs, merges, pulls, queue, stacks, talk, webhooks
from mergeplan.bot.sandbox.access import (
    ACTIONS_LOGIN,
    COMMENT,
    LABEL,
    OPEN_PULL,
    PUSH,
    READ,
    Caller,
    Need,
    issue_token,
    may_edit,
    require_repository,
)
from mergeplan.bot.sandbox.api.calls import find_or_404
from mergeplan.bot.sandbox.api.limits import ApiError
from mergeplan.bot.sandbox.api.shapes_checks import latest_runs
from mergeplan.bot.sandbox.git import pushes, repos
from mergeplan.bot.sandbox.state import (
    APP_PERMISSIONS,
    ApiCall,
    CheckRun,
    Comment,
    Delivery,
    Installation,
    Issue,
    MergeMethod,
    PullRequest,
    Repository,
    ReviewState,
    Role,
    User,
    UserKind,
    now,
)
from mergeplan.bot.sandbox.webhooks import Site

REVIEW_WORDS: dict[ReviewState, str] = {state: word for word, state in talk.REVIEW_EVENTS.items()}


class PullChanges(TypedDict, total=False):
    """What of a pull request is edited."""

    title: str
    body: str
    base: str


class Stage:
    """Every change sends the webhooks that GitHub would send; what a person may not do raises `ApiError`."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.state = site.state
        self.faults = site.faults
        for login in (self.state.app.bot_login, ACTIONS_LOGIN):
            self._new_user(login, kind="Bot")

    # --- setting the scene ---

    def add_user(self, login: str, *, name: str = "", email: str = "", organization: bool = False) -> str:
        """Add a user and return a personal token of theirs; adding one again returns another token."""
        with self.state.lock:
            if login not in self.state.users:
                self._new_user(login, name, email, "Organization" if organization else "User")
            return issue_token(self.state, login, "user").value

    def delete_user(self, login: str) -> None:
        """Delete an account: it may do nothing more, and GitHub shows no author for its comments."""
        with self.state.lock:
            self._require_user(login)
            self.state.gone.add(login)
            self.state.tokens = {key: token for key, token in self.state.tokens.items() if token.login != login}
            for repo in self.state.repositories.values():
                repo.permissions.pop(login, None)

    def create_repository(
        self, full_name: str, files: Mapping[str, str] | Path, *, default_branch: str = "main", private: bool = False
    ) -> None:
        """Create `owner/name` with one commit of those files; add a missing owner, who becomes its admin."""
        with self.state.lock:
            repo = self._new_repository(full_name, default_branch, private=private)
            folder = self.state.git(full_name)
            repos.create_repository(folder, default_branch)
            content = _files_of(files) if isinstance(files, Path) else files
            repos.commit_files(
                folder, default_branch, content, "First commit", pushes.find_person(self.state, repo.owner), None
            )

    def adopt_repositories(self) -> None:
        """Load the repositories that an earlier sandbox left in the folder; only their git data was stored."""
        with self.state.lock:
            for folder in sorted(self.state.folder.glob("*/*.git")):
                branch = repos.git(folder, "symbolic-ref", "--short", "HEAD").strip()
                self._new_repository(f"{folder.parent.name}/{folder.stem}", branch, private=False)

    def fork(self, repository: str, login: str) -> str:
        """Fork the repository to the login and return the fork's full name; commit to it as to any other."""
        with self.state.lock:
            source = self._require_repo(repository, login, READ)
            fork = self._new_repository(f"{login}/{source.name}", source.default_branch, private=source.private)
            fork.fork_of = source.full_name
            repos.clone_repository(self.state.git(repository), self.state.git(fork.full_name), fork.default_branch)
            return fork.full_name

    def set_permission(self, repository: str, login: str, role: Role) -> None:
        """Set the login's permission, valid from the next call on."""
        with self.state.lock:
            self._require_user(login)
            self._find_repository(repository).permissions[login] = role

    def set_team(self, team: str, members: list[str]) -> None:
        with self.state.lock:
            self.state.teams[team] = {self._require_user(login).login for login in members}

    def require_checks(self, repository: str, branch: str, names: list[str]) -> None:
        """Protect a branch: a pull request into it merges only when these checks have succeeded on its head."""
        with self.state.lock:
            self._find_repository(repository).required_checks[branch] = list(names)

    def install_app(self, repository: str, *, webhook_url: str | None = None, secret: str | None = None) -> int:
        """Install the App there and return the installation's id; URL and secret replace the App's own."""
        with self.state.lock:
            hook, repo = self.state.hook, self._find_repository(repository)
            hook.secret = secret or hook.secret
            if webhook_url not in (None, hook.url):
                hook.url = webhook_url
                webhooks.send_ping(self.site)
            item = self.state.installations.get(repo.owner)
            if item is None:
                item = Installation(self.state.next_id(), repo.owner, now())
                self.state.installations[repo.owner] = item
            if repository not in item.repositories:
                item.repositories.add(repository)
                webhooks.installation_created(self.site, item, repo)
            return item.id

    def installation_token(self, repository: str) -> str:
        """Return a token as the App would get from its installation on that repository."""
        with self.state.lock:
            item = self.state.installation_of(self._find_repository(repository))
            if item is None:
                raise ApiError(404, f"The App is not installed on {repository!r}: install_app first")
            login, rights = self.state.app.bot_login, dict(APP_PERMISSIONS)
            return issue_token(self.state, login, "installation", installation_id=item.id, permissions=rights).value

    def suspend_app(self, owner: str, *, is_suspended: bool = True) -> None:
        with self.state.lock:
            item = self._find_installation(owner)
            item.suspended_at = now() if is_suspended else None
            webhooks.installation_changed(self.site, item, "suspend" if is_suspended else "unsuspend")

    def uninstall_app(self, owner: str) -> None:
        """Remove the App from an account and end its tokens; `install_app` creates an installation with another id."""
        with self.state.lock:
            item = self._find_installation(owner)
            del self.state.installations[owner]
            webhooks.installation_changed(self.site, item, "deleted")

    def remove_from_app(self, repository: str) -> None:
        with self.state.lock:
            repo = self._find_repository(repository)
            item = self._find_installation(repo.owner)
            item.repositories.discard(repository)
            webhooks.repositories_changed(self.site, item, "removed", repo)

    def delete_repository(self, repository: str) -> None:
        """Delete a repository from the API without any webhook."""
        with self.state.lock:
            repo = self._find_repository(repository)
            del self.state.repositories[repository]
            if item := self.state.installations.get(repo.owner):
                item.repositories.discard(repository)

    def actions_token(self, repository: str, *, read_only: bool = False) -> str:
        """Return a token as a workflow gets it: login github-actions[bot], this repository only; may write checks.

        On a fork's pull request GitHub gives the event `pull_request` one that only reads.
        """
        with self.state.lock:
            covered = frozenset([repository])
            rights = dict.fromkeys(APP_PERMISSIONS, "read") if read_only else dict(APP_PERMISSIONS)
            return issue_token(self.state, ACTIONS_LOGIN, "actions", repositories=covered, permissions=rights).value

    def clone_url(self, repository: str) -> str:
        """Return `http://HOST/owner/name.git`; private repositories and pushes need basic auth x-access-token:TOKEN."""
        return f"{self.state.base_url}/{repository}.git"

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

    # --- who and where ---

    def _new_user(self, login: str, name: str = "", email: str = "", kind: UserKind = "User") -> None:
        number = self.state.next_id()
        address = email or f"{number}+{login}@users.noreply.localhost"
        self.state.users[login] = User(number, login, name or login, address, kind)

    def _new_repository(self, full_name: str, default_branch: str, *, private: bool) -> Repository:
        owner, slash, name = full_name.partition("/")
        if not slash or full_name in self.state.repositories or not _is_plain_name(owner) or not _is_plain_name(name):
            raise ApiError(422, f"{full_name!r} is not owner/name, or exists already")
        if owner not in self.state.users:
            self._new_user(owner)
        repo = Repository(self.state.next_id(), full_name, default_branch, private, now(), now())
        self.state.repositories[full_name] = repo
        return repo

    def _require_user(self, login: str) -> User:
        if login not in self.state.users or login in self.state.gone:
            raise ApiError(404, f"There is no user {login!r}: add_user first")
        return self.state.users[login]

    def _find_repository(self, repository: str) -> Repository:
        if repository not in self.state.repositories:
            raise ApiError(404, f"There is no repository {repository!r}: create_repository first")
        return self.state.repositories[repository]

    def _find_installation(self, owner: str) -> Installation:
        if owner not in self.state.installations:
            raise ApiError(404, f"The App is not installed for {owner!r}: install_app first")
        return self.state.installations[owner]

    def _require_repo(self, repository: str, login: str, need: Need) -> Repository:
        return require_repository(self.state, Caller(self._require_user(login).login, "user"), repository, need)

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


def _is_plain_name(name: str) -> bool:
    return name.replace("-", "").replace("_", "").replace(".", "").isalnum() and not name.startswith((".", "-"))


def _files_of(folder: Path) -> dict[str, bytes]:
    inside = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in inside}
