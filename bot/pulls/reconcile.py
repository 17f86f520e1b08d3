"""The one routine: a live pull request and what we know of it -> what should be -> done, and shown.

Webhooks, the timer, start-up, Re-run buttons and the Action all come here, so that a lost, doubled or late webhook ends
in the same state. Each step writes what it knows before it acts on it; a process that dies is followed by one that
reads that.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import structlog

from mergeplan.bot.child.isolated import brings_code
from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.context import (
    DEFECT_TRIES,
    BotContext,
    Later,
    PlannerCall,
    ShuttingDown,
    Superseded,
    failure_result,
    now_text,
)
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Merge, changes_no_model
from mergeplan.bot.github.gateway import GitHubFailed, GitHubPaused, RepositoryGateway
from mergeplan.bot.inbox.queue import BRANCHES, Job
from mergeplan.bot.pulls.arguments import model_files, pending_overrides, plan_arguments
from mergeplan.bot.pulls.decide import (
    Action,
    CarryOver,
    Destroy,
    DropEnvironment,
    DropGroup,
    HandToProd,
    Hold,
    Keep,
    Leave,
    MakePlan,
    OpenRevert,
    PlanGroup,
    Rest,
    Skip,
    WaitForProd,
    decide,
    interrupts,
)
from mergeplan.bot.pulls.environments import EnvironmentEnd
from mergeplan.bot.pulls.events import PlanEvents
from mergeplan.bot.pulls.failure import defect, show_failure, show_unreadable
from mergeplan.bot.pulls.groups import GroupPlanner
from mergeplan.bot.pulls.publish import Shower, end_checks, publish
from mergeplan.bot.pulls.questions import Questions
from mergeplan.bot.pulls.radar import look_around
from mergeplan.bot.pulls.reverts import open_revert
from mergeplan.bot.pulls.reviews import Reviewers, changes_rules, judge
from mergeplan.bot.pulls.routing import is_there
from mergeplan.bot.pulls.skips import skip_changes
from mergeplan.bot.pulls.talk import answer_all, carry_out, pick_up
from mergeplan.bot.records import AFTER_MERGE, News, Prod, ProdRecord, Pull, PullRecord, PullState
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.rules import BotConfig
from mergeplan.planner.errors import MergeplanError, ProjectError

log = structlog.get_logger(__name__)
STEPS_MOST = 12
COMMANDING = frozenset({"issue_comment.created", "issue_comment.edited", "check_run.requested_action"})
PASSING = (GitHubFailed, GitHubPaused, MergeplanError, Superseded, Later, ShuttingDown)
NOTHING = Finished((), 0)  # the end of a plan that had nothing to look at


def reconcile_pull(context: BotContext, job: Job) -> None:
    """Brings one pull request to where it should be; Superseded, Later or ShuttingDown when it must come back."""
    try:
        gateway = context.github.repository(job.repository)
        pull = gateway.pull(job.number)
    except GitHubFailed as error:
        if error.status in (404, 410):
            log.info("job_left", key=job.key, why="no such pull request, or the App is not installed")
            return
        raise
    try:
        _Reconciliation(context, job, gateway, pull).run()
    except ProjectError as error:
        show_failure(context, gateway, pull, error)
    except CheckoutFailed as error:
        if not show_unreadable(context, gateway, pull, error, job.attempts + 1):
            raise
    except PASSING:
        raise
    except Exception as error:
        if job.attempts + 1 < DEFECT_TRIES:
            raise
        log.exception("pull_request_given_up", key=job.key)
        show_failure(context, gateway, pull, defect(error))


class _Reconciliation:
    """One pass over one pull request."""

    def __init__(self, context: BotContext, job: Job, gateway: RepositoryGateway, pull: Pull) -> None:
        self.context, self.job, self.gateway, self.pull = context, job, gateway, pull
        self.is_fork = pull.is_fork_of(job.repository)
        self.inbox = context.inbox
        self.checkout = context.checkout(gateway)
        self.config = BotConfig(prod_branch_name=gateway.default_branch)
        self.config_error: ProjectError | None = None
        self.fetched = ""  # the branch that was fetched for this pass, with the head
        self.seen = job.seen
        self.given: tuple[tuple[str, str], ...] = ()  # the overrides that the running plan was given
        self.select: tuple[str, ...] = ()  # the selectors that it was given
        self.looked_at = time.monotonic()
        self.log = log.bind(repository=job.repository, pull_request=job.number, head=pull.head[:12])

    def run(self) -> None:
        """Decides and acts until nothing is left to do, then answers."""
        if not self._is_ours():
            return
        self._read_rules()
        base = self.checkout.head(self.config.prod_branch)
        if not (self.config_error or self._record().head or is_there(self.context, self.gateway, base, self.pull)):
            self.log.info("left_alone", why="the repository has no such project")
            return
        pick_up(self.context, self.gateway, self.pull.number, self.gateway.comments.read(self.pull.number))
        for _ in range(STEPS_MOST):
            carry_out(self.context, self.gateway, self.pull, self.config)
            record, prod = self._record(), self.inbox.prods.get(self.job.repository)
            action = decide(self.pull, record, prod, self.config.prod_branch, self.job.repository, time.time())
            self.log.info("decided", action=type(action).__name__, state=record.state.value)
            match action:
                case Leave():
                    break
                case Rest():
                    if record.head:
                        self._judge()
                        self._look_around()
                        publish(self.inbox, self.gateway, record)
                    break
                case Keep():
                    self._end().keep(record)
                    self._look_around()
                    if record.head:
                        publish(self.inbox, self.gateway, self._record())
                    break
                case _:
                    self._do(action, record, prod)
            self._refresh()
        else:
            raise Later(5.0, "it keeps moving")
        self._answer_questions()
        answer_all(self.context, self.gateway, self.pull.number, self.config)

    def _do(self, action: Action, record: PullRecord, prod: ProdRecord) -> None:
        """Takes one step; what is to be done next is decided anew."""
        kept = {"head": self.pull.head, "base_ref": self.pull.base_ref}
        match action:
            case CarryOver():
                self._carry_over(record, prod)
            case PlanGroup():
                publish(self.inbox, self.gateway, record)
                self._groups().plan()
            case DropGroup():
                self._groups().drop()
            case Destroy():
                self._end().destroy(record)
            case Hold():
                self._change(state=PullState.HELD, **kept, run_lines="", reason="", allowed_head="")
            case Skip() if self._asks_for_nothing(record, prod):
                self._make_plan("")
            case Skip():
                self._change(**skip_changes(self.pull, self._record(), self.config, prod.skip_label))
            case WaitForProd():
                self._change(state=PullState.WAITING, **kept, environment_name=self._environment)
                self.inbox.queue.wake(self.job.repository, 0)
            case MakePlan(reason):
                self._make_plan(reason)
            case DropEnvironment():
                self._end().drop(self.pull, record)
            case OpenRevert():
                self._change(reversal=open_revert(self.gateway, self.pull, record, self.config, self.job.attempts))
            case HandToProd():
                again = {"again": False, "progress": "Waiting for prod's turn."}
                self._change(state=PullState.MERGED, merge_sha=self.pull.merge_sha, reason="", overrides=(), **again)
                self.inbox.queue.wake(self.job.repository, 0)

    def _answer_questions(self) -> None:
        """What somebody only asks is answered when nothing else is left to do; news end it, and it is asked again."""
        questions = Questions(self.context, self.job, self.checkout, self._overtaken, self.is_fork)
        if reason := questions.answer_all(self._record()):
            raise Superseded(reason)

    def _groups(self) -> GroupPlanner:
        return GroupPlanner(self.context, self.job, self.gateway, self.checkout, self.config)

    def _end(self) -> EnvironmentEnd:
        return EnvironmentEnd(self.context, self.job, self.gateway, self.checkout, self.config)

    def _overtaken(self) -> str:
        """Why a question has to wait: a newer head, or a close."""
        return interrupts(self.inbox.deliveries.news(self.job.key, self.seen), self.pull.head)

    # --- looking ---

    @property
    def _environment(self) -> str:
        return self.config.environment(self.pull.number)

    def _record(self) -> PullRecord:
        return self.inbox.pulls.get(self.job.repository, self.pull.number)

    def _change(self, **changes: Any) -> PullRecord:
        return self.inbox.pulls.change(self.job.repository, self.pull.number, **changes)

    def _refresh(self) -> None:
        self.pull = self.gateway.pull(self.job.number)
        self.looked_at = time.monotonic()

    def _is_ours(self) -> bool:
        """A pull request into a branch that is not prod's, and of which we know nothing, costs one call and no more."""
        prod = self.inbox.prods.get(self.job.repository)
        if prod.follows(self.pull.base_ref, self.pull.number):
            self.inbox.queue.wake(self.job.repository, BRANCHES)
        if not prod.branch or self.pull.base_ref == prod.branch or self._record().head:
            return True
        return bool(self.inbox.commands.open(self.job.repository, self.pull.number))

    def _read_rules(self) -> None:
        """The rules as the base branch has them; a pull request cannot change its own."""
        prod = self.inbox.prods.get(self.job.repository)
        branch = prod.branch or self.gateway.default_branch
        try:
            # With the head, which will be planned; a fork's only when somebody has let it in.
            soon = self.pull.is_open and not self.is_fork
            self.checkout.fetch(branch, self.pull.number if soon else 0)
            self.fetched = branch
        except CheckoutFailed:
            renamed = self.gateway.default_branch_now()
            if renamed == branch:
                raise
            branch = renamed
            self.checkout.fetch(branch)
            self.inbox.queue.wake(self.job.repository, 0)
        head = self.checkout.head(branch)
        try:
            config = self.context.config(self.checkout, head, branch)
            self.config = config or BotConfig(prod_branch_name=branch)
        except ProjectError as error:
            self.config, self.config_error = BotConfig(prod_branch_name=branch), error
        if self.config_error is None and replace(prod, **self.config.prod_fields) != prod:
            self.inbox.prods.change(self.job.repository, **self.config.prod_fields)
            for pull in self.inbox.pulls.filter_by_state(self.job.repository, PullState.SKIPPED):
                self.inbox.queue.wake(self.job.repository, pull.number)

    # --- planning ---

    def _make_plan(self, reason: str) -> None:
        record = self._begin(reason)
        try:
            # GitHub takes a write a second: the plan is made meanwhile.
            with Shower(self.inbox, self.gateway, record) as shower:
                record, finished = self._compute_plan(record, shower)
        except Superseded:
            self._give_way("", "")
            raise
        # A push may have come when the run had just ended: it settles as after one that was stopped.
        late = "" if finished.stopped else self._should_stop()
        if finished.stopped or late.startswith("superseded"):
            self._handle_stop(finished.stopped or late)
            return
        self._conclude(record, finished)

    def _compute_plan(self, record: PullRecord, shower: Shower) -> tuple[PullRecord, Finished]:
        """The plan of this head on prod's commit, and the record that it is of."""
        self._fetch_head()
        self.fetched = ""  # the next plan of this pass fetches anew
        if not self.checkout.has(self.pull.head):
            raise Superseded("the head is gone: a newer one was pushed")
        prod = self.inbox.prods.get(self.job.repository)
        base = prod.promoted_commit or self.checkout.head(self.config.prod_branch)
        merge = self.checkout.merge(base, self.pull.head)
        changes = changes_rules(self.context, self.checkout, base, merge.commit or base)
        edits = changes or self._edits_rules(base, merge)
        against = {"base_sha": base, "tree": merge.tree, "prod_revision": prod.revision}
        record = self._change(**against, edits_rules=edits, changes_rules=changes)
        return record, self._early_result(record, base, merge) or self._run(record, merge.commit, shower)

    def _begin(self, reason: str) -> PullRecord:
        """From here on this head is being planned."""
        record = self._record()
        if record.state in AFTER_MERGE:
            raise Later(0.5, "it was merged this moment")
        same = record.head == self.pull.head
        overrides = tuple(override for override in record.wishes.overrides if override.head == self.pull.head)
        record = self._change(
            state=PullState.PLANNING,
            head=self.pull.head,
            base_ref=self.pull.base_ref,
            forward_only=self.config.is_forward_only(self.pull.head_ref),
            environment_name=record.environment.name or self._environment,
            author=self.pull.author,
            shows_deployments=self.config.deployments,
            site=self.gateway.clone_url.removesuffix(".git"),
            folder=self.checkout.project,
            project=self.gateway.project,
            run_id=new_run_id(),
            reason=reason,
            progress="",
            fresh=False,
            again=False,
            overrides=overrides,
            attempts=record.run.attempts if same else 0,
        )
        self.select = record.wishes.select
        self.log = self.log.bind(run=record.run.id, head=self.pull.head[:12])
        return record

    def _early_result(self, record: PullRecord, base: str, merge: Merge) -> Finished | None:
        """The end of a plan that needs no planner: broken rules, a conflict, or no model touched."""
        if self.config_error:
            error, place = self.config_error, self.config_error.place
            where = (place.path, place.line) if place else ("", 0)
            message = f"On the base branch: {error.message}"
            return failure_result(message, "ProjectError", path=where[0], line=where[1], hint=error.hint)
        if not merge.commit and not merge.conflicts:
            hint = f"Start the branch from `{self.config.prod_branch}` and bring the change over."
            return failure_result("It has no commit in common with the base branch.", "Conflict", hint=hint)
        if merge.conflicts:
            shown = ", ".join(f"`{path}`" for path in merge.conflicts[:10])
            hint = f"Merge `{self.config.prod_branch}` into the branch and resolve it."
            return failure_result(f"It conflicts with the base branch in {shown}.", "Conflict", hint=hint)
        if self.context.has_project(self.checkout, merge.commit):
            return NOTHING if self._is_untouched(record, base, merge) else None
        gone = self.context.has_project(self.checkout, base)
        return self.context.no_project(self.checkout, "A merge") if gone else NOTHING

    def _is_untouched(self, record: PullRecord, base: str, merge: Merge) -> bool:
        """True for a change of no model, where no planner has anything to take back either."""
        known = record.environment.exists or self.inbox.prods.get(self.job.repository).state is not Prod.READY
        return not known and changes_no_model(self.checkout.diff_paths(base, merge.commit), self.checkout.project)

    def _asks_for_nothing(self, record: PullRecord, prod: ProdRecord) -> bool:
        """True where a plan costs nothing, whatever the labels: its head changes nothing here."""
        self._fetch_head()
        base = prod.promoted_commit or self.checkout.head(self.config.prod_branch)
        merge = self.checkout.merge(base, self.pull.head) if self.checkout.has(self.pull.head) else Merge()
        return bool(merge.commit) and self._is_untouched(record, base, merge)

    def _fetch_head(self) -> None:
        if self.fetched != self.config.prod_branch or not self.checkout.has(self.pull.head):
            self.checkout.fetch(self.config.prod_branch, self.pull.number)

    def _edits_rules(self, base: str, merge: Merge) -> bool:
        before, after = (self.context.configurations(self.checkout, commit) for commit in (base, merge.commit or base))
        return before != after

    def _run(self, record: PullRecord, commit: str, shower: Shower) -> Finished:
        self._change(environment_exists=True)  # from here on there may be something to drop
        with (
            self.context.project(self.checkout, commit) as folder,
            self.context.gateways(self.checkout, record.base.sha, record.run.id) as gateways,
        ):
            changed = self.checkout.diff_paths(record.base.sha, commit)
            own_code = brings_code(changed, folder)
            rows = self.config.diff
            if self.is_fork:
                rows = rows.without_samples()  # whoever wrote the query would choose what is shown
            edited = model_files(changed, self.checkout.project)
            arguments = plan_arguments(record, self.config, rows, edited)
            call = PlannerCall(self.job, folder, arguments, record.run.id, gateways, own_code, self.is_fork)
            initial = self._record()
            self.given = tuple((override.model, override.category) for override in pending_overrides(initial))
            events = PlanEvents(self._change, shower, self.context.settings.progress_seconds)
            return self.context.plan(call, on_event=events.handle_line, should_stop=self._should_stop)

    def _should_stop(self) -> str:
        """Why the run must end: a newer head, a close, a /cancel, a /categorize; '' to go on."""
        news = self.inbox.deliveries.news(self.job.key, self.seen)
        reason = interrupts(news, self._record().head)
        if reason.startswith("superseded"):
            reason = self._look_again(unreachable=reason)  # webhooks come out of order: its head may be an older one
        if not reason and any(event.kind in COMMANDING for event in news):
            self._listen(news)
        if news:
            self.seen = news[-1].id
        if not reason and time.monotonic() - self.looked_at > self.context.settings.sweep_seconds:
            reason = self._look_again()
        return reason or self._stop_reason()

    def _listen(self, news: tuple[News, ...]) -> None:
        """Commands that come during a run are judged at once, by the head as it is at that moment."""
        try:
            self._refresh()
            carry_out(self.context, self.gateway, self.pull, self.config)
            answer_all(self.context, self.gateway, self.pull.number, self.config)
        except (GitHubFailed, GitHubPaused) as error:
            self.log.warning("commands_put_off", why=str(error), news=len(news))

    def _look_again(self, unreachable: str = "") -> str:
        """Why the run must end by the pull request itself: webhooks are lost or late; `unreachable` without GitHub."""
        try:
            self._refresh()
        except (GitHubFailed, GitHubPaused):
            self.looked_at = time.monotonic()
            return unreachable
        if not self.pull.is_open:
            return "closed"
        return f"superseded:{self.pull.head}" if self.pull.head != self._record().head else ""

    def _stop_reason(self) -> str:
        record = self._record()
        if record.state is PullState.CANCELLED:
            return "cancelled"
        if record.state in AFTER_MERGE:
            return "closed"
        if record.environment.destroy_by:
            return "destroyed"
        if record.wishes.select != self.select:
            return "selected"
        return (
            "categorized"
            if {(override.model, override.category) for override in pending_overrides(record)} - set(self.given)
            else ""
        )

    def _handle_stop(self, reason: str) -> None:
        """What follows a run that was ended: the next loop decides anew, or the job settles first."""
        self.log.info("run_stopped", reason=reason)
        kind, _, newer = reason.partition(":")
        if kind == "cancelled":
            publish(self.inbox, self.gateway, self._record())
        elif kind == "superseded":
            self._give_way(newer, "")
            raise Superseded(f"by {newer[:12]}")
        elif kind == "closed":
            self._refresh()
        elif kind not in ("categorized", "destroyed", "selected"):
            self._conclude(self._record(), failure_result(reason, "RequestError", hint="Type `/plan` to try again."))

    def _give_way(self, newer: str, reason: str) -> None:
        record = self._change(state=PullState.NEW, progress="", fresh=False, reason=reason)
        end_checks(self.inbox, self.gateway, record, newer)

    def _conclude(self, record: PullRecord, finished_run: Finished) -> None:
        """Keeps what the run printed before anybody is shown it."""
        outcome = finished_run.outcome
        current = self._record()
        if current.run.id != record.run.id or current.state is not PullState.PLANNING:
            return  # cancelled, merged or taken over meanwhile: nothing later may claim success
        nothing = finished_run is NOTHING
        if outcome.is_defect and not nothing and record.run.attempts + 1 < DEFECT_TRIES:
            self._change(attempts=record.run.attempts + 1, progress="Internal error in mergeplan; it will be retried.")
            raise Later(2.0 * 2**record.run.attempts, "the planner ended with a defect")
        if outcome.may_pass_later and record.run.attempts + 1 < 10 * DEFECT_TRIES:
            why = outcome.problems[0].message
            waits = self._change(attempts=record.run.attempts + 1, progress=f"Waiting: {why}")
            publish(self.inbox, self.gateway, waits)
            raise Later(min(60.0, 3.0 + 2.0 * record.run.attempts), why)
        ok = nothing or outcome.ok
        blocked = outcome.is_blocked or outcome.is_too_costly
        self._change(
            state=PullState.PLANNED if ok or blocked else PullState.FAILED,
            run_lines="" if nothing else pack_outcome(finished_run.lines, finished_run.exit_code),
            planned_at=now_text(),
            progress="",
            fresh=False,
            reason="",
            again=current.wishes.select != self.select,  # said when the run had just ended
            overrides=tuple(word for word in current.wishes.overrides if (word.model, word.category) not in self.given),
            attempts=0,
        )
        self._judge()
        self._look_around()
        publish(self.inbox, self.gateway, self._record())
        self.log.info("plan_made", ok=ok, plan=outcome.plan.id if outcome.plan else "")

    def _carry_over(self, record: PullRecord, prod: ProdRecord) -> None:
        """The plan stands, of the head merged into prod's commit as it is now; a conflict makes another plan."""
        base = prod.promoted_commit or record.base.sha
        merge = self.checkout.merge(base, record.head)
        if not merge.commit:
            self._change(again=True)
            return
        self.log.info("plan_carried_over", revision=prod.revision)
        now = {"base_sha": base, "tree": merge.tree, "prod_revision": prod.revision}
        self._change(**now, shown_revision=prod.revision if record.shown.head == record.head else record.shown.revision)

    # --- who decides ---

    def _judge(self) -> None:
        """By the rules that prod shows: what is merged and waits for an approval changes none."""
        prod = self.inbox.prods.get(self.job.repository)
        commit = prod.promoted_commit or self.checkout.head(self.config.prod_branch)
        judge(Reviewers(self.context, self.gateway, self.checkout, commit), self.inbox, self._record())

    def _look_around(self) -> None:
        look_around(self.inbox, self._record())
