"""Promotions of merges and pushes: planned and applied with the tree of a commit, and tried again while that helps."""

import time
from dataclasses import replace
from functools import partial

from mergeplan.bot.child.planner_process import new_run_id
from mergeplan.bot.context import Later
from mergeplan.bot.prod.decide import Step, may_retry
from mergeplan.bot.prod.planner_calls import Ended, OnLine, list_reasons
from mergeplan.bot.prod.prod_pass import ProdPass
from mergeplan.bot.pulls.arguments import merge_arguments, merge_digest
from mergeplan.bot.pulls.publish import Shower
from mergeplan.bot.report import notices
from mergeplan.bot.report.checks.prod import prod_check
from mergeplan.bot.report.selection import merge_sentence
from mergeplan.bot.report.words import promotion_summary
from mergeplan.bot.transitions.planning import report_progress
from mergeplan.bot.transitions.prods import take_commit
from mergeplan.bot.transitions.promotion import begin_promotion, conclude_promotion, fail_promotion
from mergeplan.planner.contract.lines import BatchLine
from mergeplan.planner.contract.wire import Line


def promote_merge(current: ProdPass, number: int, commit: str) -> None:
    """Promote a merge: the pull request's own tables if nothing moved, else what is planned and built again."""
    current.log.info("prod_step", commit=commit, pull_request=number)
    before = current.record(number)
    merged = current.gatekeeper.as_merged(current.prod, Step(commit, number))
    record = current.update_pull(number, partial(begin_promotion, merge_sha=commit, run_id=new_run_id()))
    with Shower(current.inbox, current.gateway, record) as shower:
        on_line = _progress_reporter(current, number, shower)
        ended = current.planner.apply(commit, number, merge_arguments(merged), on_line)
    if ended.outcome.ok:
        prod = current.record_promotion(commit, ended)
        revision = prod.revision if ended.outcome.promotion else 0
        reason = merge_sentence(record, merge_digest(before), ended.outcome)
        conclude = partial(conclude_promotion, lines=ended.lines, revision=revision, reason=reason)
        record = current.update_pull(number, conclude)
        by, plan = before.deploy.by, ended.outcome.plan
        decision = f"promoted {commit}{' against the rules' if by and not record.rules.decision.is_ok else ''}"
        current.inbox.decisions.record(current.repository, number, by or "merge", decision, plan.id if plan else "")
        current.notify(notices.announce_merge(current.repository, number, ended.outcome))
    else:
        retry_or_continue(current, ended, commit, number)
        current.update(partial(take_commit, commit=commit))
        record = current.update_pull(number, partial(fail_promotion, lines=ended.lines))
        current.notify(notices.announce_merge_failure(current.repository, number, ended.outcome))
    current.show(record)
    current.wake_pulls()


def promote_push(current: ProdPass, commit: str) -> None:
    """Plan and apply a push to the prod branch that no pull request brought."""
    current.log.info("prod_step", commit=commit, pull_request=0)
    current.check(commit, prod_check("Promoting this push to prod", "", None, True))
    ended = current.planner.apply(commit, 0)
    outcome = ended.outcome
    if outcome.ok:
        current.record_promotion(commit, ended)
        current.notify(notices.announce_push(current.repository, commit, outcome))
        views = promotion_summary(outcome)
        current.check(commit, prod_check(f"In prod. {views}", views, outcome, False))
    else:
        retry_or_continue(current, ended, commit)
        current.update(partial(take_commit, commit=commit))
        current.notify(notices.announce_push_failure(current.repository, commit, outcome))
        current.check(commit, prod_check("Prod was not changed", "This push is not in prod.", outcome, False))
    current.wake_pulls()


def retry_or_continue(current: ProdPass, end: Ended, commit: str, number: int = 0) -> None:
    """Raise Later while another try may help; the comment then says who holds prod."""
    attempts = current.prod.attempts + 1
    if may_retry(end.outcome, attempts):
        current.update(lambda prod: replace(prod, attempts=attempts))
        current.log.warning("prod_not_promoted", commit=commit, attempt=attempts, why=list_reasons(end.outcome))
        if number and end.outcome.may_pass_later:
            current.show_progress(number, f"Waiting: {end.outcome.problems[0].message}")
        raise Later(min(60.0, 2.0 * attempts), f"prod at {commit[:12]} is tried again")
    current.update(lambda prod: replace(prod, attempts=0))


def _progress_reporter(current: ProdPass, number: int, shower: Shower) -> OnLine:
    """Return a listener that shows on the pull request, now and then, which batch is computed."""
    shown_at = time.monotonic()

    def show_batch(line: Line) -> None:
        nonlocal shown_at
        if isinstance(line, BatchLine) and time.monotonic() - shown_at > current.context.settings.progress_seconds:
            shown_at = time.monotonic()
            text = f"Computing what moved: `{line.model}`, batch {line.index} of {line.of}."
            current.update_pull(number, partial(report_progress, progress=text))
            shower.wake()

    return show_batch
