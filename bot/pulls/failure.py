"""Fail a pull request's checks when a retry does not help, so that they do not stay in progress."""

from mergeplan.bot.context import TRY_AGAIN, BotContext, error_result, now_text, unreadable_error
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.github.gateway import RepositoryGateway
from mergeplan.bot.pulls.decide import MakePlan, decide_action
from mergeplan.bot.pulls.publish import publish_record
from mergeplan.bot.records import AFTER_MERGE, Pull
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.transitions.planning import fail_planning, wait_for_files
from mergeplan.planner.errors import MergeplanError, RequestError


def show_failure(context: BotContext, gateway: RepositoryGateway, pull: Pull, error: MergeplanError) -> None:
    """Fail the checks of an open pull request with the error; raise it if something is promoted."""
    pulls = context.inbox.pulls
    if not pull.is_open or pulls.get(gateway.name, pull.number).state in AFTER_MERGE:
        raise error
    ended = error_result(error)
    lines = pack_outcome(ended.lines, ended.exit_code)
    record = pulls.update(gateway.name, pull.number, fail_planning, pull, lines, now_text())
    publish_record(context.inbox, gateway, record)


def show_unreadable(
    context: BotContext, gateway: RepositoryGateway, pull: Pull, error: CheckoutFailed, tries: int
) -> bool:
    """Report that git cannot bring the files of a head; True where that ends its checks.

    Where trying again may help, the checks report what they wait for, and it is False.
    """
    record, prod = context.inbox.pulls.get(gateway.name, pull.number), context.inbox.prods.get(gateway.name)
    branch = prod.branch or gateway.default_branch
    if not pull.is_open or not isinstance(decide_action(pull, record, prod, branch), MakePlan):
        return False
    if tries >= error.tries:
        show_failure(context, gateway, pull, unreadable_error(error))
        return True
    if tries > 1:  # the first is soon tried again
        progress = f"Waiting: {error} It is tried again."
        waiting = context.inbox.pulls.update(gateway.name, pull.number, wait_for_files, pull, progress)
        publish_record(context.inbox, gateway, waiting)
    return False


def defect_error(error: Exception) -> MergeplanError:
    return RequestError(f"mergeplan failed ({type(error).__name__}).", hint=TRY_AGAIN)
