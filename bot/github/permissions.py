"""What the GitHub App asks for, in one table: its manifest, its tokens and the documentation are made of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["read", "write"]


@dataclass(frozen=True)
class Permission:
    """One of GitHub's repository permissions."""

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
    Permission("checks", "write", "the four checks"),
    Permission("metadata", "read", "permissions of people"),
)
EVENTS = ("pull_request", "issue_comment", "push", "check_run", "check_suite")
GIT_PERMISSIONS = {"contents": "read"}  # of the token that git gets, for one repository


def token_permissions() -> dict[str, str]:
    """What a token of an installation may do, whatever else the App was granted."""
    return {each.name: each.level for each in PERMISSIONS}


def event_title(name: str) -> str:
    """As GitHub's page of the App's events calls it: `Pull request`."""
    return name.replace("_", " ").capitalize()
