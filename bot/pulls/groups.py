"""The merge queue: the plan of a group is built on its head, and the checks that GitHub waits for stand on that head.

A group is the base branch with the pull requests that wait, the last of which is ours. Its environment is its own, so
that the pull request's stays what its comment says; both share tables, and the merge that follows computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import structlog

from mergeplan.bot.child.isolated import brings_code
from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.context import DEFECT_TRIES, BotContext, Later, PlannerCall, failure_result
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Checkout, changes_no_model
from mergeplan.bot.github.gateway import RepositoryGateway
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.pulls.arguments import model_files, plan_arguments
from mergeplan.bot.records import NO_GROUP, PullRecord, PullState
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.rules import BotConfig

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class GroupPlanner:
    """The merge queue's groups of one pull request, while its job has the turn."""

    context: BotContext
    job: Job
    gateway: RepositoryGateway
    checkout: Checkout
    config: BotConfig

    def plan(self) -> None:
        """Plans the newest group, builds it, and notes how it ended."""
        record = self._change_group(state="planning")
        group = record.group
        finished = self._refuse_group(record) or self._plan_group(record)
        if finished is not None and finished.stopped:
            return  # another group took its place
        outcome = finished.outcome if finished else None
        if outcome and (outcome.may_pass_later or outcome.is_defect) and record.run.attempts + 1 < DEFECT_TRIES:
            self._change(attempts=record.run.attempts + 1)
            raise Later(3.0, "the merge queue's group is planned again")
        ok = outcome is None or outcome.ok
        if self._record().group.head == group.head:
            run_lines = pack_outcome(finished.lines, finished.exit_code) if finished else ""
            self._change_group(state="planned" if ok else "failed", run_lines=run_lines)
            self._change(attempts=0)
        log.info("group_planned", repository=self.job.repository, pull_request=self.job.number, ok=ok)

    def drop(self) -> None:
        """Drops the environment of a group that is over."""
        prod = self.context.inbox.prods.get(self.job.repository)
        with self.context.project(self.checkout, prod.promoted_commit) as folder:
            call = PlannerCall(self.job, folder, ("invalidate", self._record().environment.group_name), new_run_id())
            finished = self.context.plan(call)
        self._change(group_exists=False, group=NO_GROUP)
        log.info("group_dropped", pull_request=self.job.number, ok=finished.outcome.ok)

    def _refuse_group(self, record: PullRecord) -> Finished | None:
        """The end of a group that must not run: of a head that is held or skipped, or that the rules keep."""
        if record.state is PullState.HELD:
            return failure_result("A maintainer must let the pull request's commit be planned first.", "Refused")
        if record.state is PullState.SKIPPED:
            return failure_result("The pull request has no plan: a label keeps it from being planned.", "Refused")
        if not record.rules.decision.is_ok:
            return failure_result("The rules do not let this pull request into prod yet: see its plan.", "Refused")
        return None

    def _plan_group(self, record: PullRecord) -> Finished | None:
        """The plan of the group; None where it changes no model."""
        commit, prod = record.group.head, self.context.inbox.prods.get(self.job.repository)
        base = prod.promoted_commit
        try:
            tree = self.checkout.tree(commit)
        except CheckoutFailed:
            return failure_result("The group's commit is gone: the merge queue made another one.", "Conflict")
        changed = self.checkout.diff_paths(base, commit)
        self._change_group(tree=tree, base_sha=base)
        if changes_no_model(changed, self.checkout.project):
            return None
        if not self.context.has_project(self.checkout, commit):
            return self.context.no_project(self.checkout, "A merge")
        return self._run(record, base, changed)

    def _run(self, record: PullRecord, base: str, paths: tuple[str, ...]) -> Finished:
        record = self._change(group_exists=True)
        run_id, commit = new_run_id(), record.group.head
        edited = model_files(paths, self.checkout.project)
        wanted = record.change(environment_name=record.environment.group_name, overrides=(), select=())
        alone = self.config.model_copy(update={"physical_plan": False})
        arguments = plan_arguments(wanted, alone, self.config.diff.nothing(), edited)
        words = ("--overrides-from", record.environment.name) if record.environment.exists else ()
        with (
            self.context.project(self.checkout, commit) as folder,
            self.context.gateways(self.checkout, base, run_id) as gateways,
        ):
            call = PlannerCall(self.job, folder, (*arguments, *words), run_id, gateways, brings_code(paths, folder))
            return self.context.plan(call, should_stop=lambda: self._overtaken(commit))

    def _overtaken(self, commit: str) -> str:
        return "" if self._record().group.head == commit else "superseded"

    def _record(self) -> PullRecord:
        return self.context.inbox.pulls.get(self.job.repository, self.job.number)

    def _change(self, **changes: Any) -> PullRecord:
        return self.context.inbox.pulls.change(self.job.repository, self.job.number, **changes)

    def _change_group(self, **changes: Any) -> PullRecord:
        return self._change(group=replace(self._record().group, **changes))
