"""The merge queue: the plan of a group is built on its head, and the checks that GitHub waits for stand on that head.

A group is the base branch with the pull requests that wait, the last of which is ours. Its environment is its own, so
that the pull request's stays what its comment says; both share tables, and the merge that follows computes nothing.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.context import DEFECT_TRIES, Later, PlannerCall, failure_result
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import changes_no_model
from mergeplan.bot.pull_parts import PullStack
from mergeplan.bot.pulls.actions.environments import drop_views
from mergeplan.bot.pulls.arguments import model_files, plan_arguments
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.records import Pull, PullRecord, PullState
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.transitions.environments import drop_group
from mergeplan.bot.transitions.planning import reset_attempts, retry_run

log = structlog.get_logger(__name__)


def plan_group(current: PullPass) -> None:
    record = current.update(lambda record: replace(record, group=replace(record.group, state="planning")))
    finished = _refuse_group(record) or _plan_head(current, record)
    if finished is not None and finished.stopped:
        return  # another group took its place
    outcome = finished.outcome if finished else None
    attempts, waits = record.run.attempts, bool(outcome and outcome.may_pass_later and not outcome.lost_spark)
    tries = 10 * DEFECT_TRIES if waits else DEFECT_TRIES
    if outcome and (outcome.may_pass_later or outcome.is_defect) and attempts + 1 < tries:
        current.update(retry_run)
        raise Later(min(60.0, 3.0 + 2.0 * attempts), "the merge queue's group is planned again")
    ok = outcome is None or outcome.ok
    if current.record.group.head == record.group.head:
        lines = pack_outcome(finished.lines, finished.exit_code) if finished else ""
        current.update(partial(_conclude_group, state="planned" if ok else "failed", lines=lines))
    log.info("group_planned", key=current.job.key, ok=ok)


def drop_group_environment(current: PullPass) -> None:
    record = current.record
    drop_views(current, record.environment.group_name)
    current.update(partial(drop_group, over=record.group))


def _refuse_group(record: PullRecord) -> Finished | None:
    """Return the end of a group that must not run: of a head that is held or skipped, or that the rules keep."""
    if record.state is PullState.HELD:
        return failure_result("A maintainer must let the pull request's commit be planned first.", "Refused")
    if record.state is PullState.SKIPPED:
        return failure_result("The pull request has no plan: a label keeps it from being planned.", "Refused")
    if record.rules.decision.ruled and record.promises and record.comment_plan is None:
        return failure_result("The pull request's commit has no plan that people could approve.", "Refused")
    if not record.rules.decision.is_ok:
        return failure_result("The rules do not let this pull request into prod yet: see its plan.", "Refused")
    return None


def _plan_head(current: PullPass, record: PullRecord) -> Finished | None:
    """Plan the group's head; None where it changes no model."""
    commit, base, checkout = record.group.head, current.prod.promoted_commit, current.checkout
    try:
        tree = checkout.tree(commit)
    except CheckoutFailed:
        if current.job.attempts + 1 < DEFECT_TRIES:
            raise
        return failure_result("The group's commit is gone: the merge queue made another one.", "Conflict")
    forks = _find_forks(current, base, commit)
    if held := next((p for p in forks if current.record_of(p.number).permits.allowed_head != p.head), None):
        message = f"It holds #{held.number} of a fork: a maintainer must let that commit be planned first."
        return failure_result(message, "Refused")
    changed = checkout.diff_paths(base, commit)
    current.update(lambda stored: replace(stored, group=replace(stored.group, tree=tree, base_sha=base)))
    if changes_no_model(changed, checkout.project) and not record.restates:
        return None
    if not current.context.has_project(checkout, commit):
        return current.context.no_project(checkout, "A merge")
    return _run_planner(current, base, changed, is_fork=bool(forks))


def _find_forks(current: PullPass, base: str, commit: str) -> tuple[Pull, ...]:
    """Return the pull requests of forks that a group contains: by their heads or, squashed, by their own groups."""
    forks = [pull for pull in current.gateway.open_pulls() if pull.is_fork]
    groups = current.gateway.merge_groups() if forks else {}
    heads = [(pull, sha) for pull in forks for sha in (pull.head, groups.get(pull.number)) if sha]
    contains = current.checkout.contains
    return tuple(pull for pull, sha in heads if contains(commit, sha) and not contains(base, sha))


def _run_planner(current: PullPass, base: str, paths: tuple[str, ...], *, is_fork: bool) -> Finished:
    record = current.update(lambda record: replace(record, environment=replace(record.environment, group_exists=True)))
    run_id, commit, context, checkout = new_run_id(), record.group.head, current.context, current.checkout
    every = current.inbox.pulls.list_current(current.job.repository)
    ahead = (pull for pull in every if pull.group.head and checkout.contains(commit, pull.group.head))
    names = [pull.environment.name for pull in (record, *ahead) if pull.environment.name]
    words = ("--overrides-from", ",".join(dict.fromkeys(names))) if names else ()
    config = current.config.model_copy(update={"physical_plan": False})
    edited = model_files(paths, checkout.project)
    arguments = plan_arguments(_as_group(record), config, current.config.diff.nothing(), edited)

    def stop_reason() -> str:
        return "" if current.record.group.head == commit else "superseded"

    call = PlannerCall(current.job, Path(), (*arguments, *words), run_id, is_fork=is_fork)
    with context.open_change(call, checkout, base, commit) as call:
        return context.plan(call, should_stop=stop_reason)


def _as_group(record: PullRecord) -> PullRecord:
    """Return the record with the group's environment, without the requests for the pull request's own plan."""
    environment = replace(record.environment, name=record.environment.group_name)
    wishes = replace(record.wishes, overrides=(), select=())
    return replace(record, environment=environment, wishes=wishes, stack=PullStack())


def _conclude_group(record: PullRecord, state: str, lines: str) -> PullRecord:
    return replace(reset_attempts(record), group=replace(record.group, state=state, run_lines=lines))
