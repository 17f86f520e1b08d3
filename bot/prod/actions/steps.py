"""Steps of the prod branch that are not promoted by themselves: skipped, held, taken with a later one, or settled."""

from dataclasses import replace
from functools import partial

from mergeplan.bot.prod.actions.promotions import promote_merge, promote_push
from mergeplan.bot.prod.decide import Step
from mergeplan.bot.prod.prod_pass import ProdPass
from mergeplan.bot.records import PullState
from mergeplan.bot.report import notices
from mergeplan.bot.report.checks.prod import push_hold_check
from mergeplan.bot.transitions.prods import hold_push
from mergeplan.bot.transitions.promotion import hold_merge, settle_merge


def skip_step(current: ProdPass, step: Step) -> None:
    current.update(lambda prod: replace(prod, commit=step.commit, promoted_commit=step.commit))
    if step.number:
        settle = partial(settle_merge, reason="", merge_sha=step.commit)
        current.show(current.update_pull(step.number, settle))
        current.wake(step.number)


def hold_step(current: ProdPass, step: Step) -> None:
    """Keep a step from prod and show who is missing or until when; all later steps wait too."""
    decision = current.gatekeeper.decision(current.prod, step)
    current.log.info("prod_held", commit=step.commit, pull_request=step.number)
    if not step.number:
        current.update(partial(hold_push, commit=step.commit, decision=decision))
        current.check(step.commit, push_hold_check(decision))
        return
    judged = current.gatekeeper.record_at(step)
    hold = partial(hold_merge, judged=judged, merge_sha=step.commit, decision=decision)
    current.show(current.update_pull(step.number, hold))
    current.notify(notices.announce_hold(current.repository, step.number, decision))


def pass_over(current: ProdPass, step: Step) -> None:
    """Take the held steps along with a later one that the rules let in; they are settled when prod shows them."""
    if current.is_untouched(current.prod, step):
        skip_step(current, step)
    elif step.number:
        promote_merge(current, step.number, step.commit)
    else:
        promote_push(current, step.commit)


def conclude_shown_merge(current: ProdPass, number: int) -> None:
    """Store that prod shows it since the merge that prod shows, so that a rollback of that takes this one back too."""
    shown = current.prod.promoted_commit
    pulls = (pull for pull in current.facts.pulls if pull.promotion.merge_sha == shown)
    carrier = next((pull for pull in pulls if pull.state is PullState.PROMOTED), None)
    with_it, revision = (f"#{carrier.number}", carrier.promotion.revision) if carrier else (shown[:7], 0)
    settle = partial(settle_merge, reason=f"Prod shows it together with {with_it}.", revision=revision)
    current.show(current.update_pull(number, settle))
    current.wake(number)
