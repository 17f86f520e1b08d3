"""Prod's own work: its first build, the promotion of each merge in order, pushes without a pull request, rollbacks.

Like a pull request's it starts from what is so: the prod branch as it is, and the commits on it since the last one that
was taken on. `decide_prod` says what is done next; here it is done, and written down before it is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import structlog

from mergeplan.bot.child.planner_process import new_run_id
from mergeplan.bot.context import BotContext, Later
from mergeplan.bot.git.checkout import Checkout, changes_no_model
from mergeplan.bot.github.gateway import GitHubFailed, GitHubPaused, RepositoryGateway
from mergeplan.bot.github.together import CheckRequest
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.prod.branch import prod_branch, wake_pulls
from mergeplan.bot.prod.branches import wake_branches
from mergeplan.bot.prod.catalog import wake_catalog
from mergeplan.bot.prod.decide import (
    DEFECT_TRIES,
    Action,
    AdoptProd,
    BuildProd,
    DeployPull,
    FollowBranch,
    Gate,
    HoldStep,
    LookForProd,
    PassOver,
    ProdAtRest,
    ProdFacts,
    PromoteMerge,
    PromotePush,
    RefuseDeploy,
    RefuseRollback,
    RollBack,
    RunJanitor,
    SettleMerge,
    SkipStep,
    Step,
    StopPlan,
    build_wait,
    decide_prod,
    is_asked_again,
    may_retry,
    prod_steps,
    sweep_is_due,
)
from mergeplan.bot.prod.deploy import Deployer
from mergeplan.bot.prod.gate import Gatekeeper
from mergeplan.bot.prod.planner_calls import Ended, OnLine, ProdPlanner, append_move, list_reasons
from mergeplan.bot.prod.rollback import Rollbacks
from mergeplan.bot.projects import another_project
from mergeplan.bot.pull_parts import UNRULED
from mergeplan.bot.pulls.arguments import merge_arguments, merge_digest
from mergeplan.bot.pulls.publish import Shower, publish_record
from mergeplan.bot.records import Prod, ProdRecord, PullRecord, PullState
from mergeplan.bot.report import notices
from mergeplan.bot.report.checks.check import CheckView
from mergeplan.bot.report.checks.prod import prod_check, push_hold_check
from mergeplan.bot.report.selection import merge_sentence
from mergeplan.bot.report.words import problem_words, promotion_summary
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.transitions.planning import Transition, report_progress
from mergeplan.bot.transitions.prods import ProdCommit, fail_build, hold_push, record_sweep, show_commit, take_commit
from mergeplan.bot.transitions.promotion import (
    begin_promotion,
    conclude_deploy,
    conclude_promotion,
    fail_promotion,
    hold_merge,
    release_merge,
    settle_merge,
)
from mergeplan.planner.contract.lines import BatchLine
from mergeplan.planner.contract.result import EnvironmentRow
from mergeplan.planner.contract.wire import Line

log = structlog.get_logger(__name__)
STEPS_MOST = 50
WAITING = frozenset({PullState.MERGED, PullState.UNPROMOTED})
ACTIONS_MOST = 500


def reconcile_prod(context: BotContext, job: Job) -> None:
    """Bring prod to its branch; raise Later or ShuttingDown if it must come back."""
    try:
        gateway = context.github.repository(job.repository)
        branch = prod_branch(context, gateway)
    except GitHubFailed as error:
        if error.status in (404, 409, 410):
            log.info("job_left", key=job.key, why="no such repository or branch, or the App is not installed")
            return
        raise
    if branch is not None:
        _ProdReconciliation(context, job, gateway, branch).run()


class _ProdReconciliation:
    """One pass over one repository's prod."""

    def __init__(self, context: BotContext, job: Job, gateway: RepositoryGateway, branch: str) -> None:
        self.context = context
        self.job = job
        self.gateway = gateway
        self.branch = branch
        self.inbox = context.inbox
        self.notify = context.notifications.send
        self.checkout: Checkout = context.checkout(gateway)
        self.planner = ProdPlanner(context, job, self.checkout)
        self.gatekeeper = Gatekeeper(context, gateway, self.checkout, self.planner)
        self.deployer = Deployer(context, gateway, self.checkout, self.planner, self.gatekeeper, branch)
        self.rollbacks = Rollbacks(context.inbox, job.repository, self.planner, self._show_record)
        self.contains = cache(self.checkout.contains)  # what a commit contains never changes
        self.merges: dict[str, int] | None = None
        self.pass_ = ProdFacts(ProdRecord(job.repository), branch, "")
        self.log = log.bind(repository=job.repository, key=job.key)

    def run(self) -> None:
        self.pass_ = replace(self.pass_, head=self.checkout.head(self.branch), again=self._get_prod().again)
        if self.pass_.again:
            self._update_prod(lambda prod: replace(prod, again=False))
        self._same_project()
        for _ in range(ACTIONS_MOST):
            facts = self._read_facts()
            action = decide_prod(facts)
            self.log.info("decided", action=type(action).__name__, state=facts.prod.state.value)
            if isinstance(action, ProdAtRest):
                if not facts.prod.swept_at:
                    self._update_prod(partial(record_sweep, at=facts.now))  # the janitor's time runs from here
                wake_branches(self.context, self.job, self.checkout, self.branch)
                wake_catalog(self.context, self.job.repository)
                return
            self._show_places(facts)
            self._apply_action(action)
            if facts.steps and isinstance(action, (SkipStep, PassOver, PromoteMerge, PromotePush)):
                self.pass_ = replace(self.pass_, taken=facts.taken + 1)
        raise Later(5.0, "it keeps moving")

    def _same_project(self) -> None:
        """Raise RequestError if another project was configured, but the branch still has the one that prod shows.

        That one would remove every table of prod. A project that moved left no configuration.
        """
        folder, head, prod = self.checkout.project, self.pass_.head, self._get_prod()
        if prod.folder in ("", folder) or not self.context.has_project(self.checkout, head, prod.folder):
            return
        error = another_project(prod.folder, folder)
        if prod.held != head:
            self._update_prod(partial(hold_push, commit=head, decision=UNRULED))
            self._write_check(head, prod_check("Prod waits: its project is another one", str(error), None, False))
        raise error

    def _apply_action(self, action: Action) -> None:
        match action:
            case FollowBranch():
                self._update_prod(lambda prod: replace(prod, branch=self.branch))
                wake_pulls(self.context, self.job.repository)
            case LookForProd():
                self.pass_ = replace(self.pass_, looked=True, planned_prod=self.planner.look(self.pass_.head))
            case AdoptProd(row):
                self._adopt_prod(row)
            case BuildProd():
                self.pass_ = replace(self.pass_, built=True)
                self._build_prod(self.pass_.head)
            case RefuseRollback(number, reason):
                self.rollbacks.refuse(number, reason)
            case RollBack(number, who, revision):
                self._roll_back(number, who, revision)
            case StopPlan(number):
                self.inbox.deliveries.notice(self.job.repository, number, "pull_request.closed")
                raise Later(1.0, f"the plan of #{number} is being stopped")
            case SkipStep(step):
                self._skip_step(step)
            case DeployPull(number):
                self._deploy_pull(number)
            case RefuseDeploy(number, reason):
                self.deployer.refuse(number, reason)
            case HoldStep(step):
                self._hold_step(step)
            case PassOver(step):
                self._pass_over(step)
            case PromoteMerge(number, commit):
                self._promote_merge(number, commit)
            case PromotePush(commit):
                self.pass_ = replace(self.pass_, again=False)  # once a pass
                self._promote_push(commit)
            case SettleMerge(number):
                self._settle_merge(number)
            case RunJanitor():
                self._run_janitor()

    def _get_prod(self) -> ProdRecord:
        return self.inbox.prods.get(self.job.repository)

    def _read_facts(self) -> ProdFacts:
        prod, pulls = self._get_prod(), self.inbox.pulls.all(self.job.repository)
        steps = self._list_steps(prod)[: max(0, STEPS_MOST - self.pass_.taken)]
        waiting = [pull for pull in pulls if pull.state in WAITING and pull.promotion.merge_sha]
        # prod shows nothing of what it undid
        unreverted_pulls = (pull for pull in waiting if not pull.rollback.reversal.revision)
        shown = {
            pull.number for pull in unreverted_pulls if self._has_merge(prod.promoted_commit, pull.promotion.merge_sha)
        }
        taken_on = {pull.number for pull in waiting if self._has_merge(prod.commit, pull.promotion.merge_sha)}
        untouched = bool(steps) and prod.state is Prod.READY and self._is_untouched(prod, steps[0])
        gate = self.gatekeeper.look(prod, steps) if prod.state is Prod.READY and not untouched else Gate()
        behind = frozenset(taken_on - shown)
        retried_numbers = [pull.number for pull in pulls if is_asked_again(pull) or pull.number in behind]
        closed = (
            () if steps else (n for n in retried_numbers if not self.gatekeeper.is_open(prod, Step(self.pass_.head, n)))
        )
        return replace(
            self.pass_,
            prod=prod,
            now=time.time(),
            pulls=pulls,
            steps=steps,
            is_untouched=untouched,
            gate=gate,
            closed=frozenset(closed),
            shown=frozenset(shown),
            behind=behind,
            sweep_is_due=sweep_is_due(prod, self.context.settings.janitor_hours, time.time()),
        )

    def _has_merge(self, commit: str, merge: str) -> bool:
        return bool(commit) and self.checkout.has(merge) and self.contains(commit, merge)

    def _list_steps(self, prod: ProdRecord) -> tuple[Step, ...]:
        head = self.pass_.head
        if not prod.commit or prod.commit == head:
            return ()
        if not self.contains(head, prod.commit):
            return (Step(head),)  # the branch was rewritten: its tree is what counts
        if self.merges is None:
            closed = self.gateway.list_closed_pulls()
            merged = (pull for pull in closed if pull.merged and pull.base_ref == self.branch)
            self.merges = {pull.merge_sha: pull.number for pull in merged}
        return prod_steps(self.checkout.first_parents(prod.commit, head), self.merges)

    def _is_untouched(self, prod: ProdRecord, step: Step) -> bool:
        paths = self.checkout.diff_paths(prod.promoted_commit or prod.commit, step.commit)
        return changes_no_model(paths, self.checkout.project)

    def _update_prod(self, transition: Callable[[ProdRecord], ProdRecord]) -> ProdRecord:
        return self.inbox.prods.update(self.job.repository, transition)

    def _update_pull(self, number: int, transition: Transition) -> PullRecord:
        return self.inbox.pulls.update(self.job.repository, number, transition)

    def _is_at(self, commit: str, revision: int, plan_id: str) -> ProdRecord:
        """Record that prod shows a commit, and that nothing of it waits."""
        at = ProdCommit(self.branch, self.checkout.project, commit)
        return self._update_prod(partial(show_commit, at=at, revision=revision, plan_id=plan_id))

    def _record_promotion(self, commit: str, end: Ended) -> ProdRecord:
        revision = end.row.revision if end.row else self._get_prod().revision + 1
        if revision > self._get_prod().revision:
            self._update_prod(lambda prod: replace(prod, moves=append_move(prod, revision, end.outcome)))
        return self._is_at(commit, revision, end.row.plan_id if end.row else "")

    def _adopt_prod(self, environment: EnvironmentRow) -> None:
        self._is_at(self.pass_.head, environment.revision, environment.plan_id)
        self.log.info("prod_adopted", revision=environment.revision)
        wake_pulls(self.context, self.job.repository)

    def _build_prod(self, head: str) -> None:
        self._update_prod(lambda prod: replace(prod, state=Prod.BUILDING, branch=self.branch))
        self._write_check(head, prod_check("Building prod for the first time", "From the branch as it is.", None, True))
        ended = self.planner.apply(head, 0)
        if ended.outcome.ok:
            self._record_promotion(head, ended)
            notice = notices.ProdBuilt(self.job.repository, ended.outcome)
            self.notify(notice)
            self._write_check(
                head, prod_check("Prod was built for the first time", notice.sentence, ended.outcome, False)
            )
        else:
            self._not_built(ended, head)
        wake_pulls(self.context, self.job.repository)

    def _not_built(self, end: Ended, head: str) -> None:
        """Store why the first build failed; raise Later while an immediate retry may help."""
        outcome, attempts = end.outcome, self._get_prod().attempts + 1
        wait = build_wait(outcome, attempts)
        self.log.warning("prod_not_built", attempt=attempts, again_in=wait or None, why=list_reasons(outcome))
        lines = pack_outcome(end.finished.lines, end.finished.exit_code)
        if wait and attempts < DEFECT_TRIES:
            again_at = time.time() + wait
            self._update_prod(lambda prod: replace(prod, attempts=attempts, run_lines=lines, again_at=again_at))
            wake_pulls(self.context, self.job.repository)
            raise Later(wait, f"the first build of prod at {head[:12]} is tried again")
        tries = attempts if wait else 0
        again_at = time.time() + wait if wait else 0.0
        self._update_prod(partial(fail_build, commit=head, lines=lines, attempts=tries, again_at=again_at))
        notice = notices.ProdNotBuilt(self.job.repository, head, outcome, is_retried=bool(wait))
        self.notify(notice)
        summary = f"Prod could not be built from this commit. {notice.outlook}"
        self._write_check(head, prod_check("Prod could not be built", summary, outcome, False))

    def _skip_step(self, step: Step) -> None:
        self._update_prod(lambda prod: replace(prod, commit=step.commit, promoted_commit=step.commit))
        if step.number:
            settle = partial(settle_merge, reason="", merge_sha=step.commit)
            self._show_record(self._update_pull(step.number, settle))
            self.inbox.queue.wake(self.job.repository, step.number)

    def _promote_merge(self, number: int, commit: str) -> None:
        """Promote a merge: the pull request's own tables if nothing moved, else what is planned and built again."""
        self.log.info("prod_step", commit=commit, pull_request=number)
        record = self.inbox.pulls.get(self.job.repository, number)
        planned = merge_digest(record)
        by = record.deploy.by
        record = self._update_pull(number, partial(begin_promotion, merge_sha=commit, run_id=new_run_id()))
        with Shower(self.inbox, self.gateway, record) as shower:
            ended = self.planner.apply(commit, number, merge_arguments(record), self._progress_listener(number, shower))
        if not ended.outcome.ok:
            self._retry_or_go_on(ended, commit, number)
            self._update_prod(partial(take_commit, commit=commit))
        lines = pack_outcome(ended.finished.lines, ended.finished.exit_code)
        if ended.outcome.ok:
            prod = self._record_promotion(commit, ended)
            revision = prod.revision if ended.outcome.promotion else 0
            reason = merge_sentence(record, planned, ended.outcome)
            record = self._update_pull(
                number, partial(conclude_promotion, lines=lines, revision=revision, reason=reason)
            )
            plan_id = ended.outcome.plan.id if ended.outcome.plan else ""
            decision = f"promoted {commit}{' against the rules' if by and not record.rules.decision.is_ok else ''}"
            self.inbox.decisions.record(self.job.repository, number, by or "merge", decision, plan_id)
            self.notify(notices.MergePromoted(self.job.repository, number, ended.outcome))
        else:
            record = self._update_pull(number, partial(fail_promotion, lines=lines))
            self.notify(notices.MergeNotPromoted(self.job.repository, number, ended.outcome))
        self._show_record(record)
        wake_pulls(self.context, self.job.repository)

    def _deploy_pull(self, number: int) -> None:
        commit = self.deployer.deploy(self._get_prod(), number)
        if commit:
            self._is_at(commit, self._get_prod().revision, self._get_prod().plan_id)
            record = self.inbox.pulls.get(self.job.repository, number)
            self.inbox.decisions.record(self.job.repository, number, record.deploy.by, f"deployed {commit}")
            self._show_record(self._update_pull(number, partial(conclude_deploy, merge_sha=commit)))
            self.notify(notices.PullDeployed(self.job.repository, number, record.deploy.by))
            self.pass_ = replace(self.pass_, head=commit)
        wake_pulls(self.context, self.job.repository)

    def _hold_step(self, step: Step) -> None:
        prod = self._get_prod()
        decision = self.gatekeeper.decision(prod, step)
        self.log.info("prod_held", commit=step.commit, pull_request=step.number)
        if not step.number:
            self._update_prod(partial(hold_push, commit=step.commit, decision=decision))
            self._write_check(step.commit, push_hold_check(decision))
            return
        judged = self.gatekeeper.record_at(step)
        hold = partial(hold_merge, judged=judged, merge_sha=step.commit, decision=decision)
        self._show_record(self._update_pull(step.number, hold))
        self.notify(notices.MergeHeld(self.job.repository, step.number, decision))

    def _pass_over(self, step: Step) -> None:
        """Take the held steps along with a later one that the rules let in."""
        for next_step in self._list_steps(self._get_prod()):
            if next_step.commit == step.commit:
                break
            if next_step.number:
                with_it = f"#{step.number}" if step.number else step.commit[:7]
                release = partial(release_merge, reason=f"It was taken on together with {with_it}.")
                self._show_record(self._update_pull(next_step.number, release))
                self.inbox.queue.wake(self.job.repository, next_step.number)
        if self._is_untouched(self._get_prod(), step):
            self._skip_step(step)
        elif step.number:
            self._promote_merge(step.number, step.commit)
        else:
            self._promote_push(step.commit)

    def _promote_push(self, commit: str) -> None:
        self.log.info("prod_step", commit=commit, pull_request=0)
        self._write_check(commit, prod_check("Promoting this push to prod", "", None, True))
        ended = self.planner.apply(commit, 0)
        if ended.outcome.ok:
            self._record_promotion(commit, ended)
            self.notify(notices.PushPromoted(self.job.repository, commit, ended.outcome))
            views = promotion_summary(ended.outcome)
            self._write_check(commit, prod_check(f"In prod. {views}", views, ended.outcome, False))
        else:
            self._retry_or_go_on(ended, commit)
            self._update_prod(partial(take_commit, commit=commit))
            self.notify(notices.PushNotPromoted(self.job.repository, commit, ended.outcome))
            self._write_check(
                commit, prod_check("Prod was not changed", "This push is not in prod.", ended.outcome, False)
            )
        wake_pulls(self.context, self.job.repository)

    def _settle_merge(self, number: int) -> None:
        reason = f"Prod shows it already, with {self._get_prod().promoted_commit[:7]}."
        self._show_record(self._update_pull(number, partial(settle_merge, reason=reason)))
        self.inbox.queue.wake(self.job.repository, number)

    def _retry_or_go_on(self, end: Ended, commit: str, number: int = 0) -> None:
        """Raise Later while another try may help; the comment then says who holds prod."""
        attempts = self._get_prod().attempts + 1
        if may_retry(end.outcome, attempts):
            self._update_prod(lambda prod: replace(prod, attempts=attempts))
            self.log.warning("prod_not_promoted", commit=commit, attempt=attempts, why=list_reasons(end.outcome))
            if number and end.outcome.may_pass_later:
                self._show_progress(number, f"Waiting: {end.outcome.problems[0].message}")
            raise Later(min(60.0, 2.0 * attempts), f"prod at {commit[:12]} is tried again")
        self._update_prod(lambda prod: replace(prod, attempts=0))

    def _roll_back(self, number: int, who: str, revision: int) -> None:
        failed = self.rollbacks.roll_back(self._get_prod(), number, who, revision)
        if failed:
            self._retry_or_go_on(failed, self._get_prod().promoted_commit)
            self.rollbacks.refuse(number, problem_words(failed.outcome))
        else:
            self.notify(notices.ProdRolledBack(self.job.repository, number, who, revision))
        wake_pulls(self.context, self.job.repository)

    def _run_janitor(self) -> None:
        """Drop what is unused; environments of pull requests that are not over do not expire."""
        self._update_prod(partial(record_sweep, at=time.time()))  # first: one that fails is not tried again and again
        pulls = self.inbox.pulls.all(self.job.repository)
        pull_environments = [
            pull.environment.name for pull in pulls if pull.environment.name and pull.is_kept(time.time())
        ]
        keep = (*pull_environments, *(record.environment for record in self._get_prod().branches))
        outcome = self.planner.sweep(self._get_prod().promoted_commit, keep)
        if outcome.ok:
            for name in outcome.kept:
                self.log.info("old_versions_kept", table=name.table, why=name.reason)
            self.log.info("janitor_ended", kept=len(keep), cleaned=list(outcome.cleaned))
        else:
            self.log.warning("janitor_failed", why=list_reasons(outcome))

    def _show_places(self, facts: ProdFacts) -> None:
        waiting = [step.number for step in facts.steps if step.number]
        for place, number in enumerate(waiting[1:], start=2):
            text = f"Number {place} in the queue for prod, behind #{waiting[place - 2]}."
            record = self.inbox.pulls.get(self.job.repository, number)
            if record.state is PullState.MERGED and record.run.progress != text:
                self._show_progress(number, text)

    def _progress_listener(self, number: int, shower: Shower) -> OnLine:
        """Report on the pull request, now and then, which batch is computed."""
        shown_at = time.monotonic()

        def show_batch(line: Line) -> None:
            nonlocal shown_at
            if isinstance(line, BatchLine) and time.monotonic() - shown_at > self.context.settings.progress_seconds:
                shown_at = time.monotonic()
                text = f"Computing what moved: `{line.model}`, batch {line.index} of {line.of}."
                self._update_pull(number, partial(report_progress, progress=text))
                shower.wake()

        return show_batch

    def _show_progress(self, number: int, progress: str) -> None:
        self._show_record(self._update_pull(number, partial(report_progress, progress=progress)))

    def _show_record(self, record: PullRecord) -> PullRecord:
        try:
            return publish_record(self.inbox, self.gateway, record)
        except (GitHubFailed, GitHubPaused) as error:
            # The record has it; the pull request's own job shows it when GitHub answers again.
            self.log.warning("not_shown_yet", pull_request=record.number, why=str(error))
            self.inbox.queue.wake(self.job.repository, record.number, in_seconds=5.0)
            return record

    def _write_check(self, commit: str, view: CheckView) -> None:
        try:
            key, details = f"mergeplan:prod:{commit[:12]}", self.gateway.page(0, "progress")
            check_id = self.gateway.checks.find(commit, key)
            self.gateway.checks.write(CheckRequest(commit, view, key, check_id, details))
        except (GitHubFailed, GitHubPaused) as error:
            self.log.warning("check_not_written", commit=commit, why=str(error))
