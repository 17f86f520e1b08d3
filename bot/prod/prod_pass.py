"""One pass over one repository's prod: what is read once, the facts, and the records as they are stored."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import structlog

from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.checkout import changes_no_model
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.prod.branch import wake_pulls
from mergeplan.bot.prod.decide import Gate, ProdFacts, Step, is_asked_again, prod_steps, sweep_is_due
from mergeplan.bot.prod.gate import Gatekeeper
from mergeplan.bot.prod.planner_calls import Ended, ProdPlanner, append_move
from mergeplan.bot.prod.reading_pulls import replan_readers
from mergeplan.bot.pulls.publish import publish_record, write_check
from mergeplan.bot.records import Prod, ProdRecord, Pull, PullRecord, PullState, UnwrittenCheck
from mergeplan.bot.report.checks.check import CheckView
from mergeplan.bot.transitions.planning import Transition, report_progress
from mergeplan.bot.transitions.prods import ProdCommit, show_commit

log = structlog.get_logger(__name__)
STEPS_MAX = 50  # of a pass
WAITING = frozenset({PullState.MERGED, PullState.UNPROMOTED})
NOT_AGAIN = frozenset({PullState.UNPROMOTED, PullState.ROLLED_BACK})
LATE_TRIES = 4  # of the job, 15 s together, until a pull request that GitHub shows as open is taken for open


@dataclass
class ProdPass:
    """Prod while its job has the turn; `facts` are read again before each action."""

    context: BotContext
    job: Job
    gateway: RepositoryGateway
    facts: ProdFacts

    def __post_init__(self) -> None:
        self.repository, self.inbox, self.branch = self.job.repository, self.context.inbox, self.facts.branch
        self.notify = self.context.notifications.send
        self.checkout = self.context.checkout(self.gateway)
        self.planner = ProdPlanner(self.context, self.job, self.checkout)
        self.gatekeeper = Gatekeeper(self.context, self.gateway, self.checkout, self.planner)
        self.contains = cache(self.checkout.contains)  # what a commit contains never changes
        self.log = log.bind(repository=self.repository, key=self.job.key)

    @cached_property
    def merges(self) -> dict[str, int]:
        """The merges into the branch, by commit, with the number of the pull request."""
        closed = self.gateway.list_closed_pulls()
        merged = (pull for pull in (*closed, *self._find_older(closed)) if pull.merged and self._is_into_branch(pull))
        return {pull.merge_sha: pull.number for pull in merged}

    def _find_older(self, closed: Sequence[Pull]) -> Iterator[Pull]:
        """Yield the known pull requests that were closed before those, and those that are listed as open and landed.

        The former as while the service was down. Without the latter, which GitHub's lists show late, a merge would be
        taken for a push, and be promoted without the categories of its pull request.
        """
        listed = {pull.number for pull in (*closed, *self.gateway.open_pulls())}
        since, until = self.prod.commit, self.facts.head
        trees = set(map(self.checkout.tree, self.checkout.first_parents(since, until)))
        for record in self.inbox.pulls.list_current(self.repository):
            is_new = record.head and _holds(self, until, record.head) and not self.contains(since, record.head)
            landed = record.base.tree in trees or is_new
            if (landed or record.number not in listed) and record.state not in NOT_AGAIN:
                try:
                    pull = self.gateway.pull(record.number)
                except ForgeFailed as error:
                    if error.status != 404:  # as of an author whom GitHub hides
                        raise
                    continue
                if landed and pull.is_open and pull.base_ref == self.branch and self.job.attempts < LATE_TRIES:
                    raise ForgeFailed(f"GitHub does not show yet whether #{pull.number} is merged")
                yield pull

    def _is_into_branch(self, pull: Pull) -> bool:
        # A layer of a stack may be merged together with those below it; GitHub does not say which base it has then.
        return pull.base_ref == self.branch or bool(self.record(pull.number).stack.planned_on.layers)

    @property
    def prod(self) -> ProdRecord:
        return self.inbox.prods.get(self.repository)

    def record(self, number: int) -> PullRecord:
        return self.inbox.pulls.get(self.repository, number)

    def update(self, transition: Callable[[ProdRecord], ProdRecord]) -> ProdRecord:
        return self.inbox.prods.update(self.repository, transition)

    def update_pull(self, number: int, transition: Transition) -> PullRecord:
        return self.inbox.pulls.update(self.repository, number, transition)

    def wake(self, number: int, in_seconds: float = 0.0) -> None:
        self.inbox.queue.wake(self.repository, number, in_seconds=in_seconds)

    def wake_pulls(self) -> None:
        wake_pulls(self.context, self.repository)

    def steps(self, prod: ProdRecord) -> tuple[Step, ...]:
        """Return what the branch holds since the last commit that was taken on."""
        head = self.facts.head
        if not prod.commit or prod.commit == head:
            return ()
        if not self.contains(head, prod.commit):
            return (Step(head),)  # the branch was rewritten: its tree is what counts
        return prod_steps(self.checkout.first_parents(prod.commit, head), self.merges)

    def is_untouched(self, prod: ProdRecord, step: Step) -> bool:
        if step.number and self.record(step.number).restates:
            return False
        paths = self.checkout.diff_paths(prod.promoted_commit or prod.commit, step.commit)
        return changes_no_model(paths, self.checkout.project)

    def show_commit(self, commit: str, revision: int, plan_id: str) -> ProdRecord:
        at = ProdCommit(self.branch, self.checkout.project, commit)
        return self.update(partial(show_commit, at=at, revision=revision, plan_id=plan_id))

    def record_promotion(self, commit: str, end: Ended) -> ProdRecord:
        prod = self.prod
        revision, plan_id = end.position(prod)
        if revision > prod.revision:
            self.update(lambda stored: replace(stored, moves=append_move(stored, revision, end.outcome)))
        shown = self.show_commit(commit, revision, plan_id)
        if revision > prod.revision:
            replan_readers(self.context, self.repository, end.outcome.plan)
        return shown

    def show(self, record: PullRecord) -> PullRecord:
        try:
            return publish_record(self.inbox, self.gateway, record)
        except (ForgeFailed, ForgePaused) as error:
            # The record has it; the pull request's own job shows it when GitHub answers again.
            self.log.warning("not_shown_yet", pull_request=record.number, why=str(error))
            self.wake(record.number, in_seconds=5.0)
            return record

    def show_progress(self, number: int, progress: str) -> None:
        self.show(self.update_pull(number, partial(report_progress, progress=progress)))

    def check(self, commit: str, view: CheckView) -> None:
        key, page = f"mergeplan:prod:{commit[:12]}", self.gateway.page(0, "progress")
        is_done = write_check(self.gateway, commit, view, key, page) or not view.is_completed
        result = () if is_done else (UnwrittenCheck(commit, view.title, view.summary, view.conclusion),)
        others = tuple(unwritten for unwritten in self.prod.unwritten if unwritten.commit != commit)
        if self.prod.unwritten != (*others, *result):
            self.update(lambda prod: replace(prod, unwritten=(*others, *result)))


def read_facts(current: ProdPass) -> ProdFacts:
    """Return the facts as they are now, together with what this pass has done."""
    prod, pulls, now = current.prod, current.inbox.pulls.all(current.repository), time.time()
    steps = current.steps(prod)[: max(0, STEPS_MAX - current.facts.taken)]
    waiting = [pull for pull in pulls if pull.state in WAITING and pull.promotion.merge_sha]
    # prod shows nothing of what it undid, and what a merge restates is in no tree
    unreverted_pulls = (pull for pull in waiting if not (pull.rollback.reversal.revision or pull.restates))
    shown = {p.number for p in unreverted_pulls if _holds(current, prod.promoted_commit, p.promotion.merge_sha)}
    taken_on = {pull.number for pull in waiting if _holds(current, prod.commit, pull.promotion.merge_sha)}
    behind = frozenset(taken_on - shown)
    is_ready, gatekeeper = prod.state is Prod.READY, current.gatekeeper
    untouched = bool(steps) and is_ready and current.is_untouched(prod, steps[0])
    gate = gatekeeper.look(prod, steps) if is_ready and not untouched else Gate()
    retried_numbers = [pull.number for pull in pulls if is_asked_again(pull) or pull.number in behind]
    head = current.facts.head
    closed = () if steps else (n for n in retried_numbers if not gatekeeper.is_open(prod, Step(head, n)))
    return replace(
        current.facts,
        prod=prod,
        now=now,
        pulls=pulls,
        steps=steps,
        is_untouched=untouched,
        gate=gate,
        closed=frozenset(closed),
        shown=frozenset(shown),
        behind=behind,
        sweep_is_due=sweep_is_due(prod, current.context.settings.janitor_hours, now),
    )


def _holds(current: ProdPass, commit: str, merge: str) -> bool:
    return bool(commit) and current.checkout.has(merge) and current.contains(commit, merge)
