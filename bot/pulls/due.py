"""What GitHub shows otherwise than a record says, and what is known once it shows it. Pure: `publish` writes it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from mergeplan.bot.policy.approvals import SHOWN_MOST, PlanShown
from mergeplan.bot.records import AFTER_MERGE, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.checks.check import CheckView
from mergeplan.bot.report.checks.promotion import promotion_check
from mergeplan.bot.report.checks.table import attach_buttons, checks, final_check, writing_turn
from mergeplan.bot.report.comment import comment_digest, plan_comment
from mergeplan.bot.report.deployments import DeploymentView, list_deployments
from mergeplan.bot.report.shown import Shown


@dataclass(frozen=True)
class Due:
    """The next writes: the comment's text ('' means unchanged), checks, each on its commit, or a deployment."""

    comment: str = ""
    checks: tuple[tuple[str, CheckView], ...] = ()
    deployment: DeploymentView | None = None


def what_is_due(record: PullRecord, prod: ProdRecord, *, presses: bool = False) -> Due | None:
    """Return the comment and the checks that differ from GitHub, or else a deployment; None for nothing.

    `presses`: a press of a check's button reaches the bot, so that checks have some.
    """
    shown = Shown(record, prod)
    views = [_add_buttons(view, shown, presses) for view in checks(shown)] if record.head else []
    required_checks = [(record.head, view) for view in sorted(views, key=lambda view: writing_turn(view.name))]
    if record.state in AFTER_MERGE and record.promotion.merge_sha and record.promotion.merge_sha != record.head:
        required_checks.append((record.promotion.merge_sha, _add_buttons(promotion_check(record), shown, presses)))
    if record.group.head and record.group.head != record.promotion.merge_sha:
        required_checks += [(record.group.head, view) for view in checks(Shown(record.group_record, prod))]
    stand = {(sha, view.name) for sha, view in required_checks}
    # Of older heads, and of a queue's group that was merged meanwhile: none stays in progress.
    for ref in record.checks:
        if not ref.done and (ref.sha, ref.name) not in stand:
            newer = "" if ref.sha in (record.head, record.promotion.merge_sha) else record.head
            required_checks.append((ref.sha, final_check(ref.name, newer)))
    text = plan_comment(shown) or ""
    due = Due(
        text if text and (_is_new(record) or must_be_written(record, text)) else "",
        _list_changed_checks(record, required_checks),
    )
    if due.comment or due.checks:
        return due
    return next(
        (Due(deployment=deployment) for deployment in list_deployments(record) if _is_due(record, deployment)), None
    )


def _add_buttons(view: CheckView, pull_view: Shown, presses: bool) -> CheckView:
    return attach_buttons(view, pull_view) if presses else view


def due_check_ends(record: PullRecord, newer: str, sha: str) -> Due | None:
    views = ((sha, final_check(ref.name, newer)) for ref in record.checks if not ref.done and ref.sha == sha)
    differing = _list_changed_checks(record, views)
    return Due(checks=differing) if differing else None


def must_be_written(record: PullRecord, text: str) -> bool:
    """Return True when the comment's text differs, or its last plan was another one."""
    return comment_digest(text) != record.comment.digest or _has_unseen_plan(record)


def is_progress(record: PullRecord, has_news: Callable[[], bool]) -> bool:
    """Return True while GitHub already shows the plan, or there is none yet: the plans of others are awaited more."""
    if has_news():
        return False
    open_states = (PullState.NEW, PullState.WAITING, PullState.PLANNING, PullState.PLANNED)
    return record.state in open_states and not (_is_new(record) or _has_unseen_plan(record))


def record_comment(stored: PullRecord, record: PullRecord, text: str, at: str) -> PullRecord:
    """Store that the plan comment shows `record`; `at` is when it was written (UTC), '' where it was not."""
    shown = replace(stored.shown, since=at if at and _is_new(record) else stored.shown.since)
    if _shows_plan(record):
        plan = record.outcome.plan if record.outcome else None
        plan_id, plans = plan.id if plan else "", _plans_shown(record, at)
        shown = replace(shown, head=record.head, revision=record.base.prod_revision, plan=plan_id, plans=plans)
    return replace(stored, comment=replace(stored.comment, digest=comment_digest(text)), shown=shown)


def _list_changed_checks(
    record: PullRecord, wanted_checks: Iterable[tuple[str, CheckView]]
) -> tuple[tuple[str, CheckView], ...]:
    digests_by_check = {(check.name, check.sha): check.digest for check in record.checks}
    return tuple((sha, view) for sha, view in wanted_checks if digests_by_check.get((view.name, sha)) != view.digest)


def _is_due(record: PullRecord, view: DeploymentView) -> bool:
    deployment = record.deployment(view.environment)
    return deployment is None or (deployment.sha, deployment.state) != (view.sha, view.state)


def _shows_plan(record: PullRecord) -> bool:
    is_plan = (
        record.state is PullState.PLANNED
        or (record.state is PullState.MERGED and record.rules.held)
        or (record.state is PullState.PLANNING and record.run.fresh)
    )
    return is_plan or record.state is PullState.HELD


def _has_unseen_plan(record: PullRecord) -> bool:
    return _shows_plan(record) and bool(record.promises) and record.comment_plan is None


def _is_new(record: PullRecord) -> bool:
    """Return True when the comment shows another head or another prod than before."""
    return _shows_plan(record) and (record.shown.head, record.shown.revision) != (
        record.head,
        record.base.prod_revision,
    )


def _plans_shown(record: PullRecord, since: str) -> tuple[PlanShown, ...]:
    """Return what was promised until now, with this plan where it or its head is new."""
    shown_plans = record.shown.plans
    if last := record.comment_plan:
        return (*shown_plans[:-1], replace(last, promises=tuple(dict.fromkeys((*last.promises, *record.promises)))))
    return (
        (*shown_plans, PlanShown(record.head, record.promises, since))[-SHOWN_MOST:] if record.promises else shown_plans
    )
