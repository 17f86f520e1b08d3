"""Checks and comments, as the bot asks a forge to write them, and what the forge answers."""

from dataclasses import dataclass

from mergeplan.bot.report.checks.check import CheckView


@dataclass(frozen=True)
class CheckId:
    """A check on GitHub: its number, its GraphQL id ('' where an earlier release wrote it), and GitHub's page of it."""

    id: int = 0
    node: str = ""
    url: str = ""


@dataclass(frozen=True)
class CheckRequest:
    """The wanted content of a check on a commit; `known` is the existing check, `details` its Details link."""

    sha: str
    view: CheckView
    key: str
    known: CheckId = CheckId()
    details: str = ""


@dataclass(frozen=True)
class CommentEdit:
    node: str
    body: str


@dataclass(frozen=True)
class Written:
    """The result of one call: when the comment was edited (UTC; '' if none was), and the checks in their order."""

    edited_at: str
    checks: tuple[CheckId, ...]


@dataclass(frozen=True)
class Edited:
    """The edit of a comment after it was written; `by` is '' if there was none, or its author is unknown."""

    by: str = ""
    edited: bool = False
    known: bool = True
