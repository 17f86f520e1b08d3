"""The gateway to GitHub: the few verbs that the bot uses, patient on reads, never twice on writes."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from github import Consts

from mergeplan.bot.forge.events import Delivery, InvalidDelivery
from mergeplan.bot.forge.failures import ForgeFailed, NameReused, OwnerUnavailable
from mergeplan.bot.github import events
from mergeplan.bot.github.calls import Calls
from mergeplan.bot.github.check_runs import CheckRuns
from mergeplan.bot.github.comments import Comments
from mergeplan.bot.github.deployments import Deployments
from mergeplan.bot.github.merges import Merges
from mergeplan.bot.github.owners import OwnerConnection, Owners
from mergeplan.bot.github.patience import call_patiently
from mergeplan.bot.github.polling import MOST_PAGES, Polls
from mergeplan.bot.pages.links import PageLinks, links_of
from mergeplan.bot.policy.approvals import Review
from mergeplan.bot.policy.roles import ROLES, Role
from mergeplan.bot.projects import folder_of, label_of, repository_of
from mergeplan.bot.records import Pull, Repository
from mergeplan.bot.settings import ACTIONS_LOGIN, Settings

FILES_LISTED = 3000  # of a pull request; GitHub lists no more
GONE = (401, 403, 404, 409, 410, 451)  # of a repository that is no longer there for the bot
BLOCKED = (403, 451)  # of a repository that GitHub shows nobody
GHOST = "ghost"  # who GitHub shows where an account is gone
# The types are those of GitHub's published schema. REST has no revert.
REVERTING = (
    "mutation($input: RevertPullRequestInput!) { revertPullRequest(input: $input) { revertPullRequest { number } } }"
)


class Reverts:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def open(self, pull: Pull, open_pulls: Callable[[], tuple[Pull, ...]], body: str) -> int:
        clean = self._calls.clean(body)

        def look() -> int | None:
            return next((candidate.number for candidate in open_pulls() if is_revert(candidate, pull)), None)

        def post() -> int:
            repo = self._calls.repo
            variables = {"pullRequestId": repo.get_pull(pull.number).node_id, "body": clean}
            answer = repo.requester.graphql_query(REVERTING, {"input": variables})[1]
            try:
                return int(answer["data"]["revertPullRequest"]["revertPullRequest"]["number"])
            except (KeyError, TypeError) as error:
                raise ForgeFailed("GitHub did not say which pull request it opened", 422) from error

        return self._calls.write_once(look, post)


class GitHub:
    """Every repository that the bot may see, through an App or a token; `find_repository` tells its present name."""

    def __init__(self, settings: Settings, find_repository: Callable[[str], Repository] = Repository) -> None:
        self.find_repository = find_repository
        self._settings = settings
        self._options: dict[str, Any] = {
            "base_url": settings.github_api_url.rstrip("/") or Consts.DEFAULT_BASE_URL,
            "api_version": settings.github_api_version,
            "timeout": settings.api_timeout_seconds,
            "retry": None,  # retried here, where it is known what may be repeated
            "seconds_between_requests": 0,
            "seconds_between_writes": 0,  # `Turns` sees to that, for all threads together
            "per_page": 100,
            "lazy": True,  # an object known by its number costs no call until something of it is read
        }
        self._lock = threading.Lock()
        self._gateways: dict[str, GitHubRepository] = {}
        self._polls = Polls()
        self._login = settings.bot_login
        self._links = links_of(settings)
        self.owners = Owners(settings, self._options, self._polls)

    def repository(self, key: str) -> GitHubRepository:
        repository = self.find_repository(repository_of(key))
        self.owners.connect(repository.name)
        login = self.login()
        with self._lock:
            gateway = self._gateways.get(key)
            if gateway is None or gateway.repository != repository:
                calls = Calls(repository, self.owners, self._polls, self._settings.secrets())
                gateway = GitHubRepository(key, calls, login, self._settings, self._links)
                self._gateways[key] = gateway
            return gateway

    def login(self) -> str:
        """Return the author of the bot's own comments: `slug[bot]`, or the token's user."""
        if not self._login:
            app = self.owners.app
            if app:
                slug = call_patiently(self.owners.app_pause, lambda: app.get_app().slug)
                self._login = f"{slug}[bot]"
            else:
                connection = self.owners.connect("")
                self._login = call_patiently(connection.pause, lambda: connection.client.get_user().login)
        return self._login

    def repositories(self, owner: str = "", names: Iterable[str] = ()) -> tuple[Repository, ...]:
        if self.owners.app:
            return self.owners.repositories(owner)
        configured = (name.strip() for name in self._settings.repositories.split(","))
        return tuple(self._look_up(name) for name in dict.fromkeys([*configured, *names]) if name)

    def _look_up(self, name: str) -> Repository:
        connection = self.owners.connect(name)

        def parse(shape: Any) -> tuple[Repository, ...]:
            return (Repository(shape["full_name"], shape["id"]),)

        try:
            (repository,) = call_patiently(
                connection.pause, lambda: self._polls.read(connection.ask, f"/repos/{name}", parse)
            )
        except ForgeFailed:
            return Repository(name)
        return repository

    def find_name(self, number: int, repository: str) -> str | None:
        connection = self.owners.connect(repository)
        try:
            if name := _ask_name(connection, number):
                return name
            _, _, body = call_patiently(connection.pause, lambda: connection.ask(f"/repos/{repository}", {}))
            # GitHub gives the same answer about a private repository that a token may not see.
            if json.loads(body)["fork"] or self.login() == ACTIONS_LOGIN:  # whose token sees one repository alone
                return None
            return next(filter(None, (_ask_name(other, number) for other in self.owners.connect_all())), "")
        except ForgeFailed as error:
            if isinstance(error, OwnerUnavailable) or error.status in BLOCKED:
                return None
            raise

    def live_name(self, key: str) -> str:
        try:
            return self.repository(key).name_now()
        except ForgeFailed as error:
            is_gone = isinstance(error, NameReused) or error.status in GONE
            if isinstance(error, OwnerUnavailable) or not is_gone:
                raise
            return ""

    def check_headers(self, headers: Mapping[str, str]) -> InvalidDelivery | None:
        return events.check_headers(headers)

    def read_delivery(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        return events.read_delivery(headers, body, self._settings.webhook_secret.get_secret_value())

    def read_event(self, guid: str, name: str, payload: Mapping[str, Any]) -> Delivery:
        return events.read_event(guid, name, payload)

    def sign_delivery(self, guid: str, name: str, body: bytes) -> Mapping[str, str]:
        return {
            "Content-Type": "application/json",
            "X-GitHub-Event": name,
            "X-GitHub-Delivery": guid,
            "X-Hub-Signature-256": events.sign_body(self._settings.webhook_secret.get_secret_value(), body),
        }

    def budget(self) -> Mapping[str, int]:
        remaining_calls = {
            str(connection.installation): connection.client.requester.rate_limiting[0]
            for connection in self.owners.connections()
        }
        return {installation: calls for installation, calls in remaining_calls.items() if calls >= 0}


def _ask_name(connection: OwnerConnection, number: int) -> str:
    """Return the name of the repository with a number; '' where the connection sees none."""
    try:
        _, _, body = call_patiently(connection.pause, lambda: connection.ask(f"/repositories/{number}", {}))
    except ForgeFailed as error:
        if error.status == 404:
            return ""
        raise
    return str(json.loads(body)["full_name"])


class GitHubRepository:
    """What the bot does in one repository, for the project whose key is `name`."""

    def __init__(self, name: str, calls: Calls, login: str, settings: Settings, links: PageLinks) -> None:
        self.name = name
        self.repository = calls.repository
        self.folder = folder_of(name, settings.project_folders)
        self.project = self.folder if len(settings.project_folders) > 1 else ""  # its name among them
        self.login = login
        self.has_buttons = settings.has_buttons
        self._links = links
        self._calls = calls
        self.checks = CheckRuns(self._calls, self.folder)
        self.deployments = Deployments(self._calls, label_of(name))
        self.comments = Comments(self._calls, login)
        self.reverts = Reverts(self._calls)
        self._merges = Merges(self._calls)

    # --- reading ---

    @property
    def clone_url(self) -> str:
        return self._calls.read(lambda: self._calls.repo.clone_url)

    @property
    def default_branch(self) -> str:
        return self._calls.read(lambda: self._calls.repo.default_branch)

    def default_branch_now(self) -> str:
        def read() -> str:
            self._calls.repo.update()  # by its ETag: free while nothing has changed
            self._check_identity(self._calls.repo.id)
            return self._calls.repo.default_branch

        return self._calls.read(read)

    def name_now(self) -> str:
        """Return the repository's present name; raise NameReused if it is another repository by now."""
        self.check_identity()
        return self._calls.read(lambda: self._calls.repo.full_name)

    def is_public(self) -> bool:
        self.check_identity()
        return not self._calls.read(lambda: self._calls.repo.private)

    def check_identity(self) -> None:
        self.default_branch_now()

    def git_token(self) -> str:
        return self._calls.connection.git_token(self.repository.name)

    def _check_identity(self, number: int) -> None:
        """Raise NameReused if the name belongs to another repository by now, whose records these are not."""
        if self.repository.number not in (0, number):
            raise NameReused(f"`{self.repository.name}` is another repository now: number {number}.")

    def pull(self, number: int) -> Pull:
        (pull,) = self._calls.poll(f"pulls/{int(number)}", lambda value: (_parse_pull(value),))
        self._check_identity(pull.repository_id)
        return self._merges.add_commit(pull)

    def open_pulls(self) -> tuple[Pull, ...]:
        return self._list_pulls("pulls?direction=desc&per_page=100&sort=updated&state=open")

    def _list_pulls(self, path: str, pages: int = MOST_PAGES) -> tuple[Pull, ...]:
        pulls = self._calls.poll(path, lambda pulls: tuple(map(_parse_pull, pulls)), pages)
        for pull in pulls[:1]:
            self._check_identity(pull.repository_id)
        return pulls

    def list_closed_pulls(self, limit: int = 50) -> tuple[Pull, ...]:
        path = f"pulls?direction=desc&per_page={int(limit)}&sort=updated&state=closed"
        return self._merges.add_commits(self._list_pulls(path, pages=1))

    def branch_head(self, branch: str) -> str:
        return self._calls.poll(f"git/ref/heads/{quote(branch)}", lambda value: (str(value["object"]["sha"]),))[0]

    def merge_groups(self) -> Mapping[int, str]:
        return dict(self._calls.poll("git/matching-refs/heads/gh-readonly-queue", _parse_groups))

    def role(self, login: str) -> Role | None:
        try:
            name = self._calls.read(lambda: self._calls.repo.get_collaborator_role_name(login))
            if name not in ROLES:  # a custom role: its base permission is what counts
                name = self._calls.read(lambda: self._calls.repo.get_collaborator_permission(login))
        except ForgeFailed as error:
            return "none" if error.status == 404 else None
        return next((role for role in ROLES if role == name), None)

    def list_pull_paths(self, number: int) -> tuple[str, ...] | None:
        paths = self._calls.poll(f"pulls/{int(number)}/files?per_page=100", _parse_paths)
        return paths if len(paths) < FILES_LISTED else None

    def reviews(self, number: int) -> tuple[Review, ...]:
        return self._calls.poll(f"pulls/{int(number)}/reviews?per_page=100", _parse_reviews)

    def is_member(self, team: str, login: str) -> bool | None:
        org, _, slug = team.partition("/")
        address = f"/orgs/{quote(org)}/teams/{quote(slug)}/memberships/{quote(login)}"
        try:
            return bool(self._calls.poll_at(address, lambda value: (value["state"] == "active",))[0])
        except ForgeFailed as error:
            return False if error.status == 404 else None

    def page(self, number: int, page: str) -> str:
        return self._links.url(self.name, number, page, time.time())

    # --- writing ---

    def turn(self, is_late: Callable[[], bool] = lambda: False) -> AbstractContextManager[None]:
        return self._calls.turn(is_late)

    def merge(self, number: int, sha: str, method: str) -> str:
        def look() -> str | None:
            pull = self.pull(number)
            return pull.merge_sha if pull.merged and pull.head == sha else None

        def put() -> str:
            return self._calls.repo.get_pull(number).merge(sha=sha, merge_method=method).sha

        return self._calls.write_once(look, put)


def _parse_paths(files: Any) -> tuple[str, ...]:
    """Return the paths of files, and the earlier paths of those that were moved."""
    return tuple(str(path) for file in files for path in (file["filename"], file.get("previous_filename")) if path)


def _parse_groups(refs: Any) -> tuple[tuple[int, str], ...]:
    named = ((events.QUEUE_BRANCH.fullmatch(str(ref["ref"])), str(ref["object"]["sha"])) for ref in refs)
    return tuple((int(match[1]), head) for match, head in named if match)


def _parse_reviews(value: Any) -> tuple[Review, ...]:
    """Return the reviews, without pending ones, which have no time yet, and those of deleted accounts."""
    return tuple(
        Review(review["user"]["login"], review["state"], review["commit_id"] or "", _utc_text(review["submitted_at"]))
        for review in value
        if review["user"] and review.get("submitted_at")
    )


def _utc_text(text: str) -> str:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).isoformat()


def _parse_pull(value: Mapping[str, Any]) -> Pull:
    """Read a pull request; its author may have no account any more, its head no repository."""
    head = value["head"]
    updated = value.get("updated_at") or ""
    return Pull(
        number=value["number"],
        title=value["title"] or "",
        author=(value["user"] or {}).get("login", GHOST),
        is_open=value["state"] == "open",
        merged=value["merged_at"] is not None,
        merge_sha="",
        head=head["sha"],
        is_fork=(head["repo"] or {}).get("id") != value["base"]["repo"]["id"],  # a name may have been another's
        base_ref=value["base"]["ref"],
        head_ref=head["ref"] or "",
        updated_at=_utc_text(updated) if updated else "",
        labels=tuple(label["name"] for label in value.get("labels") or ()),
        repository_id=value["base"]["repo"]["id"],
        body=value.get("body") or "",
    )


def is_revert(candidate: Pull, original: Pull) -> bool:
    """Return True for an open pull request of *Revert*: its branch is `revert-41-branch`, or that with a number."""
    name = re.escape(f"revert-{original.number}-{original.head_ref}")
    may_revert = candidate.is_open and not candidate.is_fork and candidate.base_ref == original.base_ref
    return may_revert and bool(re.fullmatch(rf"{name}(-\d+)?", candidate.head_ref))
