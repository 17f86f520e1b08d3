"""The branch that prod is built from, and which pull requests to check again when it moved."""

from dataclasses import replace

from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.records import Prod
from mergeplan.planner.errors import ProjectError

PROMOTED_MAX = 50  # merged pull requests, the newest, that look again when prod moves


def prod_branch(context: BotContext, gateway: RepositoryGateway) -> str | None:
    """Return the fetched prod branch of the default branch's rules, or None without a project to build."""
    checkout, default = context.checkout(gateway), gateway.default_branch_now()
    checkout.fetch(default)
    try:
        config = context.config(checkout, checkout.head(default), default)
    except ProjectError:
        return _fetch_branch(checkout, context.inbox.prods.get(gateway.name).branch or default, default)
    prod = context.inbox.prods.get(gateway.name)
    if config is None and prod.state is Prod.READY:
        # The project is gone: what is merged now is refused, with a comment.
        return _fetch_branch(checkout, prod.branch or default, default)
    if config is None:
        if prod.state in (Prod.UNKNOWN, Prod.FAILED) and prod.commit != checkout.head(default):
            # Noted with its commit: the branch is not looked at again before it has moved.
            head = checkout.head(default)
            context.inbox.prods.update(
                gateway.name,
                lambda stored: replace(stored, state=Prod.FAILED, branch=default, commit=head, again_at=0.0),
            )
            wake_pulls(context, gateway.name)
        return None
    return _fetch_branch(checkout, config.prod_branch, default)


def _fetch_branch(checkout: Checkout, branch: str, default: str) -> str:
    if branch != default:
        checkout.fetch(branch)
    return branch


def wake_pulls(context: BotContext, repository: str) -> None:
    for number in context.inbox.pulls.list_numbers(repository, PROMOTED_MAX):
        context.inbox.queue.wake(repository, number)
