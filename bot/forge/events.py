"""Events of a forge, as its webhooks report them."""

import re
from dataclasses import dataclass

from mergeplan.bot.records import Press

REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
MAX_BYTES = 25 * 1024 * 1024  # of a delivery: GitHub's own limit
COMES = frozenset({"created", "added", "unsuspend", "new_permissions_accepted"})  # there is something to do again
GUID = re.compile(r"[A-Za-z0-9:._-]{1,120}")
SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True)
class WrittenComment:
    comment_id: int
    author: str
    body: str
    at: str  # ISO 8601, GitHub's clock


@dataclass(frozen=True)
class WrittenDescription:
    """A pull request's description as somebody left it, who may not be its author, and the one before."""

    author: str
    body: str
    before: str
    at: str  # ISO 8601, GitHub's clock


@dataclass(frozen=True)
class Pressed:
    """A button of a check, or boxes of a comment, and by whom; `at` is '' where GitHub does not say when.

    `read` is the digest of the comment as it was read, its boxes empty.
    """

    author: str
    press: Press
    check_id: int = 0
    comment_id: int = 0
    at: str = ""  # ISO 8601, GitHub's clock
    read: str = ""


@dataclass(frozen=True)
class Event:
    """Something happened in a repository: to pull request `number`, or (0) to the branch `branch`."""

    guid: str
    kind: str  # "pull_request.opened", "push", "issue_comment.created", "check_run.rerequested", ...
    repository: str
    number: int = 0
    branch: str = ""
    head: str = ""
    comment: WrittenComment | None = None
    description: WrittenDescription | None = None
    pressed: Pressed | None = None
    again: bool = False  # somebody pressed Re-run
    label: str = ""  # that was set or taken away: it asks nothing where no rule names it
    owner: str = ""  # whose installation of the App has changed; then `repositories` are those that it brings
    repositories: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()  # GitHub's, of `repositories`
    trace: str = ""  # the W3C traceparent of its taking in, ours
    project: str | None = None  # the label of the one project that it is about; None: of all in the repository
    repository_id: int = 0  # GitHub's number, which stays when it is renamed; 0 if the payload lacks it


@dataclass(frozen=True)
class Ignored:
    """A genuine delivery that asks nothing of us."""

    guid: str
    why: str


@dataclass(frozen=True)
class InvalidDelivery:
    """A request that is not GitHub's, or not well formed; `status` is the HTTP answer."""

    status: int
    why: str


Delivery = Event | Ignored | InvalidDelivery
TOO_LARGE = InvalidDelivery(413, "the body is larger than GitHub sends")
