"""Branches with environments of their own: each push is planned and applied, in a turn apart from prod's.

Which branches these are, the commit says that prod shows; a branch cannot name an environment for itself. Its code is
treated as a pull request's: it runs isolated, on the gateways of prod's configuration, within the budget.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from mergeplan.bot.branches import BranchRecord, merge_records
from mergeplan.bot.budgets import cost_limits
from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.context import BotContext, Later, PlannerCall, error_result, unreadable_error
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.call import BadCommit
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.prods import update_branch
from mergeplan.bot.inbox.queue import BRANCHES, Job
from mergeplan.bot.prod.decide import may_retry
from mergeplan.bot.prod.planner_calls import list_reasons
from mergeplan.bot.prod.previews import Previews
from mergeplan.bot.pulls.publish import write_check
from mergeplan.bot.records import Prod, ProdRecord, PullRecord
from mergeplan.bot.report.checks.branch import (
    branch_check,
    branch_given_up,
    branch_overtaken,
    branch_running,
    branch_waiting,
)
from mergeplan.bot.report.checks.check import CheckView
from mergeplan.bot.results import PlannerOutcome
from mergeplan.bot.rules import BotConfig
from mergeplan.planner.errors import ProjectError

log = structlog.get_logger(__name__)


def wake_branches(context: BotContext, job: Job, checkout: Checkout, branch: str) -> None:
    """Wake the job of the branches if the rules that prod shows name some, or named some."""
    prod = context.inbox.prods.get(job.repository)
    if prod.state is not Prod.READY or not prod.promoted_commit:
        return
    try:
        config = context.config(checkout, prod.promoted_commit, branch)
    except ProjectError:
        return
    records = merge_records(prod.branches, (config.branch_environments if config else None) or {})
    if records != prod.branches or any(not record.commit for record in records):
        context.inbox.queue.wake(job.repository, BRANCHES)


def reconcile_branches(context: BotContext, job: Job) -> None:
    """Bring each environment of a branch to its branch's head; raise Later or ShuttingDown if it must come back."""
    prod = context.inbox.prods.get(job.repository)
    if prod.state is not Prod.READY or not prod.promoted_commit:
        return  # prod's job wakes this one when there is something to compare with
    gateway = context.forge.repository(job.repository)
    _BranchReconciliation(context, job, gateway, prod).run()


class _BranchReconciliation:
    def __init__(self, context: BotContext, job: Job, gateway: RepositoryGateway, prod: ProdRecord) -> None:
        self.context = context
        self.job = job
        self.gateway = gateway
        self.prod = prod
        self.checkout = context.checkout(gateway)
        self.log = log.bind(repository=job.repository, key=job.key)

    def run(self) -> None:
        """Take on what each branch holds; the failure of one does not delay the others."""
        self.checkout.fetch(self.prod.branch or self.gateway.default_branch)
        try:
            config = self.context.config(self.checkout, self.prod.promoted_commit, self.prod.branch)
        except ProjectError as error:  # as after an upgrade to a version that refuses a key
            self.log.warning("branches_left_alone", why=str(error))
            return
        environments = config.branch_environments if config else {}
        records = merge_records(self.prod.branches, environments or {})
        if records != self.prod.branches:
            for gone in set(self.prod.branches) - set(records):
                self._end_check(gone, "the rules name it no longer")
            self.context.inbox.prods.update(self.job.repository, lambda prod: replace(prod, branches=records))
        waits = [wait for record in records if config and (wait := self._follow_branch(record, config))]
        self._plan_previews(records)
        if waits:
            raise Later(min(waits), "the environment of a branch is tried again")

    def _plan_previews(self, records: tuple[BranchRecord, ...]) -> None:
        if not records:
            return
        pulls = self.gateway.open_pulls()
        previews = Previews(self.context, self.job, self.gateway, self.checkout, self.prod)
        for record in self.context.inbox.prods.get(self.job.repository).branches:
            previews.bring_in_line(record, pulls)

    def _follow_branch(self, record: BranchRecord, config: BotConfig) -> float:
        """Bring one environment to its branch; return the seconds until the next try, 0.0 if there is none."""
        try:
            head = self.gateway.branch_head(record.branch)
        except ForgeFailed as error:
            if error.status != 404:
                raise
            self._end_check(record, "the branch is gone")
            return 0.0  # there is no such branch, or not yet
        if head == record.commit and not record.again and not record.running:
            return 0.0
        self.checkout.fetch(record.branch)
        head = self.checkout.head(record.branch)
        if record.running not in ("", head):
            self._write_check(record.running, branch_overtaken(record.environment, head))
        attempts = record.attempts + 1 if record.running == head else 1
        self._update_record(record, lambda stored: replace(stored, running=head, attempts=attempts))
        self._write_check(head, branch_running(record.environment))
        outcome = self._apply_commit(record, head, config).outcome
        if not outcome.ok and may_retry(outcome, attempts):
            self.log.warning("branch_not_promoted", branch=record.branch, attempt=attempts, why=list_reasons(outcome))
            if outcome.may_pass_later and outcome.problems:
                self._write_check(head, branch_waiting(record.environment, outcome.problems[0].message))
            return min(60.0, 2.0 * attempts)
        self._write_check(head, branch_check(record.environment, outcome))
        self._update_record(record, partial(_take_commit, commit=head, outcome=outcome))
        self.log.info("branch_taken_on", branch=record.branch, environment=record.environment, ok=outcome.ok)
        return 0.0

    def _apply_commit(self, record: BranchRecord, commit: str, config: BotConfig) -> Finished:
        limits = cost_limits(PullRecord(self.job.repository, 0), config.cost_budget)
        arguments = ("plan", record.environment, "--auto-apply", *limits, "--no-physical-plan", "--note", commit[:12])
        try:
            if not self.context.has_project(self.checkout, commit):
                return self.context.no_project(self.checkout, "This commit")
            call = PlannerCall(self.job, Path(), arguments, new_run_id())
            with self.context.open_change(call, self.checkout, self.prod.promoted_commit, commit) as call:
                finished = self.context.plan(call, should_stop=lambda: self._stop_reason(record, commit))
        except BadCommit as error:
            return error_result(unreadable_error(error))
        if finished.stopped:
            raise Later(0.0, "a newer commit was pushed")
        return finished

    def _stop_reason(self, record: BranchRecord, commit: str) -> str:
        """Return the reason to end a run: a newer push. Call GitHub only if news came."""
        if not self.context.inbox.deliveries.news(self.job.key, self.job.seen):
            return ""
        try:
            head = self.gateway.branch_head(record.branch)
        except (ForgeFailed, ForgePaused):
            return ""
        return f"superseded:{head}" if head != commit else ""

    def _update_record(self, record: BranchRecord, transition: Callable[[BranchRecord], BranchRecord]) -> None:
        self.context.inbox.prods.update(self.job.repository, update_branch, record.branch, transition)

    def _end_check(self, record: BranchRecord, why: str) -> None:
        if record.running:
            self._write_check(record.running, branch_given_up(record.environment, why))
            self._update_record(record, lambda stored: replace(stored, running="", attempts=0))

    def _write_check(self, commit: str, view: CheckView) -> None:
        write_check(self.gateway, commit, view, f"mergeplan:branch:{commit[:12]}")


def _take_commit(record: BranchRecord, commit: str, outcome: PlannerOutcome) -> BranchRecord:
    ended = replace(record, commit=commit, running="", attempts=0, again=False)
    if not outcome.ok:
        return ended
    revision = outcome.promotion.revision if outcome.promotion else record.revision
    return replace(ended, promoted_commit=commit, revision=revision)
