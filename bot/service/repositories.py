"""Follow repositories as they are renamed, transferred and recreated."""

from __future__ import annotations

from collections.abc import Sequence

from mergeplan.bot.context import BotContext
from mergeplan.bot.records import Repository


def note_repositories(context: BotContext, repositories: Sequence[Repository]) -> None:
    """Store the present names of repositories, and decide whose records a reused name stands for.

    Raise GitHubFailed or GitHubPaused where GitHub does not tell what became of the earlier one.
    """
    names = {repository.number: repository.name for repository in repositories if repository.number}
    for taken in context.inbox.repositories.note(names):
        holders_name = names.get(taken.holder) or context.github.find_name(taken.holder, taken.name)
        context.inbox.repositories.settle(taken, holders_name)
