"""Pull requests into a branch with an environment of its own: each is planned against that one, not against prod.

Nothing is built for them: what is computed, the push that the merge is computes. Their code is treated as that of any
pull request: it runs isolated, on the gateways of prod's configuration. Those of forks are left alone.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from mergeplan.bot.branches import BranchRecord, PullPreview
from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.context import BotContext, PlannerCall, error_result, failure_result, unreadable_error
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.call import BadCommit
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.prods import update_branch
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.pulls.publish import write_check
from mergeplan.bot.records import ProdRecord, Pull
from mergeplan.bot.report.checks.check import CheckView
from mergeplan.bot.report.checks.preview import (
    BranchPreview,
    preview_check,
    preview_comment,
    preview_marker,
    preview_running,
    preview_withdrawn,
)
from mergeplan.planner.contract.result import DiffRow, ResultLine

log = structlog.get_logger(__name__)
PULLS_MOST = 20  # of one branch that are planned


@dataclass(frozen=True)
class Previews:
    context: BotContext
    job: Job
    gateway: RepositoryGateway
    checkout: Checkout
    prod: ProdRecord

    def bring_in_line(self, record: BranchRecord, pulls: tuple[Pull, ...]) -> None:
        """Plan each open pull request into the branch whose head or environment differs from the planned one."""
        own_pulls = [pull for pull in pulls if self._is_ours(pull, record)][:PULLS_MOST]
        previews_by_number = {preview.number: preview for preview in record.previews}
        for pull in own_pulls:
            current_preview = PullPreview(pull.number, pull.head, record.promoted_commit)
            if previews_by_number.get(pull.number) != current_preview and self._plan_pull(record, pull):
                previews_by_number[pull.number] = current_preview
                self._store_previews(record, previews_by_number)
        open_numbers = {pull.number for pull in own_pulls}
        if gone := previews_by_number.keys() - open_numbers:
            for number in gone:
                self._take_back(record, number)
            self._store_previews(
                record, {number: previews_by_number[number] for number in previews_by_number if number not in gone}
            )

    def _is_ours(self, pull: Pull, record: BranchRecord) -> bool:
        return pull.is_open and pull.base_ref == record.branch and not pull.is_fork

    def _store_previews(self, record: BranchRecord, previews: dict[int, PullPreview]) -> None:
        sorted_previews = tuple(previews[number] for number in sorted(previews))
        self.context.inbox.prods.update(
            self.job.repository, update_branch, record.branch, lambda stored: replace(stored, previews=sorted_previews)
        )

    def _take_back(self, record: BranchRecord, number: int) -> None:
        """Remove the promise of a comment about a merge into another branch."""
        pull = self.gateway.pull(number)
        if pull.is_open and pull.base_ref != record.branch:
            text = preview_withdrawn(self.job.repository, record.environment, pull.base_ref)
            self.gateway.comments.write(number, text, preview_marker(self.job.repository))

    def _plan_pull(self, record: BranchRecord, pull: Pull) -> bool:
        """Return True when it was planned and shown; a head that is gone has a newer one on its way."""
        self.checkout.fetch(record.branch, pull.number)
        if not self.checkout.has(pull.head):
            return False
        self._write_check(pull, preview_running(record.environment))
        finished, changes = self._plan_merge(record, pull)
        shown = record.branch, record.environment, record.promoted_commit, record.revision
        preview = BranchPreview(*shown, finished.outcome, changes)
        log.info("branch_preview", repository=self.job.repository, pull_request=pull.number, ok=preview.is_fine)
        marker = preview_marker(self.job.repository)
        self.gateway.comments.write(pull.number, preview_comment(self.job.repository, preview), marker)
        self._write_check(pull, preview_check(preview))
        return True

    def _plan_merge(self, record: BranchRecord, pull: Pull) -> tuple[Finished, tuple[DiffRow, ...]]:
        base = record.promoted_commit or self.checkout.head(record.branch)
        try:
            merge = self.checkout.merge(base, pull.head)
            if not merge.commit:
                paths = ", ".join(f"`{path}`" for path in merge.conflicts[:10]) or "its history"
                hint = f"Merge `{record.branch}` into the branch and resolve it."
                return failure_result(f"It conflicts with `{record.branch}` in {paths}.", "Conflict", hint=hint), ()
            if not self.context.has_project(self.checkout, merge.commit):
                return self.context.no_project(self.checkout, "A merge"), ()
            return self._ask_planner(record, merge.commit)
        except BadCommit as error:
            return error_result(unreadable_error(error)), ()

    def _ask_planner(self, record: BranchRecord, commit: str) -> tuple[Finished, tuple[DiffRow, ...]]:
        call = PlannerCall(self.job, Path(), ("plan", record.environment, "--no-physical-plan"), new_run_id())
        with self.context.open_change(call, self.checkout, self.prod.promoted_commit, commit) as call:
            finished = self.context.plan(call)
            if not finished.outcome.ok or not record.promoted_commit:
                return finished, ()
            compared = self.context.plan(replace(call, arguments=("diff", record.environment)))
        results = [line for line in compared.lines if isinstance(line, ResultLine)]
        return (finished, results[-1].changes or ()) if results and results[-1].ok else (compared, ())

    def _write_check(self, pull: Pull, view: CheckView) -> None:
        write_check(self.gateway, pull.head, view, f"mergeplan:branch-plan:{pull.number}")
