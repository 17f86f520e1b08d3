"""The end of a pull request's environment: kept for a while, dropped on demand, or dropped when all is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog

from mergeplan.bot.child.planner_process import new_run_id
from mergeplan.bot.context import DEFECT_TRIES, BotContext, Later, PlannerCall
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.github.gateway import RepositoryGateway
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.pulls.publish import publish
from mergeplan.bot.records import AFTER_MERGE, Pull, PullRecord, PullState
from mergeplan.bot.rules import BotConfig

log = structlog.get_logger(__name__)
STOPPED: dict[str, Any] = {"progress": "", "fresh": False, "overrides": (), "again": False, "rollback_by": ""}


@dataclass(frozen=True)
class EnvironmentEnd:
    """The environment of one pull request, while its job has the turn."""

    context: BotContext
    job: Job
    gateway: RepositoryGateway
    checkout: Checkout
    config: BotConfig

    def keep(self, record: PullRecord) -> None:
        """Closed, and its environment outlives it: all that runs ends, and nothing is dropped."""
        if record.state not in AFTER_MERGE and record.state is not PullState.CLOSED:
            self._change(state=PullState.CLOSED, **STOPPED, reason="")

    def destroy(self, record: PullRecord) -> None:
        """Drops it on demand; of an open pull request a plan is made when somebody asks for it."""
        over = record.state in (*AFTER_MERGE, PullState.CLOSED)
        self._drop(record)
        self._change(destroy_by="", environment_exists=False, attempts=0)
        if not over:
            reason = f"{record.environment.destroy_by} dropped its environment; `/plan` builds it again."
            self._change(state=PullState.CANCELLED, reason=reason, progress="", fresh=False, overrides=(), again=False)

    def drop(self, pull: Pull, record: PullRecord) -> None:
        """Drops it, once, of a pull request that is over; one that was promoted keeps its state."""
        if record.state is PullState.PROMOTED and not self.config.invalidate_environment_after_deploy:
            self._change(environment_exists=False)
            return
        if record.state not in AFTER_MERGE:
            elsewhere = f"It merges into `{pull.base_ref}` now, not into `{self.config.prod_branch}`."
            record = self._change(**STOPPED, reason=elsewhere if pull.is_open else "", base_ref=pull.base_ref)
        self._drop(record)
        state = record.state if record.state in AFTER_MERGE else PullState.CLOSED
        publish(self.context.inbox, self.gateway, self._change(state=state, environment_exists=False, attempts=0))

    def _drop(self, record: PullRecord) -> None:
        """The planner drops its views, by prod's own commit: no code of the pull request runs."""
        if not record.environment.exists:
            return
        prod = self.context.inbox.prods.get(self.job.repository)
        branch = prod.branch or self.config.prod_branch
        self.checkout.fetch(branch)
        with self.context.project(self.checkout, prod.promoted_commit or self.checkout.head(branch)) as folder:
            call = PlannerCall(self.job, folder, ("invalidate", record.environment.name), new_run_id())
            outcome = self.context.plan(call).outcome
        gone = any(problem.kind == "RequestError" for problem in outcome.problems)  # it was never built
        if not (outcome.ok or gone) and record.run.attempts + 1 < DEFECT_TRIES:
            self._change(attempts=record.run.attempts + 1)
            raise Later(5.0, "the environment could not be dropped")
        log.info("environment_dropped", key=self.job.key, environment=record.environment.name, ok=outcome.ok)

    def _change(self, **changes: Any) -> PullRecord:
        return self.context.inbox.pulls.change(self.job.repository, self.job.number, **changes)
