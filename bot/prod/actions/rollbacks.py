"""`/rollback`: restore prod to an earlier revision and comment on each pull request that it takes back.

What is begun is written down first, so that a process that dies is followed by one that goes on from there.
"""

from dataclasses import replace
from functools import partial

from mergeplan.bot.prod.actions.promotions import retry_or_continue
from mergeplan.bot.prod.planner_calls import Ended
from mergeplan.bot.prod.prod_pass import ProdPass
from mergeplan.bot.pull_parts import Reversal
from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.report import notices
from mergeplan.bot.report.rollback import rollback_outcome_words
from mergeplan.bot.report.words import problem_words
from mergeplan.bot.results import PlannerOutcome
from mergeplan.bot.transitions.prods import set_revision
from mergeplan.bot.transitions.promotion import begin_rollback, conclude_rollback, refuse_rollback


def roll_back(current: ProdPass, number: int, who: str, revision: int) -> None:
    """Point prod back, if a person with permission requested it."""
    failed = _restore_revision(current, number, who, revision)
    if failed:
        retry_or_continue(current, failed, current.prod.promoted_commit)
        refuse_rollback_request(current, number, problem_words(failed.outcome))
    else:
        current.notify(notices.announce_rollback(current.repository, number, who, revision))
    current.wake_pulls()


def refuse_rollback_request(current: ProdPass, number: int, reason: str) -> None:
    current.update_pull(number, partial(refuse_rollback, reason=reason))


def _restore_revision(current: ProdPass, number: int, who: str, revision: int) -> Ended | None:
    """Point prod back once; return the planner's end if it failed, and then nothing has moved."""
    prod, begun = current.prod, current.record(number).rollback.start
    outcome = None
    if begun in (0, prod.revision):
        other_numbers = tuple(pull.number for pull in _pulls_since(current, revision) if pull.number != number)
        reversal = Reversal(who, revision, other_numbers)
        current.update_pull(number, partial(begin_rollback, prod_revision=prod.revision, reversal=reversal))
        ended = current.planner.roll_back(prod.promoted_commit, revision, who, number)
        outcome = ended.outcome
        if not outcome.ok:
            return ended
        shown, plan_id = ended.position(prod)
        current.update(partial(set_revision, revision=shown, plan_id=plan_id))
    _store_outcome(current, number, who, revision, outcome)
    current.inbox.decisions.record(current.repository, number, who, f"rolled prod back to revision {revision}")
    return None


def _store_outcome(current: ProdPass, number: int, who: str, revision: int, outcome: PlannerOutcome | None) -> None:
    """Store what prod shows no longer; the pull request of the request comes last, which ends it."""
    reason = rollback_outcome_words(who, revision, outcome)
    for pull in _pulls_since(current, revision):
        if pull.number != number:
            pull_reason = f"{reason} It was requested in #{number}."
            conclude = partial(conclude_rollback, reason=pull_reason, reversal=Reversal(who, revision))
            current.show(current.update_pull(pull.number, conclude))
    reversal = replace(current.record(number).rollback.reversal, to_open=True)
    current.show(current.update_pull(number, partial(conclude_rollback, reason=reason, reversal=reversal)))


def _pulls_since(current: ProdPass, revision: int) -> list[PullRecord]:
    pulls = current.inbox.pulls.all(current.repository)
    return [pull for pull in pulls if pull.state is PullState.PROMOTED and pull.promotion.revision > revision]
