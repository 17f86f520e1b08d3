"""Brings GitHub in line with a record: the comment and the checks are written when what they should say has changed."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import structlog

from bot.approvals import SHOWN_MOST, PlanShown
from bot.github.gateway import GitHubFailed, GitHubPaused, RepositoryGateway
from bot.inbox.inbox import Inbox
from bot.pages.links import page_of
from bot.records import (
    AFTER_MERGE,
    APPROVAL,
    ENVIRONMENT,
    PLAN,
    PROMOTION,
    TESTS,
    CheckRef,
    DeploymentRef,
    PullRecord,
    PullState,
)
from bot.report.checks import CheckView, checks, promotion_check, superseded
from bot.report.comment import PLAN_MARKER, Shown, plan_comment
from bot.report.deployments import DeploymentView, deployments
from planner.errors import MergeplanError

log = structlog.get_logger(__name__)
ORDER = (ENVIRONMENT, APPROVAL, PROMOTION, PLAN, TESTS)  # what a reader waits for most


@dataclass(frozen=True)
class _Write:
    """One thing that GitHub shows otherwise than it should: a check on a commit, a deployment, or else the comment."""

    sha: str = ""
    check: CheckView | None = None
    deployment: DeploymentView | None = None


def publish(
    inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, *, go_on: Callable[[], bool] = lambda: True
) -> PullRecord:
    """Writes what differs from what GitHub last got; a second call in the same state writes nothing.

    A pull request's own job, the thread beside it and prod's may all come here. Before each write the newest record is
    read, in the turn of that write: what was overtaken while it waited is never written, and the comment comes first.
    """
    return _bring_in_line(inbox, gateway, record, lambda newest: _due(inbox, newest) if go_on() else None)


class Shower:
    """Shows a pull request beside the run that changes it: neither waits for the other.

    While it is entered, each `wake` brings GitHub in line with the newest record. What it could not show is shown at
    the run's end, where a failure counts.
    """

    def __init__(self, inbox: Inbox, gateway: RepositoryGateway, record: PullRecord) -> None:
        self._inbox = inbox
        self._gateway = gateway
        self._record = record
        self._news = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"show-{record.number}", daemon=True)

    def __enter__(self) -> Self:
        self._news.set()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._news.set()
        self._thread.join()

    def wake(self) -> None:
        """The record has changed."""
        self._news.set()

    def _work(self) -> None:
        while not self._ended.is_set():
            self._news.wait()
            self._news.clear()
            try:
                publish(self._inbox, self._gateway, self._record, go_on=lambda: not self._ended.is_set())
            except (GitHubFailed, GitHubPaused, MergeplanError) as error:
                log.warning("progress_not_shown", pull_request=self._record.number, why=str(error))


def end_checks(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, newer: str) -> PullRecord:
    """Ends the running checks of this head because another run takes its place."""
    sha = record.head

    def running(newest: PullRecord) -> _Write | None:
        refs = (ref for ref in newest.checks if not ref.done and ref.sha == sha)
        return next((_Write(ref.sha, superseded(ref.name, newer)) for ref in refs), None)

    return _bring_in_line(inbox, gateway, record, running)


def _bring_in_line(
    inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, due: Callable[[PullRecord], _Write | None]
) -> PullRecord:
    while True:
        newest = inbox.pulls.get(record.repository, record.number)
        if due(newest) is None:
            return newest
        with gateway.turn(), inbox.pulls.alone(record.repository, record.number):
            newest = inbox.pulls.get(record.repository, record.number)
            write = due(newest)
            if write is None:
                return newest
            if write.check:
                _put_check(inbox, gateway, newest, write.sha, write.check)
            elif write.deployment:
                _put_deployment(inbox, gateway, newest, write.deployment)
            else:
                _put_comment(inbox, gateway, newest)


def _due(inbox: Inbox, record: PullRecord) -> _Write | None:
    """What is written next: the comment, the checks of this head, the merge's, and then those of older heads."""
    if _comment_is_due(inbox, record):
        return _Write()
    views = checks(_shown(inbox, record)) if record.head else ()
    wanted = [(record.head, view) for view in sorted(views, key=lambda view: ORDER.index(view.name))]
    if record.state in AFTER_MERGE and record.merge_sha and record.merge_sha != record.head:
        wanted.append((record.merge_sha, promotion_check(record)))
    if record.group.head and record.group.head != record.merge_sha:
        wanted += [
            (record.group.head, view) for view in checks(Shown(record.of_group, inbox.prods.get(record.repository)))
        ]
    for ref in record.checks:  # of heads that are no longer the newest: nothing stays in progress
        if not ref.done and ref.sha not in (record.head, record.merge_sha, record.group.head):
            wanted.append((ref.sha, superseded(ref.name, record.head)))
    for sha, view in wanted:
        known = record.check(view.name, sha)
        if not known or known.digest != view.digest:
            return _Write(sha, view)
    return next((_Write(deployment=each) for each in deployments(record) if _is_due(record, each)), None)


def _is_due(record: PullRecord, view: DeploymentView) -> bool:
    known = record.deployment(view.environment)
    return known is None or (known.sha, known.state) != (view.sha, view.state)


def _put_deployment(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, view: DeploymentView) -> None:
    known = record.deployment(view.environment)
    same = known.id if known and known.sha == view.sha else 0
    ref = DeploymentRef(view.environment, view.sha, gateway.deployments.write(view, same), view.state)
    kept = tuple(each for each in record.deployments if each.environment != view.environment)
    inbox.pulls.change(record.repository, record.number, deployments=(*kept, ref))


def _shown(inbox: Inbox, record: PullRecord) -> Shown:
    return Shown(record, inbox.prods.get(record.repository))


def _put_check(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, sha: str, view: CheckView) -> None:
    known = record.check(view.name, sha)
    key = f"mergeplan:{record.number}:{view.name.rpartition(' ')[2]}"
    details = gateway.page(record.number, page_of(view.name))
    try:
        found = known.id if known else gateway.checks.find(sha, key)
        check_id, url = gateway.checks.write(sha, view, key, found, details)
    except GitHubFailed as error:
        if error.status not in (403, 404, 422):
            raise
        # A personal token may not write checks, and a commit may be gone: the comment still tells all.
        log.warning(
            "check_not_written",
            repository=record.repository,
            pull_request=record.number,
            check=view.name,
            why=str(error),
        )
        check_id, url = 0, ""
    ref = CheckRef(view.name, sha, check_id, view.digest, view.done, url)
    fresh = inbox.pulls.get(record.repository, record.number)
    inbox.pulls.change(record.repository, record.number, checks=fresh.with_check(ref).checks)


def _comment_is_due(inbox: Inbox, record: PullRecord) -> bool:
    text = plan_comment(_shown(inbox, record))
    unseen = _is_new(record) or (_shows(record) and bool(record.promises) and not _is_shown(record))
    return text is not None and (_digest(text) != record.comment_digest or unseen)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shows(record: PullRecord) -> bool:
    """True when the comment shows a plan, or that a maintainer has to let it be made."""
    is_plan = (
        record.state is PullState.PLANNED
        or (record.state is PullState.MERGED and record.held)
        or (record.state is PullState.PLANNING and record.fresh)
    )
    return is_plan or record.state is PullState.HELD


def _is_new(record: PullRecord) -> bool:
    """True when what the comment shows is of another head or another prod than before."""
    return _shows(record) and (record.shown_head, record.shown_revision) != (record.head, record.prod_revision)


def _is_shown(record: PullRecord) -> bool:
    """True when the comment's last plan was this one, of this head."""
    last = record.plans_shown[-1] if record.plans_shown else None
    return last is not None and last.head == record.head and bool(set(last.promises) & set(record.promises))


def _plans_shown(record: PullRecord, since: str) -> tuple[PlanShown, ...]:
    """What was promised until now; one more when it is another plan, or another head."""
    kept = record.plans_shown
    if _is_shown(record):
        last = kept[-1]
        return (*kept[:-1], replace(last, promises=tuple(dict.fromkeys((*last.promises, *record.promises)))))
    return (*kept, PlanShown(record.head, record.promises, since))[-SHOWN_MOST:] if record.promises else kept


def _put_comment(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord) -> None:
    text = plan_comment(_shown(inbox, record))
    assert text is not None
    digest, is_new, posted = _digest(text), _is_new(record), None
    changes: dict[str, object] = {"comment_digest": digest}
    unseen = _shows(record) and bool(record.promises) and not _is_shown(record)
    if digest != record.comment_digest or unseen:
        if record.comment_id:
            try:
                posted = gateway.comments.edit(record.number, record.comment_id, text)
            except GitHubFailed as error:
                if error.status != 404:
                    raise
        posted = posted or gateway.comments.write(record.number, text, PLAN_MARKER)
        changes["comment_id"] = posted.id
        if is_new:
            changes["shown_since"] = posted.updated_at
    plan = record.outcome.plan if record.outcome else None
    if _shows(record):
        changes["plans_shown"] = _plans_shown(record, posted.updated_at if posted else "")
        changes |= {
            "shown_head": record.head,
            "shown_revision": record.prod_revision,
            "shown_plan": plan.id if plan else "",
        }
    inbox.pulls.change(record.repository, record.number, **changes)
