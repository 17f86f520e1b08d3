"""`/rollback`: restore prod to an earlier revision and comment on each pull request that it takes back.

What is begun is written down first, so that a process that dies is followed by one that goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.prod.planner_calls import Ended, ProdPlanner
from mergeplan.bot.pull_parts import Reversal
from mergeplan.bot.records import ProdRecord, PullRecord, PullState
from mergeplan.bot.report.rollback import rollback_outcome_words
from mergeplan.bot.results import PlannerOutcome
from mergeplan.bot.transitions.planning import Transition
from mergeplan.bot.transitions.prods import set_revision
from mergeplan.bot.transitions.promotion import begin_rollback, conclude_rollback, refuse_rollback


@dataclass(frozen=True)
class Rollbacks:
    """Rollbacks of one repository, in prod's turn; `show` brings GitHub in line with a record."""

    inbox: Inbox
    repository: str
    planner: ProdPlanner
    show: Callable[[PullRecord], PullRecord]

    def roll_back(self, prod: ProdRecord, number: int, who: str, revision: int) -> Ended | None:
        """Point prod back once; return the planner's end if it failed, and then nothing has moved."""
        begun = self.inbox.pulls.get(self.repository, number).rollback.start
        outcome = None
        if begun in (0, prod.revision):
            other_numbers = tuple(pull.number for pull in self._pulls_since(revision) if pull.number != number)
            reversal = Reversal(who, revision, other_numbers)
            self._update_pull(number, partial(begin_rollback, prod_revision=prod.revision, reversal=reversal))
            ended = self.planner.roll_back(prod.promoted_commit, revision, who, number)
            outcome, row = ended.outcome, ended.row
            if not outcome.ok:
                return ended
            shown = (row.revision, row.plan_id) if row else (prod.revision + 1, "")
            self.inbox.prods.update(self.repository, set_revision, *shown)
        self._went_back(number, who, revision, outcome)
        self.inbox.decisions.record(self.repository, number, who, f"rolled prod back to revision {revision}")
        return None

    def refuse(self, number: int, reason: str) -> None:
        self._update_pull(number, partial(refuse_rollback, reason=reason))

    def _went_back(self, number: int, who: str, revision: int, outcome: PlannerOutcome | None) -> None:
        """Store what prod shows no longer; the pull request of the request comes last, which ends it."""
        reason = rollback_outcome_words(who, revision, outcome)
        for pull in self._pulls_since(revision):
            if pull.number != number:
                pull_reason = f"{reason} It was asked for in #{number}."
                conclude = partial(conclude_rollback, reason=pull_reason, reversal=Reversal(who, revision))
                self.show(self._update_pull(pull.number, conclude))
        reversal = replace(self.inbox.pulls.get(self.repository, number).rollback.reversal, to_open=True)
        self.show(self._update_pull(number, partial(conclude_rollback, reason=reason, reversal=reversal)))

    def _pulls_since(self, revision: int) -> list[PullRecord]:
        pulls = self.inbox.pulls.all(self.repository)
        return [pull for pull in pulls if pull.state is PullState.PROMOTED and pull.promotion.revision > revision]

    def _update_pull(self, number: int, transition: Transition) -> PullRecord:
        return self.inbox.pulls.update(self.repository, number, transition)
