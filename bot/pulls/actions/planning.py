"""`MakePlan`: the planner's run for one head, from its beginning to what GitHub shows of it."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.context import DEFECT_TRIES, Later, PlannerCall, Superseded, failure_result, now_text
from mergeplan.bot.git.checkout import Merge
from mergeplan.bot.pull_parts import PlanBase, ProjectPlace, PullSource
from mergeplan.bot.pulls.actions.run_stops import MOVED, RunStops
from mergeplan.bot.pulls.actions.stacks import read_layer_changes
from mergeplan.bot.pulls.arguments import model_files, plan_arguments, skips_backfill
from mergeplan.bot.pulls.outside_readers import note_readers
from mergeplan.bot.pulls.publish import Shower, end_checks, publish_record
from mergeplan.bot.pulls.pull_pass import PullPass, StackMerge
from mergeplan.bot.pulls.radar import look_around
from mergeplan.bot.pulls.reviews import Reviewers, changes_rules, find_rules_error, judge_record
from mergeplan.bot.records import AFTER_MERGE, PullRecord, PullState
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.transitions.environments import set_environment_exists
from mergeplan.bot.transitions.planning import (
    PlanningStart,
    RunResult,
    Transition,
    begin_planning,
    conclude_run,
    give_way,
    report_progress,
    retry_run,
    set_plan_base,
    set_spark_ui,
    store_plan,
)
from mergeplan.planner.contract.lines import BatchLine, ErrorLine, PlanLine, StageLine
from mergeplan.planner.contract.wire import Line

CORRECTED = "This pull request corrects it. Its checks fail until the merge: an administrator can merge it past them."


class PlanEvents:
    """A listener that stores a run's plan in the record at once, and every `seconds` the progress, for the comment."""

    def __init__(self, update: Callable[[Transition], object], shower: Shower, seconds: float) -> None:
        self._update = update
        self._shower = shower
        self._seconds = seconds
        self._plan_id = ""
        self._shown_at = time.monotonic()

    def handle_line(self, line: Line) -> None:
        if isinstance(line, PlanLine):
            # one that comes again, checked by Spark, is shown when no other plan waits.
            is_new, self._plan_id = line.plan.id != self._plan_id, line.plan.id
            if is_new:
                log.info("plan_read", plan=line.plan.id)
            transition = partial(store_plan, lines=pack_outcome([line], 0), planned_at=now_text())
            self._update_record(transition, has_plan=is_new)
        elif isinstance(line, StageLine) and line.spark_ui:
            self._update_record(partial(set_spark_ui, address=line.spark_ui))
        elif isinstance(line, BatchLine) and time.monotonic() - self._shown_at > self._seconds:
            progress = f"`{line.model}`: batch {line.index} of {line.of}."
            self._update_record(partial(report_progress, progress=progress))

    def _update_record(self, transition: Transition, *, has_plan: bool = False) -> None:
        self._shown_at = time.monotonic()
        self._update(transition)
        self._shower.wake(has_plan=has_plan)


log = structlog.get_logger(__name__)
NOTHING = Finished((), 0)  # the end of a plan that had nothing to look at
SPARK_TRIES = 3  # runs of one head: the first beside others, the later ones alone
RESERVED = "Waiting: another plan, during which Spark ended, is being made alone."
LOST = "{} That ended {} runs of this plan, all but the first of them without another plan beside it."
LOST_HINT = (
    "A query of the change probably needs more memory than Spark has: change the query, or set `spark.driver.memory`. "
    "Then type `/plan`."
)


def make_plan(current: PullPass, reason: str) -> None:
    """Plan the head on the commit that prod shows; raise Superseded or Later if the job must come back."""
    record = _begin_plan(current, reason)
    stops = RunStops(current, record)
    try:
        # GitHub takes a write a second: the plan is made meanwhile.
        with Shower(current.inbox, current.gateway, record) as shower:
            record, finished = _compute_plan(current, stops, shower)
    except Superseded:
        _give_way(current, "")
        raise
    # A push may have come when the run had just ended: it settles as after one that was stopped.
    late = "" if finished.stopped else stops.late_reason()
    if finished.stopped or late == MOVED or late.startswith("superseded"):
        _handle_stop(current, stops, finished.stopped or late)
        return
    _conclude_plan(current, stops, record, finished)


def judge_plan(current: PullPass) -> None:
    """Store what the rules that prod shows say of the plan: a merge that waits for an approval changes none."""
    reviewers = Reviewers(current.context, current.gateway, current.checkout, current.base_commit(current.prod))
    judge_record(reviewers, current.inbox, current.record)


def _begin_plan(current: PullPass, reason: str) -> PullRecord:
    pull, config = current.pull, current.config
    if current.record.state in AFTER_MERGE:
        raise Later(0.5, "it was merged this moment")
    site = current.gateway.clone_url.removesuffix(".git")
    start = PlanningStart(
        head=pull.head,
        run_id=new_run_id(),
        reason=reason,
        source=PullSource(pull.author, pull.base_ref, config.is_forward_only(pull.head_ref)),
        place=ProjectPlace(site, current.checkout.project, current.gateway.project),
        environment=current.environment,
        stack=pull.stack,
        shows_deployments=config.deployments,
    )
    return current.update(partial(begin_planning, start=start))


def _compute_plan(current: PullPass, stops: RunStops, shower: Shower) -> tuple[PullRecord, Finished]:
    """Plan this head on prod's commit; return the record that the plan is of, too."""
    current.fetch_head()
    current.fetched = ""  # the next plan of this pass fetches anew
    if not current.checkout.has(current.pull.head):
        raise Superseded("the head is gone: a newer one was pushed")
    prod = current.prod
    base = current.base_commit(prod)
    merged = current.merge_head(base)
    merge = merged.merge
    changes = changes_rules(current.context, current.checkout, base, merge.commit or base)
    edits = changes or _edits_configuration(current, base, merge)
    plan_base = PlanBase(base, merge.tree, prod.revision)
    set_base = partial(set_plan_base, base=plan_base, edits_rules=edits, changes_rules=changes)
    record = current.update(partial(set_base, is_level=merged.is_level))
    stops.use(record)  # also where no planner is asked: a category would be pending for ever
    early = _early_result(current, record, base, merged)
    return record, early or _run_planner(current, stops, record, merge.commit, shower)


def _edits_configuration(current: PullPass, base: str, merge: Merge) -> bool:
    commits = (base, merge.commit or base)
    old_configuration, new_configuration = (
        current.context.configurations(current.checkout, commit) for commit in commits
    )
    return old_configuration != new_configuration


def _early_result(current: PullPass, record: PullRecord, base: str, merged: StackMerge) -> Finished | None:
    """Return the end of a plan that needs no planner: broken rules, a conflict, or no model touched."""
    merge = merged.merge
    base_error, own_error = current.config_error, None
    if merge.commit and record.rules.edits_rules:
        own_error = find_rules_error(current.context, current.checkout, merge.commit)
    if error := base_error or own_error:
        where = (error.place.path, error.place.line) if error.place else ("", 0)
        origin = "On the base branch: " if base_error else ""
        is_corrected = base_error and record.rules.edits_rules and merge.commit and not own_error
        hint = CORRECTED if is_corrected else error.hint
        return failure_result(origin + error.message, "ProjectError", path=where[0], line=where[1], hint=hint)
    if not merge.commit:
        return _refuse_merge(current, merged)
    if current.context.has_project(current.checkout, merge.commit):
        return NOTHING if current.is_untouched(record, base, merge) else None
    gone = current.context.has_project(current.checkout, base)
    return current.context.no_project(current.checkout, "A merge") if gone else NOTHING


def _refuse_merge(current: PullPass, merged: StackMerge) -> Finished:
    """Return the end of a head, or of a layer below it, that git cannot merge."""
    numbers = [layer.number for layer in current.pull.stack.layers]
    position = numbers.index(merged.at) if merged.at else len(numbers)
    subject, target = (
        (f"#{merged.at}, a layer below,", f"the branch of #{merged.at}") if merged.at else ("It", "the branch")
    )
    onto, source = "the base branch", f"`{current.config.prod_branch}`"
    if position:
        onto = source = f"the branch of #{numbers[position - 1]}"
    if not merged.merge.conflicts:
        hint = f"Start {target} from {source} and bring the change over."
        return failure_result(f"{subject} has no commit in common with {onto}.", "Conflict", hint=hint)
    shown = ", ".join(f"`{path}`" for path in merged.merge.conflicts[:10])
    hint = f"Merge {source} into {target} and resolve it."
    return failure_result(f"{subject} conflicts with {onto} in {shown}.", "Conflict", hint=hint)


def _run_planner(current: PullPass, stops: RunStops, record: PullRecord, commit: str, shower: Shower) -> Finished:
    current.update(partial(set_environment_exists, exists=True))  # from here on there may be something to drop
    context, checkout = current.context, current.checkout
    changed = checkout.diff_paths(record.base.sha, commit)
    # whoever wrote the query would choose what is shown of a fork
    rows = current.config.diff.without_samples() if current.is_fork else current.config.diff
    arguments = plan_arguments(record, current.config, rows, model_files(changed, checkout.project))
    is_alone = record.run.spark_losses > 0
    call = PlannerCall(current.job, Path(), arguments, record.run.id, is_fork=current.is_fork, is_alone=is_alone)
    with context.open_change(call, checkout, record.base.sha, commit) as call:
        if context.turns.is_reserved(current.job.repository):
            current.update(partial(report_progress, progress=RESERVED))
        events = PlanEvents(current.update, shower, context.settings.progress_seconds)
        finished = context.plan_in_turn(call, on_event=events.handle_line, should_stop=stops.reason)
        if record.stack.planned_on.layers and finished.outcome.ok and not record.wishes.select:
            has_rows = not skips_backfill(record, current.config)
            read_layer_changes(current, call, rows if has_rows else rows.nothing())
        return finished


def _handle_stop(current: PullPass, stops: RunStops, reason: str) -> None:
    """Settle a run that was ended: the next loop decides again, or the job settles first."""
    log.info("run_stopped", key=current.job.key, reason=reason)
    kind, _, newer = reason.partition(":")
    if kind == "cancelled":
        publish_record(current.inbox, current.gateway, current.record)
    elif kind == "superseded":
        _give_way(current, newer)
        raise Superseded(f"by {newer[:12]}")
    elif kind in ("closed", MOVED):
        current.refresh()
    elif kind not in ("categorized", "destroyed", "selected"):
        stopped = failure_result(reason, "RequestError", hint="Type `/plan` to try again.")
        _conclude_plan(current, stops, current.record, stopped)


def _give_way(current: PullPass, newer: str) -> None:
    end_checks(current.inbox, current.gateway, current.update(give_way), newer)


def _conclude_plan(current: PullPass, stops: RunStops, record: PullRecord, finished: Finished) -> None:
    """Store the output of the run before it is shown."""
    stored, outcome, is_nothing = current.record, finished.outcome, finished is NOTHING
    if stored.run.id != record.run.id or stored.state is not PullState.PLANNING:
        return  # cancelled, merged or taken over meanwhile: nothing later may claim success
    if not is_nothing:
        _retry_later(current, record, finished)
        finished = _explain_loss(record, finished)
    ok = is_nothing or outcome.ok
    state = PullState.PLANNED if ok or outcome.is_blocked or outcome.is_too_costly else PullState.FAILED
    lines = "" if is_nothing else pack_outcome(finished.lines, finished.exit_code)
    needs_replan = stops.is_other_selection(stored)  # a `/plan --select` that came when the run had just ended
    result = RunResult(state, lines, now_text())
    current.update(partial(conclude_run, result=result, used=stops.used, again=needs_replan))
    judge_plan(current)
    look_around(current.inbox, current.record)
    note_readers(current.context, current.record)
    publish_record(current.inbox, current.gateway, current.record)
    log.info("plan_made", key=current.job.key, ok=ok, plan=outcome.plan.id if outcome.plan else "")


def _retry_later(current: PullPass, record: PullRecord, finished: Finished) -> None:
    outcome, attempts = finished.outcome, record.run.attempts
    if outcome.is_defect and attempts + 1 < DEFECT_TRIES:
        current.update(partial(retry_run, progress="Internal error in mergeplan; it will be retried."))
        raise Later(2.0 * 2**attempts, "the planner ended with a defect")
    if outcome.lost_spark and record.run.spark_losses + 1 >= SPARK_TRIES:
        return
    if outcome.may_pass_later and attempts + 1 < 10 * DEFECT_TRIES:
        reason = outcome.problems[0].message
        retry = partial(retry_run, progress=f"Waiting: {reason}", lost_spark=outcome.lost_spark)
        waiting = current.update(retry)
        publish_record(current.inbox, current.gateway, waiting)
        raise Later(min(60.0, 3.0 + 2.0 * attempts), reason)


def _explain_loss(record: PullRecord, finished: Finished) -> Finished:
    """Add to the last of several runs that lost Spark that they are the reason."""
    if not finished.outcome.lost_spark or not record.run.spark_losses:
        return finished
    lines = tuple(
        line.model_copy(update={"message": LOST.format(line.message, record.run.spark_losses + 1), "hint": LOST_HINT})
        if isinstance(line, ErrorLine) and line.kind == "SparkLost"
        else line
        for line in finished.lines
    )
    return replace(finished, lines=lines)
