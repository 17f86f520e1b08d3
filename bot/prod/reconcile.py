"""Prod's own work: its first build, the promotion of each merge in order, pushes without a pull request, rollbacks.

Like a pull request's it starts from what is so: the prod branch as it is, and the commits on it since the last one that
was taken on. `decide_prod` says what is done next; `actions/` do it, and write it down before it is shown.
"""

import time
from dataclasses import replace
from functools import partial

import structlog

from mergeplan.bot.context import BotContext, Later
from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.prod.actions.builds import adopt_prod, build_prod
from mergeplan.bot.prod.actions.deploys import deploy_pull, refuse_deploy_request
from mergeplan.bot.prod.actions.promotions import promote_merge, promote_push
from mergeplan.bot.prod.actions.rollbacks import refuse_rollback_request, roll_back
from mergeplan.bot.prod.actions.steps import conclude_shown_merge, hold_step, pass_over, skip_step
from mergeplan.bot.prod.branch import prod_branch
from mergeplan.bot.prod.branches import wake_branches
from mergeplan.bot.prod.catalog import wake_catalog
from mergeplan.bot.prod.decide import (
    Action,
    AdoptProd,
    DeployPull,
    HoldStep,
    Move,
    PassOver,
    ProdFacts,
    PromoteMerge,
    PromotePush,
    RefuseDeploy,
    RefuseRollback,
    RollBack,
    SettleMerge,
    SkipStep,
    StopPlan,
    decide_prod,
)
from mergeplan.bot.prod.planner_calls import list_reasons
from mergeplan.bot.prod.prod_pass import ProdPass, read_facts
from mergeplan.bot.projects import another_project
from mergeplan.bot.pull_parts import UNRULED
from mergeplan.bot.records import ProdRecord, PullState
from mergeplan.bot.report.checks.check import CheckView
from mergeplan.bot.report.checks.prod import prod_check
from mergeplan.bot.report.checks.promotion import NAME
from mergeplan.bot.transitions.prods import hold_push, record_sweep

log = structlog.get_logger(__name__)
ACTIONS_MAX = 500


def reconcile_prod(context: BotContext, job: Job) -> None:
    """Bring prod to its branch; raise Later or ShuttingDown if it must come back."""
    try:
        gateway = context.forge.repository(job.repository)
        branch = prod_branch(context, gateway)
    except ForgeFailed as error:
        if error.status in (404, 409, 410):
            log.info("job_left", key=job.key, why="no such repository or branch, or the App is not installed")
            return
        raise
    if branch is not None:
        _reconcile_pass(ProdPass(context, job, gateway, ProdFacts(ProdRecord(job.repository), branch, "")))


def _reconcile_pass(current: ProdPass) -> None:
    current.facts = replace(current.facts, head=current.checkout.head(current.branch), again=current.prod.again)
    if current.facts.again:
        current.update(lambda prod: replace(prod, again=False))
    for unwritten in current.prod.unwritten:
        view = CheckView(NAME, unwritten.title, unwritten.summary, conclusion=unwritten.conclusion)
        current.check(unwritten.commit, view)
    _check_same_project(current)
    for _ in range(ACTIONS_MAX):
        current.facts = facts = read_facts(current)
        action = decide_prod(facts)
        name = action.value if isinstance(action, Move) else type(action).__name__
        current.log.info("decided", action=name, state=facts.prod.state.value)
        if action is Move.REST:
            if not facts.prod.swept_at:
                current.update(partial(record_sweep, at=facts.now))  # the janitor's time runs from here
            wake_branches(current.context, current.job, current.checkout, current.branch)
            wake_catalog(current.context, current.repository)
            return
        _show_places(current)
        _apply_action(current, action)
        current.gateway.check_identity()  # it may have taken hours, and reviews are read by the name
        if isinstance(action, (PromoteMerge, PromotePush)):
            current.facts = replace(current.facts, again=False)  # once a pass
        if facts.steps and isinstance(action, (SkipStep, PassOver, PromoteMerge, PromotePush)):
            current.facts = replace(current.facts, taken=facts.taken + 1)
    raise Later(5.0, "it keeps moving")


def _check_same_project(current: ProdPass) -> None:
    """Raise RequestError if another project was configured, but the branch still has the one that prod shows.

    That one would remove every table of prod. A project that moved left no configuration.
    """
    folder, head, prod = current.checkout.project, current.facts.head, current.prod
    if prod.folder in ("", folder) or not current.context.has_project(current.checkout, head, prod.folder):
        return
    error = another_project(prod.folder, folder)
    if prod.held != head:
        current.update(partial(hold_push, commit=head, decision=UNRULED))
        current.check(head, prod_check("Prod waits: its project is another one", str(error), None, False))
    raise error


def _apply_action(current: ProdPass, action: Action) -> None:
    match action:
        case Move.FOLLOW_BRANCH:
            current.update(lambda prod: replace(prod, branch=current.branch))
            current.wake_pulls()
        case Move.LOOK_FOR_PROD:
            planned_prod = current.planner.look(current.facts.head)
            current.facts = replace(current.facts, looked=True, planned_prod=planned_prod)
        case AdoptProd(row):
            adopt_prod(current, row)
        case Move.BUILD_PROD:
            build_prod(current)
        case RefuseRollback(number, reason):
            refuse_rollback_request(current, number, reason)
        case RollBack(number, who, revision):
            roll_back(current, number, who, revision)
        case StopPlan(number):
            current.inbox.deliveries.notice(current.repository, number, "pull_request.closed")
            raise Later(1.0, f"the plan of #{number} is being stopped")
        case SkipStep(step):
            skip_step(current, step)
        case DeployPull(number):
            deploy_pull(current, number)
        case RefuseDeploy(number, reason):
            refuse_deploy_request(current, number, reason)
        case HoldStep(step):
            hold_step(current, step)
        case PassOver(step):
            pass_over(current, step)
        case PromoteMerge(number, commit):
            promote_merge(current, number, commit)
        case PromotePush(commit):
            promote_push(current, commit)
        case SettleMerge(number):
            conclude_shown_merge(current, number)
        case Move.RUN_JANITOR:
            run_janitor(current)


def _show_places(current: ProdPass) -> None:
    waiting = [step.number for step in current.facts.steps if step.number]
    for place, number in enumerate(waiting[1:], start=2):
        text = f"Number {place} in the queue for prod, behind #{waiting[place - 2]}."
        record = current.record(number)
        if record.state is PullState.MERGED and record.run.progress != text:
            current.show_progress(number, text)


def run_janitor(current: ProdPass) -> None:
    """Drop what is unused; environments of pull requests that are not over do not expire."""
    current.update(partial(record_sweep, at=time.time()))  # first: one that fails is not tried again and again
    pulls = current.inbox.pulls.all(current.repository)
    pull_environments = [p.environment.name for p in pulls if p.environment.name and p.is_kept(time.time())]
    keep = (*pull_environments, *(record.environment for record in current.prod.branches))
    outcome = current.planner.sweep(current.prod.promoted_commit, keep)
    if not outcome.ok:
        current.log.warning("janitor_failed", why=list_reasons(outcome))
        return
    for name in outcome.kept:
        current.log.info("old_versions_kept", table=name.table, why=name.reason)
    current.log.info("janitor_ended", kept=len(keep), cleaned=list(outcome.cleaned))
