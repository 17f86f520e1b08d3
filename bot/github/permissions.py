"""What the GitHub App asks for, in one table: its manifest, its tokens and the documentation are made of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["read", "write"]


@dataclass(frozen=True)
class Permission:
    name: str
    level: Level
    why: str

    @property
    def title(self) -> str:
        """As GitHub's page of the App's permissions calls it."""
        return self.name.replace("_", " ").capitalize()


PERMISSIONS = (
    Permission("contents", "read", "the project's files"),
    Permission("pull_requests", "write", "pull requests, comments"),
    Permission("issues", "write", "comments and reactions"),
    Permission("checks", "write", "the checks"),
    Permission("metadata", "read", "permissions of people"),
)
# The bot works without these; who wants what they are for grants them to the App by hand.
PULLS = "guides/pull-requests.md"
OPTIONAL = (
    Permission("contents", "write", f"[`/deploy`]({PULLS}#deploy): it merges; [`/rollback`](guides/rollback.md)"),
    Permission("deployments", "write", f"[deployments]({PULLS}#deployments) on GitHub"),
    Permission("members", "read", "[rules](guides/approvals.md#who-decides) that name teams"),
    Permission("merge_queues", "read", f"[merge queues]({PULLS}#merge-queue), with the event *Merge group*"),
)
EVENTS = ("pull_request", "pull_request_review", "issue_comment", "push", "check_run", "check_suite")
GIT_PERMISSIONS = {"contents": "read"}  # of the token that git gets, for one repository


def token_permissions(grants: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what an installation's token may do: what the bot needs, and the granted optional ones.

    >>> token_permissions({"contents": "write", "members": "read", "administration": "write"})["contents"]
    'write'
    """
    levels = grants or {}
    extra = (permission for permission in OPTIONAL if levels.get(permission.name) in ("write", permission.level))
    return {permission.name: permission.level for permission in (*PERMISSIONS, *extra)}
