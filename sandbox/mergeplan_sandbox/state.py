"""What the sandbox remembers: users, repositories, pull requests, checks, deliveries; all but git, in memory."""

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Json = dict[str, Any]
Role = Literal["admin", "maintain", "write", "triage", "read", "none"]
ROLES: tuple[Role, ...] = ("none", "read", "triage", "write", "maintain", "admin")
MergeMethod = Literal["merge", "squash", "rebase"]
UserKind = Literal["User", "Bot", "Organization"]
TokenKind = Literal["user", "installation", "actions"]
ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED"]

# What the App may do where it is installed; an installation token may ask for less, never for more.
APP_PERMISSIONS: dict[str, str] = {
    "checks": "write",
    "contents": "write",
    "deployments": "write",
    "issues": "write",
    "members": "read",
    "merge_queues": "read",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "write",
}
APP_EVENTS = (
    "check_run",
    "check_suite",
    "issue_comment",
    "merge_group",
    "pull_request",
    "pull_request_review",
    "push",
)


def now() -> datetime:
    """Return the current time in whole seconds, as precise as GitHub's own times."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class User:
    id: int
    login: str
    name: str
    email: str
    kind: UserKind = "User"


@dataclass(frozen=True)
class Token:
    value: str = field(repr=False)
    login: str
    kind: TokenKind
    installation_id: int | None = None
    repositories: frozenset[str] | None = None
    permissions: tuple[tuple[str, str], ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True)
class App:
    id: int
    slug: str
    public_key: str
    created_at: datetime
    private_key: str = field(default="", repr=False)
    codes: dict[str, Json] = field(default_factory=dict, repr=False)  # of manifests that were sent and not converted

    @property
    def bot_login(self) -> str:
        return f"{self.slug}[bot]"


@dataclass
class Installation:
    id: int
    account: str
    created_at: datetime
    repositories: set[str] = field(default_factory=set)
    suspended_at: datetime | None = None


@dataclass
class Hook:
    id: int
    url: str | None
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(frozen=True)
class Reaction:
    id: int
    author: str
    content: str
    created_at: datetime


@dataclass
class Comment:
    id: int
    number: int
    author: str
    body: str
    created_at: datetime
    updated_at: datetime
    reactions: list[Reaction] = field(default_factory=list)
    by_app: bool = False
    edited_at: datetime | None = None
    editor: str = ""


@dataclass(frozen=True)
class Review:
    id: int
    number: int
    author: str
    state: ReviewState
    body: str
    commit_id: str
    submitted_at: datetime


@dataclass
class Issue:
    id: int
    number: int
    title: str
    body: str
    author: str
    created_at: datetime
    updated_at: datetime
    state: Literal["open", "closed"] = "open"
    closed_at: datetime | None = None
    labels: list[str] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)


@dataclass
class PullRequest(Issue):
    """A pull request is an issue with a head and a base, as on GitHub."""

    head_repository: str = ""
    head_ref: str = ""
    head_sha: str = ""
    base_ref: str = ""
    base_sha: str = ""
    draft: bool = False
    mergeable: bool = False
    merge_commit_sha: str | None = None
    merged_at: datetime | None = None
    merged_by: str | None = None
    merged_onto: str = ""  # the base's commit before the merge
    reviews: list[Review] = field(default_factory=list)


@dataclass(frozen=True)
class Annotation:
    path: str
    start_line: int
    end_line: int
    annotation_level: str
    message: str
    title: str | None = None
    raw_details: str | None = None
    start_column: int | None = None
    end_column: int | None = None


@dataclass(frozen=True)
class Action:
    label: str
    description: str
    identifier: str


@dataclass
class CheckSuite:
    id: int
    head_sha: str
    author: str
    created_at: datetime
    updated_at: datetime


@dataclass
class CheckRun:
    id: int
    suite_id: int
    name: str
    head_sha: str
    author: str
    status: str = "queued"
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    external_id: str = ""
    details_url: str | None = None
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[Annotation] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)


@dataclass(frozen=True)
class DeploymentStatus:
    id: int
    state: str
    description: str
    environment: str
    environment_url: str
    log_url: str
    author: str
    created_at: datetime


@dataclass
class Deployment:
    id: int
    sha: str
    ref: str
    task: str
    environment: str
    description: str | None
    payload: Any
    author: str
    created_at: datetime
    transient: bool = False
    production: bool = False
    statuses: list[DeploymentStatus] = field(default_factory=list)


@dataclass(frozen=True)
class MergeGroup:
    """What the merge queue would make of a base branch: it and the pull requests up to `number`."""

    number: int
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str


@dataclass
class MergeRequest:
    """An asynchronous merge that was accepted, and what became of it."""

    uuid: str
    number: int
    sender: str
    head_sha: str
    method: MergeMethod
    action: str
    status: Literal["pending", "merged", "enqueued", "failed"] = "pending"
    message: str = ""
    sha: str = ""


@dataclass
class Repository:
    id: int
    full_name: str
    default_branch: str
    private: bool
    created_at: datetime
    pushed_at: datetime
    fork_of: str | None = None
    description: str | None = None
    permissions: dict[str, Role] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    suites: dict[int, CheckSuite] = field(default_factory=dict)
    checks: dict[int, CheckRun] = field(default_factory=dict)
    deployments: dict[int, Deployment] = field(default_factory=dict)
    queue: list[MergeGroup] = field(default_factory=list)  # oldest first
    required_checks: dict[str, list[str]] = field(default_factory=dict)  # base branch -> check names
    merge_requests: list[MergeRequest] = field(default_factory=list)  # oldest first
    stacks: dict[int, list[int]] = field(default_factory=dict)  # number of a stack -> its pull requests, lowest first

    @property
    def owner(self) -> str:
        return self.full_name.split("/")[0]

    @property
    def name(self) -> str:
        return self.full_name.split("/")[1]

    @property
    def pulls(self) -> list[PullRequest]:
        return [issue for issue in self.issues.values() if isinstance(issue, PullRequest)]


@dataclass(frozen=True)
class ApiCall:
    method: str
    path: str
    status: int
    login: str | None
    version: str = field(default="", compare=False)  # of the REST API, as the caller asked for it


@dataclass(frozen=True)
class Delivery:
    """One attempt to hand over a webhook; `status` is "OK", GitHub's words for a failure, or "dropped"."""

    id: int
    guid: str
    event: str
    action: str | None
    installation_id: int | None
    repository_id: int | None
    delivered_at: datetime
    duration: float
    status: str
    status_code: int
    redelivery: bool
    payload: Json = field(repr=False)


@dataclass
class State:
    """The state of the sandbox except git and faults; hold `lock` to read or change it."""

    folder: Path
    base_url: str
    app: App
    hook: Hook
    users: dict[str, User] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)  # accounts that were deleted: what they wrote stays, and is nobody's
    tokens: dict[str, Token] = field(default_factory=dict, repr=False)
    repositories: dict[str, Repository] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)  # earlier name -> id of the repository
    teams: dict[str, set[str]] = field(default_factory=dict)  # org/team -> its members
    installations: dict[str, Installation] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    calls: list[ApiCall] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    version: int = 0  # grows with every delivery and every write: pages that are open look again
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1001), repr=False)

    def next_id(self) -> int:
        """Return a number that no other object of this sandbox has."""
        return next(self.ids)

    def git(self, full_name: str) -> Path:
        return self.folder / f"{full_name}.git"

    def role(self, repository: Repository, login: str) -> Role:
        """Return the login's role; owners are admins, and everyone may read a public repository."""
        if login == repository.owner:
            return "admin"
        return repository.permissions.get(login, "none" if repository.private else "read")

    def installation_of(self, repository: Repository) -> Installation | None:
        installation = self.installations.get(repository.owner)
        return installation if installation and repository.full_name in installation.repositories else None

    def installation(self, number: int | None) -> Installation | None:
        return next((candidate for candidate in self.installations.values() if candidate.id == number), None)

    def token_repositories(self, token: Token) -> frozenset[str]:
        """Return the repositories that an App's token opens now; an unnarrowed one follows its installation."""
        if token.kind != "installation":
            return token.repositories or frozenset()
        installation = self.installation(token.installation_id)
        names = frozenset(installation.repositories if installation else ())
        return names if token.repositories is None else names & token.repositories


def includes_role(role: Role, need: Role) -> bool:
    return ROLES.index(role) >= ROLES.index(need)
