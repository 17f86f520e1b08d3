"""The end of a pull request's environment: it outlives the pull request, or is dropped."""

from functools import partial

import structlog

from mergeplan.bot.child.planner_process import new_run_id
from mergeplan.bot.context import DEFECT_TRIES, Later, PlannerCall
from mergeplan.bot.pulls.publish import publish_record
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.records import AFTER_MERGE, PullRecord, PullState
from mergeplan.bot.transitions.environments import (
    close_pull,
    leave_branch,
    record_destroy,
    record_drop,
    set_environment_exists,
)
from mergeplan.bot.transitions.planning import retry_run

log = structlog.get_logger(__name__)


def outlive_pull(current: PullPass, record: PullRecord) -> None:
    """End all that runs of a closed pull request, whose environment stays for now."""
    if record.state not in AFTER_MERGE and record.state is not PullState.CLOSED:
        current.update(close_pull)


def destroy_environment(current: PullPass, record: PullRecord) -> None:
    """Drop it on demand; an open pull request is planned again when a person requests it."""
    is_over = record.state in (*AFTER_MERGE, PullState.CLOSED)
    if record.environment.exists:
        drop_views(current, record.environment.name)
    current.update(partial(record_destroy, is_over=is_over))


def drop_environment(current: PullPass, record: PullRecord) -> None:
    """Drop it, once, of a pull request that is over; one that was promoted keeps its state."""
    pull, config = current.pull, current.config
    if record.state is PullState.PROMOTED and not config.invalidate_environment_after_deploy:
        current.update(partial(set_environment_exists, exists=False))
        return
    if record.state not in AFTER_MERGE:
        elsewhere = f"It merges into `{pull.base_ref}` now, not into `{config.prod_branch}`."
        reason = elsewhere if pull.is_open else ""
        record = current.update(partial(leave_branch, base_ref=pull.base_ref, reason=reason))
    if record.environment.exists:
        drop_views(current, record.environment.name)
    state = record.state if record.state in AFTER_MERGE else PullState.CLOSED
    publish_record(current.inbox, current.gateway, current.update(partial(record_drop, state=state)))


def drop_views(current: PullPass, environment: str) -> None:
    """Let the planner drop the views, by prod's own commit: no code of the pull request runs."""
    prod, checkout, context = current.prod, current.checkout, current.context
    branch = prod.branch or current.config.prod_branch
    checkout.fetch(branch)
    with context.project(checkout, prod.promoted_commit or checkout.head(branch)) as folder:
        call = PlannerCall(current.job, folder, ("invalidate", environment), new_run_id())
        outcome = context.plan(call).outcome
    is_gone = any(problem.kind == "RequestError" for problem in outcome.problems)  # it was never built
    if not (outcome.ok or is_gone) and current.record.run.attempts + 1 < DEFECT_TRIES:
        current.update(retry_run)
        raise Later(5.0, "the environment could not be dropped")
    log.info("environment_dropped", key=current.job.key, environment=environment, ok=outcome.ok)
