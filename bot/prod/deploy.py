"""`/deploy`: prod is promoted to what a pull request would give, then it is merged with the head that was reviewed.

Each step is written down before it is done. Where the merge fails, or gives another tree than the promoted one, prod
goes back to the revision before; what was merged then reaches prod as any merge does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import structlog

from mergeplan.bot.context import BotContext, Later
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.github.gateway import GitHubFailed, RepositoryGateway
from mergeplan.bot.github.patience import is_passing
from mergeplan.bot.prod.decide import may_retry
from mergeplan.bot.prod.gate import Gatekeeper
from mergeplan.bot.prod.planner_calls import ProdPlanner, append_move
from mergeplan.bot.pulls.arguments import merge_arguments
from mergeplan.bot.records import ProdRecord, Pull, PullRecord, PullState
from mergeplan.bot.report.states import blockers
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.transitions.planning import Transition
from mergeplan.bot.transitions.prods import set_revision
from mergeplan.bot.transitions.promotion import begin_deploy, promote_deploy, refuse_deploy, set_decision

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Deployer:
    """Deploys of one repository, in prod's turn."""

    context: BotContext
    gateway: RepositoryGateway
    checkout: Checkout
    planner: ProdPlanner
    gatekeeper: Gatekeeper
    branch: str

    def deploy(self, prod: ProdRecord, number: int) -> str:
        """Continue a deploy from its stage; return the merge commit if prod and the branch show it, else ''."""
        record, pull = self._get_record(number), self.gateway.pull(number)
        if not record.deploy.stage:
            refusal = self._find_refusal(prod, record, pull)
            if refusal:
                return self._refuse_deploy(number, refusal)
            record = self._update_pull(number, partial(begin_deploy, prod_revision=prod.revision))
        if record.deploy.stage == "promoting" and (refusal := self._promote_pull(prod, record)):
            return self._refuse_deploy(number, refusal)
        return self._merge_pull(number)

    def refuse(self, number: int, why: str) -> None:
        self._refuse_deploy(number, why)

    def _find_refusal(self, prod: ProdRecord, record: PullRecord, pull: Pull) -> str:
        if not pull.is_open or pull.head != record.deploy.head or record.head != pull.head:
            return "A commit was pushed, or the pull request was closed, since `/deploy` was typed."
        if record.state is not PullState.PLANNED or record.base.prod_revision != prod.revision:
            return "The plan that was shown is not the plan any more. Look at the new one, then say it again."
        if self.gateway.branch_head(self.branch) != prod.promoted_commit:
            return f"`{self.branch}` has moved on. Look at the new plan, then say it again."
        decision = self.gatekeeper.decision_of(prod, record)
        if decision != record.rules.decision:
            record = self._update_pull(record.number, partial(set_decision, decision=decision))
        return " ".join(problem.message for problem in blockers(record))

    def _promote_pull(self, prod: ProdRecord, record: PullRecord) -> str:
        """Make prod show what the merge would give; return the reason if that fails."""
        commit = self.checkout.merge(prod.promoted_commit, record.deploy.head).commit
        ended = self.planner.apply(commit, record.number, merge_arguments(record))
        if not ended.outcome.ok:
            attempts = prod.attempts + 1
            retry = may_retry(ended.outcome, attempts)
            tries = attempts if retry else 0
            self._update_prod(lambda stored: replace(stored, attempts=tries))
            if retry:
                raise Later(min(60.0, 2.0 * attempts), f"the deploy of #{record.number} is tried again")
            problems = ended.outcome.problems
            return problems[0].message if problems else "The promotion failed."
        revision, plan_id = (ended.row.revision, ended.row.plan_id) if ended.row else (prod.revision + 1, "")
        moves = append_move(prod, revision, ended.outcome)
        self._update_prod(lambda stored: replace(set_revision(stored, revision, plan_id), moves=moves))
        lines = pack_outcome(ended.finished.lines, ended.finished.exit_code)
        self._update_pull(record.number, partial(promote_deploy, lines=lines, revision=revision))
        return ""

    def _merge_pull(self, number: int) -> str:
        record = self._get_record(number)
        try:
            sha = self.gateway.merge(
                number,
                record.deploy.head,
                self.gatekeeper.merge_method(self.context.inbox.prods.get(self.gateway.name)),
            )
        except GitHubFailed as error:
            if is_passing(error.status):
                raise
            return self._restore_prod(record, f"GitHub did not merge it: {error}.")
        self.checkout.fetch(self.branch, number)
        if self.checkout.tree(sha) != record.base.tree:
            return self._restore_prod(
                record, f"`{self.branch}` had moved before the merge, which is promoted in its turn."
            )
        log.info("deployed", repository=self.gateway.name, pull_request=number, commit=sha)
        return sha

    def _restore_prod(self, record: PullRecord, why: str) -> str:
        prod = self.context.inbox.prods.get(self.gateway.name)
        who, to = record.deploy.by, record.deploy.start
        ended = self.planner.roll_back(prod.promoted_commit, to, who, record.number)
        if not ended.outcome.ok:
            raise Later(5.0, f"prod could not yet go back to revision {to}")
        row = ended.row
        revision, plan_id = (row.revision, row.plan_id) if row else (prod.revision + 1, "")
        self._update_prod(lambda stored: replace(stored, revision=revision, plan_id=plan_id))
        decision = f"took prod back to revision {to}: {why}"
        self.context.inbox.decisions.record(self.gateway.name, record.number, who, decision)
        return self._refuse_deploy(record.number, f"{why} Prod is back at the tables of revision {to}.")

    def _refuse_deploy(self, number: int, why: str) -> str:
        self._update_pull(number, partial(refuse_deploy, reason=why))
        log.info("deploy_refused", repository=self.gateway.name, pull_request=number, why=why)
        self.context.inbox.queue.wake(self.gateway.name, number)
        return ""

    def _get_record(self, number: int) -> PullRecord:
        return self.context.inbox.pulls.get(self.gateway.name, number)

    def _update_pull(self, number: int, transition: Transition) -> PullRecord:
        return self.context.inbox.pulls.update(self.gateway.name, number, transition)

    def _update_prod(self, transition: Callable[[ProdRecord], ProdRecord]) -> None:
        self.context.inbox.prods.update(self.gateway.name, transition)
