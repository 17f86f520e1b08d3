"""The rules of a pull request, as its base branch has them: a pull request cannot change its own."""

from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.inbox.queue import BRANCHES
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.records import PullState
from mergeplan.bot.rules import BotConfig
from mergeplan.planner.errors import ProjectError


def concerns_us(current: PullPass) -> bool:
    """Return True unless an unknown pull request goes into a branch that does not lead to prod's."""
    prod, pull = current.prod, current.pull
    if prod.follows(pull.base_ref, pull.number):
        current.inbox.queue.wake(current.job.repository, BRANCHES)
    if not prod.branch or pull.base_ref == prod.branch or current.record.head:
        return True
    if pull.is_open and any(other.head_ref == pull.base_ref for other in current.gateway.open_pulls()):
        return True
    return bool(current.inbox.commands.open(current.job.repository, current.pull.number))


def read_rules(current: PullPass) -> None:
    """Read the rules of the base branch, and store what is shown of them; a broken file is `config_error`."""
    branch = _fetch_base(current)
    try:
        config = current.context.config(current.checkout, current.checkout.head(branch), branch)
        current.config = config or BotConfig(prod_branch_name=branch)
    except ProjectError as error:
        current.config, current.config_error = BotConfig(prod_branch_name=branch), error
        return
    prod, repository = current.prod, current.job.repository
    if current.config.update_prod(prod) != prod:
        current.inbox.prods.update(repository, current.config.update_prod)
        for pull in current.inbox.pulls.filter_by_state(repository, PullState.SKIPPED):
            current.inbox.queue.wake(repository, pull.number)


def _fetch_base(current: PullPass) -> str:
    """Fetch the base branch, also one that was renamed, and return its name."""
    branch = current.prod.branch or current.gateway.default_branch
    try:
        # With the head, which will be planned; a fork's only when somebody has let it in.
        soon = current.pull.is_open and not current.is_fork
        current.checkout.fetch(branch, current.pull.number if soon else 0)
        current.fetched = branch
    except CheckoutFailed:
        renamed = current.gateway.default_branch_now()
        if renamed == branch:
            raise
        branch = renamed
        current.checkout.fetch(branch)
        current.inbox.queue.wake(current.job.repository, 0)
    return branch
