"""The revert of a merge that prod no longer shows: opened once, or a sentence about why not."""

from __future__ import annotations

from dataclasses import replace

import structlog

from mergeplan.bot.context import DEFECT_TRIES
from mergeplan.bot.github.gateway import GitHubFailed, RepositoryGateway
from mergeplan.bot.github.patience import is_passing
from mergeplan.bot.pull_parts import Reversal
from mergeplan.bot.records import Pull, PullRecord
from mergeplan.bot.report.reverts import revert_body
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.settings import ACTIONS_LOGIN

log = structlog.get_logger(__name__)
BY_A_WORKFLOW = "one that a workflow's own token opens starts no workflow."


def open_revert(
    gateway: RepositoryGateway, pull: Pull, record: PullRecord, config: BotConfig, attempts: int
) -> Reversal:
    """Return the rollback with its revert opened or found; raise GitHubFailed while another try may help."""
    done = replace(record.rollback.reversal, to_open=False)
    if not config.open_revert:
        return done
    if gateway.login == ACTIONS_LOGIN:
        return replace(done, why=BY_A_WORKFLOW)
    try:
        number = gateway.reverts.open(pull, gateway.open_pulls, revert_body(record, config.prod_branch))
    except GitHubFailed as error:
        if is_passing(error.status) and attempts + 1 < DEFECT_TRIES:
            raise
        log.warning("revert_not_opened", repository=gateway.name, pull_request=pull.number, why=str(error))
        return replace(done, why=f"{str(error).rstrip('.')}.")
    log.info("revert_opened", repository=gateway.name, pull_request=pull.number, revert=number)
    return replace(done, number=number)
