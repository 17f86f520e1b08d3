"""`/rollback`: restore prod to an earlier revision and comment on each pull request that it takes back.

What is begun is written down first, so that a process that dies is followed by one that goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.prod.planner_calls import Ended, ProdPlanner
from mergeplan.bot.pull_parts import NOT_REVERSED, Reversal
from mergeplan.bot.records import ProdRecord, PullRecord, PullState
from mergeplan.bot.report.rollback import rollback_outcome_words
from mergeplan.bot.results import PlannerOutcome

OVER: dict[str, Any] = {"rollback_by": "", "rollback_to": 0, "rollback_start": 0}


@dataclass(frozen=True)
class Rollbacks:
    """Rollbacks of one repository, in prod's turn; `show` brings GitHub in line with a record."""

    inbox: Inbox
    repository: str
    planner: ProdPlanner
    show: Callable[[PullRecord], PullRecord]

    def roll_back(self, prod: ProdRecord, number: int, who: str, revision: int) -> Ended | None:
        """Points prod back, once; how the planner ended when it did not, and then nothing has moved."""
        begun = self.inbox.pulls.get(self.repository, number).rollback.start
        outcome = None
        if begun in (0, prod.revision):
            others = tuple(pull.number for pull in self._pulls_since(revision) if pull.number != number)
            self._change(number, rollback_start=prod.revision, reversal=Reversal(who, revision, others))
            ended = self.planner.roll_back(prod.promoted_commit, revision, who, number)
            outcome, row = ended.outcome, ended.row
            if not outcome.ok:
                return ended
            at = {"revision": row.revision if row else prod.revision + 1, "plan_id": row.plan_id if row else ""}
            self.inbox.prods.change(self.repository, **at, attempts=0)
        self._went_back(number, who, revision, outcome)
        self.inbox.decisions.record(self.repository, number, who, f"rolled prod back to revision {revision}")
        return None

    def refuse(self, number: int, reason: str) -> None:
        """A rollback that cannot be."""
        self._change(number, **OVER, reversal=NOT_REVERSED, reason=reason)

    def _went_back(self, number: int, who: str, revision: int, outcome: PlannerOutcome | None) -> None:
        """Writes down what prod shows no more; of the pull request where it was asked for last, which ends it."""
        reason = rollback_outcome_words(who, revision, outcome)
        for pull in self._pulls_since(revision):
            if pull.number != number:
                why = {"reason": f"{reason} It was asked for in #{number}.", "reversal": Reversal(who, revision)}
                self.show(self._change(pull.number, **OVER, **why, state=PullState.ROLLED_BACK))
        back = replace(self.inbox.pulls.get(self.repository, number).rollback.reversal, to_open=True)
        self.show(self._change(number, **OVER, reason=reason, reversal=back, state=PullState.ROLLED_BACK))

    def _pulls_since(self, revision: int) -> list[PullRecord]:
        """The pull requests that came to prod after a revision."""
        pulls = self.inbox.pulls.all(self.repository)
        return [pull for pull in pulls if pull.state is PullState.PROMOTED and pull.promotion.revision > revision]

    def _change(self, number: int, **changes: Any) -> PullRecord:
        return self.inbox.pulls.change(self.repository, number, **changes)
