"""Prod's own lane: its first build, the promotion of each merge in order, pushes without a pull request, rollbacks.

Like a pull request's lane it starts from what is so: the prod branch as it is, and the commits on it since the last one
that was taken on. Each merge commit of a pull request is a step of its own, with that pull request's words and promise;
a push that belongs to no pull request is planned and applied as a merge without one would be, so that prod always shows
its branch. A commit that prod already shows is never promoted again: prod does not go back by accident.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from bot.checkout import Checkout, changes_no_model
from bot.checks import CheckView, prod_check
from bot.decide import Step, prod_steps
from bot.desk import DEFECT_TRIES, Desk, Later
from bot.github import GitHubFailed, GitHubPaused, RepositoryGateway
from bot.inbox.queue import Lane
from bot.markdown import counted
from bot.planner_process import Finished, new_run_id
from bot.publish import publish
from bot.records import Prod, ProdRecord, Pull, PullRecord, State, packed
from bot.results import EnvironmentRow, Outcome
from bot.words import view_words, work_words
from planner.errors import ProjectError
from planner.snapshot.environment import PROD

log = structlog.get_logger(__name__)
STEPS_MOST = 50
LONGEST_BACKOFF = 300.0


def reconcile_prod(desk: Desk, lane: Lane) -> None:
    """Brings prod to where its branch is; raises Later or ShuttingDown when it must come back."""
    try:
        gateway = desk.github.repository(lane.repository)
        branch = _prod_branch(desk, gateway)
    except GitHubFailed as error:
        if error.status in (404, 409, 410):
            log.info("lane_left", lane=lane.key, why="no such repository or branch, or the App is not installed")
            return
        raise
    if branch is not None:
        _ProdReconciliation(desk, lane, gateway, branch).run()


def _prod_branch(desk: Desk, gateway: RepositoryGateway) -> str | None:
    """The prod branch, named by the default branch's rules; None when there is no project, and so no prod to build."""
    checkout, default = desk.checkout(gateway), gateway.default_branch_now()
    checkout.fetch(default)
    try:
        config = desk.config(checkout, checkout.head(default), default)
    except ProjectError:
        return desk.inbox.prods.get(gateway.name).branch or default
    prod = desk.inbox.prods.get(gateway.name)
    if config is None and prod.state is Prod.READY:
        return prod.branch or default  # the project is gone: what is merged now is refused, and said to be
    if config is None:
        if prod.state is Prod.UNKNOWN:
            desk.inbox.prods.change(gateway.name, state=Prod.FAILED, branch=default, again_at=0.0)
            _wake_pulls(desk, gateway.name)
        return None
    return config.prod_branch


def _wake_pulls(desk: Desk, repository: str) -> None:
    """Every pull request that is not over looks at prod anew."""
    for record in desk.inbox.pulls.all(repository):
        if record.state is not State.CLOSED:
            desk.inbox.queue.wake(repository, record.number)


@dataclass(frozen=True)
class _Ended:
    finished: Finished
    outcome: Outcome
    row: EnvironmentRow | None  # prod as the planner has it afterwards


class _ProdReconciliation:
    """One pass over one repository's prod."""

    def __init__(self, desk: Desk, lane: Lane, gateway: RepositoryGateway, branch: str) -> None:
        self.desk = desk
        self.lane = lane
        self.gateway = gateway
        self.branch = branch
        self.inbox = desk.inbox
        self.checkout: Checkout = desk.checkout(gateway)
        self.log = log.bind(repository=lane.repository, lane=lane.key)

    def run(self) -> None:
        """First what people asked to undo, then what the branch holds that prod does not."""
        self.checkout.fetch(self.branch)
        head = self.checkout.head(self.branch)
        prod = self._prod()
        if prod.branch and prod.branch != self.branch:
            prod = self._change(branch=self.branch)
            _wake_pulls(self.desk, self.lane.repository)
        if prod.again:
            self._change(again=False)
        if prod.state in (Prod.UNKNOWN, Prod.BUILDING) or (prod.state is Prod.FAILED and is_due(prod, head)):
            self._build(head)
        self._roll_back()
        steps = self._steps(head)[:STEPS_MOST]
        for step in steps:
            self._take(step)
        if prod.again and not steps and prod.state is Prod.READY and self._prod().promoted_commit != head:
            self._promote_push(head)
        self._again(head)
        self._settle_merged()

    def _prod(self) -> ProdRecord:
        return self.inbox.prods.get(self.lane.repository)

    def _change(self, **changes: Any) -> ProdRecord:
        return self.inbox.prods.change(self.lane.repository, **changes)

    def _pull(self, number: int, **changes: Any) -> PullRecord:
        return self.inbox.pulls.change(self.lane.repository, number, **changes)

    # --- the first build ---

    def _build(self, head: str) -> None:
        """Adopts a prod that exists, or plans and builds one from the branch."""
        found = self._ask(head)
        if found is not None:
            self._change(
                state=Prod.READY,
                branch=self.branch,
                commit=head,
                promoted_commit=head,
                revision=found.revision,
                plan_id=found.plan_id,
                attempts=0,
                again_at=0.0,
                said="",
            )
            self.log.info("prod_adopted", revision=found.revision)
            _wake_pulls(self.desk, self.lane.repository)
            return
        if self._merged_since(self._prod().commit, head):
            return  # the merge that came brings the first project: it is promoted as a step
        self._change(state=Prod.BUILDING, branch=self.branch)
        self._check(head, prod_check("Building prod for the first time", "From the branch as it is.", None, True))
        ended = self._plan(head, (), 0)
        if ended.outcome.ok:
            self._promoted(head, ended)
            done = ended.outcome.promotion
            said = f"Prod was built for the first time. {view_words(done) if done else ''}"
            self._check(head, prod_check("Prod was built for the first time", said, ended.outcome, False))
        else:
            self._not_built(ended, head)
        _wake_pulls(self.desk, self.lane.repository)

    def _not_built(self, ended: _Ended, head: str) -> None:
        """Notes why; Later while trying again at once may help, and what may pass later is tried again after that."""
        outcome, attempts = ended.outcome, self._prod().attempts + 1
        wait = backoff(attempts) if outcome.may_pass_later or outcome.is_defect else 0.0
        self.log.warning("prod_not_built", attempt=attempts, again_in=wait or None, why=reasons(outcome))
        said = packed(ended.finished.lines, ended.finished.exit_code)
        if wait and attempts < DEFECT_TRIES:
            self._change(attempts=attempts, said=said)
            raise Later(wait, f"the first build of prod at {head[:12]} is tried again")
        again_at = time.time() + wait if wait else 0.0
        self._change(state=Prod.FAILED, commit=head, said=said, attempts=attempts if wait else 0, again_at=again_at)
        told = "It is tried again by itself." if wait else "It is tried again with the next commit, or by Re-run."
        summary = f"Prod could not be built from this commit. {told}"
        self._check(head, prod_check("Prod could not be built", summary, outcome, False))

    def _merged_since(self, commit: str, head: str) -> bool:
        return bool(commit) and bool(self._steps(head)) and any(step.number for step in self._steps(head))

    # --- what the branch holds ---

    def _steps(self, head: str) -> tuple[Step, ...]:
        prod = self._prod()
        if not prod.commit or prod.commit == head:
            return ()
        if not self.checkout.contains(head, prod.commit):
            return (Step(head),)  # the branch was rewritten: its tree is what counts
        commits = self.checkout.first_parents(prod.commit, head)
        merges = {pull.merge_sha: pull.number for pull in self.gateway.closed_pulls() if self._is_merge(pull)}
        return prod_steps(commits, merges)

    def _is_merge(self, pull: Pull) -> bool:
        return pull.merged and pull.base_ref == self.branch

    def _take(self, step: Step) -> None:
        """One promotion, or the note that there is nothing to promote."""
        self.log.info("prod_step", commit=step.commit, pull_request=step.number)
        if step.number:
            self._wait_for_its_plan(step.number)
        prod = self._prod()
        old = prod.promoted_commit or prod.commit
        paths = self.checkout.changed(old, step.commit)
        if prod.state is Prod.READY and changes_no_model(paths, self.desk.settings.project_path):
            self._change(commit=step.commit, promoted_commit=step.commit)
            if step.number:
                self._show(self._pull(step.number, state=State.PROMOTED, merge_sha=step.commit, reason="", progress=""))
                self.inbox.queue.wake(self.lane.repository, step.number)
            return
        if step.number:
            self._promote_merge(step.number, step.commit)
        else:
            self._promote_push(step.commit)

    def _wait_for_its_plan(self, number: int) -> None:
        """A plan of the pull request that still runs is over now: its lane is told, and prod waits until it is."""
        record = self.inbox.pulls.get(self.lane.repository, number)
        if record.state is State.PLANNING:
            self.inbox.deliveries.notice(self.lane.repository, number, "pull_request.closed")
            raise Later(1.0, f"the plan of #{number} is being stopped")

    def _promote_merge(self, number: int, commit: str) -> None:
        """Promotes a merge: the pull request's own tables when nothing moved, else what was planned and built again."""
        record = self.inbox.pulls.get(self.lane.repository, number)
        promised = record.outcome.plan.promise if record.outcome and record.outcome.plan else ""
        words = ("--words-from", record.environment) if record.environment and record.environment_exists else ()
        promise = ("--expect-promise", promised) if promised and words else ()
        forward = ("--forward-only",) if record.forward_only else ()
        changes = {"state": State.MERGED, "merge_sha": commit, "again": False, "words": ()}
        record = self._show(
            self._pull(number, **changes, progress="Promoting to prod.", run_id=new_run_id(), reason="")
        )
        ended = self._plan(commit, (*words, *promise, *forward), number)
        if ended.outcome.ok:
            prod = self._promoted(commit, ended)
            moved = moved_sentence(promised, ended.outcome)
            said = packed(ended.finished.lines, ended.finished.exit_code)
            revision = prod.revision if ended.outcome.promotion else 0
            changes = {"state": State.PROMOTED, "promotion": said, "promoted_revision": revision}
            record = self._pull(number, **changes, reason=moved, progress="", attempts=0)
            plan = ended.outcome.plan
            self.inbox.decisions.record(
                self.lane.repository, number, "merge", f"promoted {commit}", plan.id if plan else ""
            )
        else:
            self._retry_or_go_on(ended, commit, number)
            self._change(commit=commit)
            said = packed(ended.finished.lines, ended.finished.exit_code)
            record = self._pull(number, state=State.UNPROMOTED, promotion=said, progress="", reason="")
        self._show(record)
        _wake_pulls(self.desk, self.lane.repository)

    def _promote_push(self, commit: str) -> None:
        """A push to the prod branch that no pull request brought: planned and applied as it is."""
        self._check(commit, prod_check("Promoting this push to prod", "", None, True))
        ended = self._plan(commit, (), 0)
        if ended.outcome.ok:
            self._promoted(commit, ended)
            done = ended.outcome.promotion
            said = view_words(done) if done else "No view had to change."
            self._check(commit, prod_check(f"In prod. {said}", said, ended.outcome, False))
        else:
            self._retry_or_go_on(ended, commit)
            self._change(commit=commit)
            self._check(commit, prod_check("Prod was not changed", "This push is not in prod.", ended.outcome, False))
        _wake_pulls(self.desk, self.lane.repository)

    def _again(self, head: str) -> None:
        """Merged pull requests that did not reach prod, asked for again: with the branch as it is now."""
        for record in self.inbox.pulls.all(self.lane.repository):
            asked = record.state in (State.UNPROMOTED, State.ROLLED_BACK) and record.again
            if asked or (record.state is State.MERGED and record.merge_sha and self._is_behind(record)):
                self._promote_merge(record.number, head)

    def _is_behind(self, record: PullRecord) -> bool:
        """True for a merge that was taken on once and is not in prod."""
        prod = self._prod()
        taken = bool(prod.commit) and self.checkout.contains(prod.commit, record.merge_sha)
        return taken and not (prod.promoted_commit and self.checkout.contains(prod.promoted_commit, record.merge_sha))

    def _settle_merged(self) -> None:
        """Merges that prod already shows, by a later push: said so, and done."""
        prod = self._prod()
        for record in self.inbox.pulls.all(self.lane.repository):
            waiting = record.state in (State.MERGED, State.UNPROMOTED)
            waits = waiting and record.merge_sha and prod.promoted_commit
            if (
                waits
                and self.checkout.has(record.merge_sha)
                and self.checkout.contains(prod.promoted_commit, record.merge_sha)
            ):
                reason = f"Prod shows it already, with {prod.promoted_commit[:7]}."
                self._show(self._pull(record.number, state=State.PROMOTED, reason=reason, progress=""))
                self.inbox.queue.wake(self.lane.repository, record.number)

    # --- undoing ---

    def _roll_back(self) -> None:
        """Points prod back at the revision before a pull request's own, when somebody who may said so."""
        for record in self.inbox.pulls.all(self.lane.repository):
            if not record.rollback_by:
                continue
            prod = self._prod()
            who, before = record.rollback_by, record.promoted_revision - 1
            if prod.revision != record.promoted_revision or before < 1:
                self._pull(record.number, rollback_by="", reason=f"Prod has moved on to revision {prod.revision}.")
                continue
            ended = self._call(
                prod.promoted_commit,
                ("rollback", PROD, "--to", str(before), "--who", who, "--note", f"/rollback in #{record.number}"),
            )
            if ended.outcome.ok:
                row = ended.row
                self._change(revision=row.revision if row else prod.revision + 1, plan_id=row.plan_id if row else "")
                reason = f"{who} pointed prod back at the tables of revision {before}."
                self._show(self._pull(record.number, rollback_by="", state=State.ROLLED_BACK, reason=reason))
                self.inbox.decisions.record(
                    self.lane.repository, record.number, who, f"rolled prod back to revision {before}"
                )
            else:
                problems = ended.outcome.problems
                self._pull(
                    record.number, rollback_by="", reason=problems[0].message if problems else "The rollback failed."
                )
            _wake_pulls(self.desk, self.lane.repository)

    # --- the planner ---

    def _plan(self, commit: str, more: tuple[str, ...], number: int) -> _Ended:
        note = ("--note", f"#{number}" if number else commit[:12])
        return self._call(commit, ("plan", PROD, "--auto-apply", *more, *note), number)

    def _call(self, commit: str, arguments: tuple[str, ...], number: int = 0) -> _Ended:
        """One call of the planner on a commit's tree, and then what prod is."""
        if not self.desk.has_project(self.checkout, commit):
            refused = self.desk.no_project("This commit")
            return _Ended(refused, refused.outcome, None)
        run_id = new_run_id()
        told = [time.monotonic()]

        def hear(event: Mapping[str, Any]) -> None:
            late = time.monotonic() - told[0] > self.desk.settings.progress_seconds
            if number and late and event["event"] == "batch":
                told[0] = time.monotonic()
                text = f"Computing what moved: `{event.get('model')}`, batch {event.get('index')} of {event.get('of')}."
                self._show(self._pull(number, progress=text), softly=True)

        with self.desk.project(self.checkout, commit, run_id) as folder:
            call = self.desk.plan
            finished = call(self.lane.repository, self.lane.key, folder, arguments, run_id=run_id, on_event=hear)
            outcome = finished.outcome
            row = None
            if outcome.ok:
                listed = call(self.lane.repository, self.lane.key, folder, ("environments",), run_id=run_id)
                rows = listed.outcome.environments or ()
                row = next((each for each in rows if each.name == PROD), None)
        return _Ended(finished, outcome, row)

    def _ask(self, commit: str) -> EnvironmentRow | None:
        """Prod as the planner has it, None when it was never promoted, or only half: a plan then finishes that."""
        run_id = new_run_id()
        with self.desk.project(self.checkout, commit, run_id) as folder:
            listed = self.desk.plan(self.lane.repository, self.lane.key, folder, ("environments",), run_id=run_id)
        rows = listed.outcome.environments or ()
        return next((each for each in rows if each.name == PROD and each.revision > 0 and not each.pending), None)

    def _promoted(self, commit: str, ended: _Ended) -> ProdRecord:
        old = self._prod()
        revision = ended.row.revision if ended.row else old.revision + 1
        plan_id = ended.row.plan_id if ended.row else ""
        return self._change(
            state=Prod.READY,
            branch=self.branch,
            commit=commit,
            promoted_commit=commit,
            revision=revision,
            plan_id=plan_id,
            attempts=0,
            again_at=0.0,
            said="",
        )

    def _retry_or_go_on(self, ended: _Ended, commit: str, number: int = 0) -> None:
        """Later, while trying again may help: somebody holds prod, and the comment says who, or the fault was ours."""
        attempts = self._prod().attempts + 1
        passing = ended.outcome.may_pass_later and attempts < 10 * DEFECT_TRIES
        if passing or (ended.outcome.is_defect and attempts < DEFECT_TRIES):
            self._change(attempts=attempts)
            self.log.warning("prod_not_promoted", commit=commit, attempt=attempts, why=reasons(ended.outcome))
            if number and passing:
                self._show(self._pull(number, progress=f"Waiting: {ended.outcome.problems[0].message}"))
            raise Later(min(60.0, 2.0 * attempts), f"prod at {commit[:12]} is tried again")
        self._change(attempts=0)

    # --- telling ---

    def _show(self, record: PullRecord, *, softly: bool = False) -> PullRecord:
        try:
            return publish(self.inbox, self.gateway, record)
        except (GitHubFailed, GitHubPaused) as error:
            # The record has it; the pull request's own lane shows it when GitHub answers again.
            self.log.warning("not_shown_yet", pull_request=record.number, why=str(error))
            if not softly:
                self.inbox.queue.wake(self.lane.repository, record.number, in_seconds=5.0)
            return record

    def _check(self, commit: str, view: CheckView) -> None:
        """The promotion check on a commit of the branch."""
        try:
            self.gateway.write_check(commit, view, f"mergeplan:prod:{commit[:12]}", self._known_check(commit))
        except (GitHubFailed, GitHubPaused) as error:
            self.log.warning("check_not_written", commit=commit, why=str(error))

    def _known_check(self, commit: str) -> int:
        return self.gateway.find_check(commit, f"mergeplan:prod:{commit[:12]}")


def is_due(prod: ProdRecord, head: str) -> bool:
    """True when a first build that failed is to be tried again: a new commit, a person's word, or its time has come."""
    return not prod.revision and (prod.commit != head or prod.again or 0 < prod.again_at <= time.time())


def backoff(attempts: int) -> float:
    """Seconds until what failed for the nth time is tried again.

    >>> [backoff(number) for number in (1, 2, 5, 20)]
    [2.0, 4.0, 32.0, 300.0]
    """
    return min(LONGEST_BACKOFF, 2.0 ** min(attempts, 10))


def reasons(outcome: Outcome) -> list[str]:
    """What a child said went wrong, for the log."""
    return [f"{each.kind}: {each.message}" for each in outcome.problems] or [f"exit code {outcome.exit_code}"]


def moved_sentence(promised: str, outcome: Outcome) -> str:
    """What was computed at the merge because something had moved since the plan; '' when the promise was kept."""
    plan = outcome.plan
    if plan is None or not promised or promised in (plan.promise, plan.promised):
        return ""
    todo = [model.name for model in plan.models if model.intervals]
    if not todo:
        return "Prod had moved since the plan; the merge was planned again, and nothing had to be computed."
    names = ", ".join(f"`{name}`" for name in todo[:6]) + (
        f" and {counted(len(todo) - 6, 'more table')}" if len(todo) > 6 else ""
    )
    return f"Prod had moved since the plan, so {names} ({work_words(plan)}) was computed before any view moved."
