"""The end of a pull request's job that trying again does not mend: it is shown, instead of checks that never end."""

from __future__ import annotations

from bot.context import BotContext, failed, now_text
from bot.github.gateway import RepositoryGateway
from bot.pulls.publish import publish
from bot.records import AFTER_MERGE, Pull, PullState
from bot.results import packed
from planner.errors import MergeplanError, RequestError


def show_failure(context: BotContext, gateway: RepositoryGateway, pull: Pull, error: MergeplanError) -> None:
    """Fail the checks of an open pull request with the error; raise it where something is promoted."""
    pulls = context.inbox.pulls
    if not pull.is_open or pulls.get(gateway.name, pull.number).state in AFTER_MERGE:
        raise error
    path, line = (error.place.path, error.place.line) if error.place else ("", 0)
    ended = failed(error.message, type(error).__name__, path=path, line=line, hint=error.hint)
    record = pulls.change(
        gateway.name,
        pull.number,
        state=PullState.FAILED,
        head=pull.head,
        base_ref=pull.base_ref,
        run_lines=packed(ended.lines, ended.exit_code),
        planned_at=now_text(),
        progress="",
        reason="",
        fresh=False,
        again=False,
        words=(),
        attempts=0,
    )
    publish(context.inbox, gateway, record)


def defect(error: Exception) -> MergeplanError:
    """What is shown of an error that nobody expected."""
    hint = "The log of the service says more. Type `/plan` to try again."
    return RequestError(f"mergeplan failed ({type(error).__name__}).", hint=hint)
