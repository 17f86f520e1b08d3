"""Follow repositories as they are renamed, transferred and recreated."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from mergeplan.bot.context import BotContext
from mergeplan.bot.github.gateway import GitHubFailed, GitHubPaused
from mergeplan.bot.records import Repository

log = structlog.get_logger(__name__)


def note_repositories(context: BotContext, repositories: Sequence[Repository]) -> tuple[str, ...]:
    """Store the present names of repositories, decide whose records a reused name stands for, and return their keys.

    One of which GitHub does not tell that yet is left out.
    """
    for taken in context.inbox.repositories.note({one.number: one.name for one in repositories if one.number}):
        try:
            holders_name = context.github.find_name(taken.holder, taken.name)
        except (GitHubFailed, GitHubPaused) as error:  # the other repositories go on
            log.warning("repository_left_out", repository=taken.name, number=taken.number, why=str(error))
        else:
            context.inbox.repositories.settle(taken, holders_name)
    return context.inbox.repositories.keys_of(repositories)
