"""`/deploy`: prod is promoted to what a pull request would give, then it is merged with the head that was reviewed.

Each step is written down before it is done. Where the merge fails, or gives another tree than the promoted one, prod
goes back to the revision before; what was merged then reaches prod as any merge does.
"""

from dataclasses import replace
from functools import partial

from mergeplan.bot.context import Later
from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.prod.decide import may_retry
from mergeplan.bot.prod.planner_calls import append_move
from mergeplan.bot.prod.prod_pass import ProdPass
from mergeplan.bot.prod.reading_pulls import replan_readers
from mergeplan.bot.pulls.arguments import merge_arguments
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.report import notices
from mergeplan.bot.report.markdown import inert_text
from mergeplan.bot.report.states import blockers
from mergeplan.bot.transitions.prods import set_revision
from mergeplan.bot.transitions.promotion import (
    begin_deploy,
    conclude_deploy,
    promote_deploy,
    refuse_deploy,
    set_decision,
)

OTHER_BASE = "It merges into `{}` now, and not into `{}`."


def deploy_pull(current: ProdPass, number: int) -> None:
    """Promote and merge; when both are done, prod and its branch show the same."""
    commit = _continue_deploy(current, number)
    if commit:
        current.show_commit(commit, current.prod.revision, current.prod.plan_id)
        by = current.record(number).deploy.by
        current.inbox.decisions.record(current.repository, number, by, f"deployed {commit}")
        current.show(current.update_pull(number, partial(conclude_deploy, merge_sha=commit)))
        current.notify(notices.announce_deploy(current.repository, number, by))
        current.facts = replace(current.facts, head=commit)
    current.wake_pulls()


def refuse_deploy_request(current: ProdPass, number: int, why: str) -> str:
    """Refuse a deploy that is not possible; return no merge commit."""
    current.update_pull(number, partial(refuse_deploy, reason=why))
    current.log.info("deploy_refused", pull_request=number, why=why)
    current.wake(number)
    return ""


def _continue_deploy(current: ProdPass, number: int) -> str:
    """Continue a deploy from its stage; return the merge commit if prod and the branch show it, else ''."""
    prod, record = current.prod, current.record(number)
    if not record.deploy.stage:
        if refusal := _find_refusal(current, record):
            return refuse_deploy_request(current, number, refusal)
        record = current.update_pull(number, partial(begin_deploy, prod_revision=prod.revision))
    if record.deploy.stage == "promoting" and (refusal := _promote_pull(current, record)):
        return refuse_deploy_request(current, number, refusal)
    return _merge_pull(current, number)


def _find_refusal(current: ProdPass, record: PullRecord) -> str:
    """Return the reason why it may not be promoted now; read everything again."""
    prod, pull = current.prod, current.gateway.pull(record.number)
    if not pull.is_open or pull.head != record.deploy.head or record.head != pull.head:
        return "A commit was pushed, or the pull request was closed, since `/deploy` was typed."
    if pull.base_ref != current.branch:
        return OTHER_BASE.format(pull.base_ref, current.branch)
    if record.state is not PullState.PLANNED or record.base.prod_revision != prod.revision:
        return "The plan that was shown is not the plan any more. Look at the new one, then run the command again."
    if current.gateway.branch_head(current.branch) != prod.promoted_commit:
        return f"`{current.branch}` has moved on. Look at the new plan, then run the command again."
    decision = current.gatekeeper.decision_of(prod, record)
    if decision != record.rules.decision:
        record = current.update_pull(record.number, partial(set_decision, decision=decision))
    return " ".join(problem.message for problem in blockers(record))


def _promote_pull(current: ProdPass, record: PullRecord) -> str:
    """Make prod show what the merge would give; return the reason if that fails."""
    prod = current.prod
    commit = current.checkout.merge(prod.promoted_commit, record.deploy.head).commit
    ended = current.planner.apply(commit, record.number, merge_arguments(record))
    if not ended.outcome.ok:
        attempts = prod.attempts + 1
        retry = may_retry(ended.outcome, attempts)
        tries = attempts if retry else 0
        current.update(lambda stored: replace(stored, attempts=tries))
        if retry:
            raise Later(min(60.0, 2.0 * attempts), f"the deploy of #{record.number} is tried again")
        problems = ended.outcome.problems
        return problems[0].message if problems else "The promotion failed."
    revision, plan_id = ended.position(prod)
    moves = append_move(prod, revision, ended.outcome)
    current.update(lambda stored: replace(set_revision(stored, revision, plan_id), moves=moves))
    current.update_pull(record.number, partial(promote_deploy, lines=ended.lines, revision=revision))
    replan_readers(current.context, current.repository, ended.outcome.plan)
    return ""


def _merge_pull(current: ProdPass, number: int) -> str:
    record, method = current.record(number), current.gatekeeper.merge_method(current.prod)
    if (pull := current.gateway.pull(number)).base_ref != current.branch:
        return _restore_prod(current, record, OTHER_BASE.format(pull.base_ref, current.branch))
    try:
        sha = current.gateway.merge(number, record.deploy.head, method)
    except ForgeFailed as error:
        if error.is_passing:
            raise
        return _restore_prod(current, record, f"GitHub did not merge it: {error}.")
    current.checkout.fetch(current.branch, number)
    is_there = current.checkout.contains(current.checkout.head(current.branch), sha)
    if not is_there or current.checkout.tree(sha) != record.base.tree:
        moved = f"`{current.branch}` had moved before the merge, which is promoted in its turn."
        return _restore_prod(current, record, moved)
    current.log.info("deployed", pull_request=number, commit=sha)
    return sha


def _restore_prod(current: ProdPass, record: PullRecord, why: str) -> str:
    prod, who, to = current.prod, record.deploy.by, record.deploy.start
    ended = current.planner.roll_back(prod.promoted_commit, to, who, record.number)
    if not ended.outcome.ok:
        raise Later(5.0, f"prod could not yet go back to revision {to}")
    revision, plan_id = ended.position(prod)
    current.update(lambda stored: replace(stored, revision=revision, plan_id=plan_id))
    decision = f"took prod back to revision {to}: {inert_text(why)}"
    current.inbox.decisions.record(current.repository, record.number, who, decision)
    return refuse_deploy_request(current, record.number, f"{why} Prod is back at the tables of revision {to}.")
