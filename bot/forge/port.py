"""The port to a forge. `bot/github` implements it; a second forge starts here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from mergeplan.bot.forge.checks import CheckId, CheckRequest, CommentEdit, Edited, Written
from mergeplan.bot.forge.events import Delivery, InvalidDelivery
from mergeplan.bot.forge.failures import OwnerState
from mergeplan.bot.policy.approvals import Review
from mergeplan.bot.policy.roles import Role
from mergeplan.bot.records import Posted, Pull, Repository
from mergeplan.bot.report.deployments import DeploymentView


class Checks(Protocol):
    def find(self, sha: str, key: str) -> CheckId:
        """Return the bot's check with that key on a commit; its id is 0 if there is none."""

    def write(self, request: CheckRequest) -> CheckId: ...
    def write_together(self, comment: CommentEdit | None, requests: Sequence[CheckRequest]) -> Written | None:
        """Write a comment and checks in one call; return None if that is impossible, or was not confirmed.

        The caller then writes them one by one and looks for each check first, because some may exist already.
        """


class Comments(Protocol):
    def read(self, number: int) -> tuple[Posted, ...]:
        """Return the comments of a pull request, oldest first."""

    def editor(self, comment: Posted) -> Edited:
        """Return who edited a comment after it was written; `known` is False if the forge does not tell."""

    def write(self, number: int, body: str, marker: str) -> Posted:
        """Post a comment that begins with that hidden marker; edit ours that has it already."""

    def edit(self, number: int, comment_id: int, body: str) -> Posted: ...
    def react(self, number: int, comment_id: int, content: str) -> None:
        """Add a reaction, before other writes; it may be repeated because the forge stores one of a kind."""


class Deployments(Protocol):
    def write(self, view: DeploymentView, known_id: int = 0) -> int:
        """Write the deployment of a commit and return its id; 0 where the bot may not write any."""


class Reverts(Protocol):
    def open(self, pull: Pull, open_pulls: Callable[[], tuple[Pull, ...]], body: str) -> int:
        """Open the revert of a merged pull request, or find an open one of any author, and return its number.

        Raise ForgeFailed if the forge refuses: without `contents: write`, or if later commits are in the way.
        """


class RepositoryGateway(Protocol):
    """One repository, for the project whose key is `name`; `project` is its name among several, or ''."""

    name: str
    repository: Repository
    folder: str
    project: str
    login: str
    has_buttons: bool

    @property
    def checks(self) -> Checks: ...
    @property
    def comments(self) -> Comments: ...
    @property
    def deployments(self) -> Deployments: ...
    @property
    def reverts(self) -> Reverts: ...
    @property
    def clone_url(self) -> str: ...
    @property
    def default_branch(self) -> str: ...
    def default_branch_now(self) -> str:
        """Return the default branch, read again: it may have been renamed."""

    def is_public(self) -> bool: ...
    def check_identity(self) -> None:
        """Raise NameReused if the name belongs to another repository by now."""

    def git_token(self) -> str: ...
    def pull(self, number: int) -> Pull: ...
    def open_pulls(self) -> tuple[Pull, ...]: ...
    def list_closed_pulls(self, limit: int = 50) -> tuple[Pull, ...]: ...
    def branch_head(self, branch: str) -> str: ...
    def merge_groups(self) -> Mapping[int, str]:
        """Return the heads of the merge queue's groups, by the number of the last pull request in each."""

    def role(self, login: str) -> Role | None:
        """Return the live permission of a person; None when it could not be read."""

    def list_pull_paths(self, number: int) -> tuple[str, ...] | None:
        """Return the paths that a pull request changes; None when they are more than the forge lists."""

    def reviews(self, number: int) -> tuple[Review, ...]:
        """Return the reviews of a pull request, oldest first."""

    def is_member(self, team: str, login: str) -> bool | None:
        """Return True if a person is in a team, `org/team`; None if that could not be read."""

    def page(self, number: int, page: str) -> str:
        """Return the link to the service's page about a pull request, or (0) prod; '' where there is none."""

    def turn(self, is_late: Callable[[], bool] = lambda: False) -> AbstractContextManager[None]:
        """Return a lock that no other writer of this installation holds; writes within it wait no longer."""

    def merge(self, number: int, sha: str, method: str) -> str:
        """Merge a pull request whose head is still that commit; a second call finds the same merge commit."""


class Owners(Protocol):
    refused: str  # why the forge refuses the bot itself; '' while it does not

    def list_owners(self) -> tuple[str, ...]:
        """Return the owners where the bot is installed and works; ('',) means all that a token opens."""

    def states(self) -> tuple[OwnerState, ...]: ...
    def forget(self, owner: str) -> None: ...


class Forge(Protocol):
    """Every repository that the bot may see."""

    @property
    def owners(self) -> Owners: ...
    def repository(self, key: str) -> RepositoryGateway:
        """Return the gateway of one project's repository; raise OwnerUnavailable or ForgeFailed."""

    def login(self) -> str:
        """Return the author of the bot's own comments."""

    def repositories(self, owner: str = "", names: Iterable[str] = ()) -> tuple[Repository, ...]:
        """Return the repositories of an owner where the bot is installed; with a token, of the settings and the names.

        The number of one that the token does not see is 0.
        """

    def find_name(self, number: int, repository: str) -> str | None:
        """Return the present name of the repository with a number, whose name another one may have: `repository`.

        '' if it was deleted and that one made in its place; None if that is not certain.
        """

    def live_name(self, key: str) -> str:
        """Return the present name of a project's repository; '' if the bot may not read it any more."""

    def budget(self) -> Mapping[str, int]: ...
    def check_headers(self, headers: Mapping[str, str]) -> InvalidDelivery | None:
        """Return the reason to refuse a delivery by its headers alone; None if its body has to be read."""

    def read_delivery(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        """Read a delivery; nothing of its body is parsed before its signature is verified."""

    def read_event(self, guid: str, name: str, payload: Mapping[str, Any]) -> Delivery: ...
    def sign_delivery(self, guid: str, name: str, body: bytes) -> Mapping[str, str]:
        """Return the headers with which the forge sends a delivery."""
