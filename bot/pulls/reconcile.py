"""The one routine: a live pull request and what we know of it -> what should be -> done, and shown.

Webhooks, the timer, start-up, Re-run buttons and the Action all come here, so that a lost, doubled or late webhook ends
in the same state. Each step writes what it knows before it acts on it; a process that dies is followed by one that
reads that.
"""

import time

import structlog

from mergeplan.bot.context import (
    DEFECT_TRIES,
    TRY_AGAIN,
    BotContext,
    Later,
    ShuttingDown,
    Superseded,
    error_result,
    now_text,
    unreadable_error,
)
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.pulls.actions.environments import destroy_environment, drop_environment, outlive_pull
from mergeplan.bot.pulls.actions.groups import drop_group_environment, plan_group
from mergeplan.bot.pulls.actions.planning import judge_plan, make_plan
from mergeplan.bot.pulls.actions.stacks import await_layer, leave_layers
from mergeplan.bot.pulls.actions.steps import (
    await_prod,
    carry_over,
    changes_nothing,
    hand_to_prod,
    hold_pull,
    revert_merge,
    skip_pull,
)
from mergeplan.bot.pulls.base_rules import concerns_us, read_rules
from mergeplan.bot.pulls.decide import Action, MakePlan, Next, decide_action
from mergeplan.bot.pulls.neighbours import join_stack, tell_layers, wake_pulls_above
from mergeplan.bot.pulls.outside_readers import note_readers
from mergeplan.bot.pulls.publish import publish_record
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.pulls.questions import Questions
from mergeplan.bot.pulls.radar import look_around
from mergeplan.bot.pulls.routing import is_there
from mergeplan.bot.pulls.talk import answer_all, carry_out, pick_up, withdraw_answers
from mergeplan.bot.records import AFTER_MERGE, ProdRecord, Pull, PullRecord, PullState
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.transitions.planning import fail_planning, wait_for_files
from mergeplan.planner.errors import MergeplanError, ProjectError, RequestError

log = structlog.get_logger(__name__)
STEPS_MOST = 12
PASSING = (ForgeFailed, ForgePaused, MergeplanError, Superseded, Later, ShuttingDown)


def reconcile_pull(context: BotContext, job: Job) -> None:
    """Bring one pull request to its target state; raise Superseded, Later or ShuttingDown if it must come back."""
    try:
        gateway = context.forge.repository(job.repository)
        pull = gateway.pull(job.number)
    except ForgeFailed as error:
        if error.status in (404, 410):
            log.info("job_left", key=job.key, why="no such pull request, or the App is not installed")
            return
        raise
    config = BotConfig(prod_branch_name=gateway.default_branch)
    current = PullPass(context, job, gateway, pull, context.checkout(gateway), config, seen=job.seen)
    try:
        _reconcile_pass(current)
    except ProjectError as error:
        show_failure(context, gateway, current.pull, error)
    except CheckoutFailed as error:
        if not show_unreadable(context, gateway, current.pull, error, job.attempts + 1):
            raise
    except PASSING:
        raise
    except Exception as error:
        if job.attempts + 1 < DEFECT_TRIES:
            raise
        log.exception("pull_request_given_up", key=job.key)
        defect = RequestError(f"mergeplan failed ({type(error).__name__}).", hint=TRY_AGAIN)
        show_failure(context, gateway, current.pull, defect)


def _reconcile_pass(current: PullPass) -> None:
    """Decide and act until nothing is left to do, then answer."""
    if not concerns_us(current):
        return
    read_rules(current)
    current.find_place()
    context, gateway, number = current.context, current.gateway, current.pull.number
    base = current.checkout.head(current.config.prod_branch)
    if not (current.config_error or current.record.head or is_there(context, gateway, base, current.pull)):
        log.info("left_alone", key=current.job.key, why="the repository has no such project")
        return
    pick_up(context, gateway, number, gateway.comments.read(number))
    if current.record.refused_at:
        current.update(PullRecord.forget_refusals)
    is_new = not current.record.head or current.record.state is PullState.CLOSED
    for _ in range(STEPS_MOST):
        join_stack(current)
        carry_out(context, gateway, current.pull, current.config)
        record, prod = current.record, current.prod
        action = decide_action(current.pull, record, prod, current.config.prod_branch, time.time())
        log.info("decided", key=current.job.key, action=action.value, state=record.state.value)
        if action in (Action.LEAVE, Action.REST, Action.KEEP):
            _show_state(current, action, record)
            break
        _take_step(current, action, record, prod)
        current.refresh()
    else:
        raise Later(5.0, "it keeps moving")
    tell_layers(current)
    if is_new and current.pull.goes_into(current.config.prod_branch):
        wake_pulls_above(current)
    # Questions are answered when nothing else is left to do; news end it, and the question is tried again.
    questions = Questions(current.context, current.job, current.checkout, current.overtaken, current.is_fork)
    if reason := questions.answer_all(current.record):
        raise Superseded(reason)
    answer_all(context, gateway, number, current.config)
    withdraw_answers(context, gateway, number)


def _show_state(current: PullPass, action: Next, record: PullRecord) -> None:
    match action:
        case Action.REST if record.head:
            judge_plan(current)
            look_around(current.inbox, current.record)
            note_readers(current.context, current.record)
            publish_record(current.inbox, current.gateway, record)
        case Action.KEEP:
            outlive_pull(current, record)
            look_around(current.inbox, current.record)
            if record.head:
                publish_record(current.inbox, current.gateway, current.record)


def _take_step(current: PullPass, action: Next, record: PullRecord, prod: ProdRecord) -> None:
    match action:
        case Action.CARRY_OVER:
            carry_over(current, record, prod)
        case Action.PLAN_GROUP:
            judge_plan(current)  # an approval may have come with the group
            publish_record(current.inbox, current.gateway, record)
            plan_group(current)
        case Action.DROP_GROUP:
            drop_group_environment(current)
        case Action.DESTROY:
            destroy_environment(current, record)
        case Action.HOLD:
            hold_pull(current)
        case Action.SKIP if changes_nothing(current, record, prod):
            make_plan(current, "")
        case Action.SKIP:
            skip_pull(current, prod.skip_label)
        case Action.WAIT_FOR_PROD:
            await_prod(current)
        case Action.WAIT_FOR_LAYER:
            await_layer(current)
        case Action.LEAVE_STACK:
            leave_layers(current, record)
        case MakePlan(reason):
            make_plan(current, reason)
        case Action.DROP_ENVIRONMENT:
            drop_environment(current, record)
        case Action.OPEN_REVERT:
            revert_merge(current, record)
        case Action.HAND_TO_PROD:
            hand_to_prod(current)


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
