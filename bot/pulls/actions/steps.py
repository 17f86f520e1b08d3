"""The actions that change the record and little else."""

from dataclasses import replace
from functools import partial

import structlog

from mergeplan.bot.context import DEFECT_TRIES, Later
from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.checkout import Merge
from mergeplan.bot.pull_parts import PlanBase, Reversal
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.records import AFTER_MERGE, ProdRecord, Pull, PullRecord
from mergeplan.bot.report.reverts import revert_body
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.settings import ACTIONS_LOGIN
from mergeplan.bot.transitions.planning import carry_plan_over, hold_fork, request_plan, skip_planning, wait_for_prod
from mergeplan.bot.transitions.promotion import await_promotion

log = structlog.get_logger(__name__)
BY_A_WORKFLOW = "one that a workflow's own token opens starts no workflow."


def hold_pull(current: PullPass) -> None:
    current.update(partial(hold_fork, pull=current.pull))


def skip_pull(current: PullPass, label: str) -> None:
    """Have no plan; raise Later if the pull request was merged at this moment."""
    if current.record.state in AFTER_MERGE:
        raise Later(0.5, "it was merged this moment")
    forward_only = current.config.is_forward_only(current.pull.head_ref)
    current.update(partial(skip_planning, pull=current.pull, label=label, forward_only=forward_only))


def changes_nothing(current: PullPass, record: PullRecord, prod: ProdRecord) -> bool:
    """Return True if a plan costs nothing, with any labels, because its head changes nothing here."""
    current.fetch_head()
    base = current.base_commit(prod)
    merge = current.checkout.merge(base, current.pull.head) if current.checkout.has(current.pull.head) else Merge()
    return bool(merge.commit) and current.is_untouched(record, base, merge)


def await_prod(current: PullPass) -> None:
    current.update(partial(wait_for_prod, pull=current.pull, environment=current.environment))
    current.inbox.queue.wake(current.job.repository, 0)


def revert_merge(current: PullPass, record: PullRecord) -> None:
    reversal = open_revert(current.gateway, current.pull, record, current.config, current.job.attempts)
    current.update(lambda record: replace(record, rollback=replace(record.rollback, reversal=reversal)))


def hand_to_prod(current: PullPass) -> None:
    current.update(partial(await_promotion, merge_sha=current.pull.merge_sha))
    current.inbox.queue.wake(current.job.repository, 0)


def carry_over(current: PullPass, record: PullRecord, prod: ProdRecord) -> None:
    """Keep the plan, of the head merged into prod's commit as it is now; request another one where that conflicts."""
    base = prod.promoted_commit or record.base.sha
    merge = current.checkout.merge(base, record.head)
    if merge.commit:
        current.update(partial(carry_plan_over, base=PlanBase(base, merge.tree, prod.revision)))
    else:
        current.update(request_plan)


def open_revert(
    gateway: RepositoryGateway, pull: Pull, record: PullRecord, config: BotConfig, attempts: int
) -> Reversal:
    """Return the rollback with its revert opened or found; raise ForgeFailed while another try may help."""
    done = replace(record.rollback.reversal, to_open=False)
    if not config.open_revert:
        return done
    if gateway.login == ACTIONS_LOGIN:
        return replace(done, why=BY_A_WORKFLOW)
    try:
        number = gateway.reverts.open(pull, gateway.open_pulls, revert_body(record, config.prod_branch))
    except ForgeFailed as error:
        if error.is_passing and attempts + 1 < DEFECT_TRIES:
            raise
        log.warning("revert_not_opened", repository=gateway.name, pull_request=pull.number, why=str(error))
        return replace(done, why=f"{str(error).rstrip('.')}.")
    log.info("revert_opened", repository=gateway.name, pull_request=pull.number, revert=number)
    return replace(done, number=number)
