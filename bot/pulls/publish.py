"""Brings GitHub in line with a record: the comment and the checks are written when what they should say has changed."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Self

import structlog

from mergeplan.bot.forge.checks import CheckId, CheckRequest, CommentEdit
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.forge.waiting import mark_waiting
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.projects import add_label, label_of
from mergeplan.bot.pulls.due import Due, due_check_ends, is_progress, must_be_written, record_comment, what_is_due
from mergeplan.bot.records import CheckRef, DeploymentRef, Posted, PullRecord
from mergeplan.bot.report.checks.check import CheckView
from mergeplan.bot.report.checks.keys import check_key
from mergeplan.bot.report.checks.table import page_of
from mergeplan.bot.report.comment import plan_marker
from mergeplan.bot.report.deployments import DeploymentView
from mergeplan.planner.errors import MergeplanError

log = structlog.get_logger(__name__)


def publish_record(
    inbox: Inbox,
    gateway: RepositoryGateway,
    record: PullRecord,
    *,
    go_on: Callable[[], bool] = lambda: True,
    has_news: Callable[[], bool] = lambda: False,
) -> PullRecord:
    """Write what differs from what GitHub last got; a second call in the same state writes nothing.

    A pull request's own job, the thread beside it and prod's may all come here. Before each write the newest record is
    read, in the turn of that write: what was overtaken while it waited is never written, and the comment comes first.
    `has_news` tells a write that waits that it has a plan to show by now.
    """

    def due(newest: PullRecord) -> Due | None:
        prod = inbox.prods.get(record.repository)
        return what_is_due(newest, prod, presses=gateway.has_buttons) if go_on() else None

    return _bring_in_line(inbox, gateway, record, due, has_news)


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
        self._has_plan = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show_changes, name=f"show-{record.number}", daemon=True)

    def __enter__(self) -> Self:
        self._news.set()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._news.set()
        with mark_waiting():
            self._thread.join()

    def wake(self, *, has_plan: bool = False) -> None:
        self._has_plan = has_plan or self._has_plan
        self._news.set()

    def _show_changes(self) -> None:
        while not self._ended.is_set():
            self._news.wait()
            self._news.clear()
            try:
                publish_record(
                    self._inbox,
                    self._gateway,
                    self._record,
                    go_on=lambda: not self._ended.is_set(),
                    has_news=lambda: self._has_plan or self._ended.is_set(),  # the run's end waits for this thread
                )
                self._has_plan = self._has_plan and self._news.is_set()
            except (ForgeFailed, ForgePaused, MergeplanError) as error:
                log.warning("progress_not_shown", pull_request=self._record.number, why=str(error))


def write_check(gateway: RepositoryGateway, commit: str, view: CheckView, key: str, details: str = "") -> bool:
    """Write a check that is of no pull request's record; return False for a failure after which GitHub may take it."""
    try:
        gateway.checks.write(CheckRequest(commit, view, key, gateway.checks.find(commit, key), details))
    except (ForgeFailed, ForgePaused) as error:
        log.warning("check_not_written", commit=commit, why=str(error))
        return isinstance(error, ForgeFailed) and error.status in (404, 422)
    return True


def end_checks(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, newer: str) -> None:
    """End the running checks of this head because another run replaces it."""
    _bring_in_line(inbox, gateway, record, lambda newest: due_check_ends(newest, newer, record.head))


def _bring_in_line(
    inbox: Inbox,
    gateway: RepositoryGateway,
    record: PullRecord,
    due: Callable[[PullRecord], Due | None],
    has_news: Callable[[], bool] = lambda: False,
) -> PullRecord:
    while True:
        newest = inbox.pulls.get(record.repository, record.number)
        if due(newest) is None:
            return newest
        is_late = partial(is_progress, newest, has_news)
        with gateway.turn(is_late), inbox.pulls.alone(record.repository, record.number):
            newest = inbox.pulls.get(record.repository, record.number)
            write = due(newest)
            if write is None:
                return newest
            if write.deployment:
                _put_deployment(inbox, gateway, newest, write.deployment)
            elif not _put_together(inbox, gateway, newest, write):
                _put_first(inbox, gateway, newest, write)  # the others are still due then


def _put_deployment(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, view: DeploymentView) -> None:
    deployment = record.deployment(view.environment)
    deployment_id = deployment.id if deployment and deployment.sha == view.sha else 0
    ref = DeploymentRef(view.environment, view.sha, gateway.deployments.write(view, deployment_id), view.state)
    inbox.pulls.update(record.repository, record.number, _put_deployment_ref, ref)


def _put_deployment_ref(record: PullRecord, ref: DeploymentRef) -> PullRecord:
    other_deployments = (deployment for deployment in record.deployments if deployment.environment != ref.environment)
    return replace(record, deployments=(*other_deployments, ref))


def _put_together(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, write: Due) -> bool:
    """Write all of it in one call and return True; False for a single write or a first comment."""
    is_edit = bool(record.comment.node) and must_be_written(record, write.comment)
    if len(write.checks) + bool(write.comment) < 2 or (write.comment and not is_edit):
        return False
    try:
        requests = [_check_request(gateway, record, sha, view) for sha, view in write.checks]
    except ForgeFailed:
        return False  # one of the commits may be gone: written one by one, each has its own failure
    edit = CommentEdit(record.comment.node, write.comment) if write.comment else None
    done = gateway.checks.write_together(edit, requests)
    if done is None:
        return False
    inbox.pulls.update(record.repository, record.number, _put_checks, zip(write.checks, done.checks, strict=True))
    if edit:
        inbox.pulls.update(record.repository, record.number, record_comment, record, write.comment, done.edited_at)
    return True


def _put_first(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, write: Due) -> None:
    if write.comment:
        _put_comment(inbox, gateway, record, write.comment)
        return
    written = write.checks[:1]
    (sha, view), *_ = written
    try:
        check = gateway.checks.write(_check_request(gateway, record, sha, view))
    except ForgeFailed as error:
        if error.status not in (403, 404, 422):
            raise
        # A personal token may not write checks, and a commit may be gone: the comment still tells all. A later pass
        # tries again, for what stands there may be a success.
        log.warning(
            "check_not_written",
            repository=record.repository,
            pull_request=record.number,
            check=view.name,
            why=str(error),
        )
        check, written = CheckId(), write.checks if error.status == 403 else written
    inbox.pulls.update(record.repository, record.number, _put_checks, [(at, check) for at in written])


def _put_checks(record: PullRecord, written_checks: Iterable[tuple[tuple[str, CheckView], CheckId]]) -> PullRecord:
    for (sha, view), check in written_checks:
        ref = CheckRef(view.name, sha, check.id, view.digest, view.is_completed, check.url, check.node)
        record = replace(record.add_check(ref), refused_at=record.refused_at if check.id else time.time())
    return record


def _check_request(gateway: RepositoryGateway, record: PullRecord, sha: str, view: CheckView) -> CheckRequest:
    ref = record.check(view.name, sha)
    key = check_key(record.repository, record.number, view.name)
    check_id = CheckId(ref.id, ref.node, ref.url) if ref and ref.id else gateway.checks.find(sha, key)
    named = replace(view, name=add_label(view.name, label_of(record.repository)))
    return CheckRequest(sha, named, key, check_id, gateway.page(record.number, page_of(view.name)))


def _put_comment(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, text: str) -> None:
    posted = None
    if must_be_written(record, text):
        if record.comment.id:
            try:
                posted = gateway.comments.edit(record.number, record.comment.id, text)
            except ForgeFailed as error:
                if error.status != 404:
                    raise
        posted = posted or gateway.comments.write(record.number, text, plan_marker(record.repository))
    inbox.pulls.update(record.repository, record.number, _put_posted, record, text, posted)


def _put_posted(stored: PullRecord, record: PullRecord, text: str, posted: Posted | None) -> PullRecord:
    """Store which comment shows `record`; None where the text of the comment was not written again."""
    if posted is None:
        return record_comment(stored, record, text, "")
    comment = replace(stored.comment, id=posted.id, node=posted.node_id)
    return record_comment(replace(stored, comment=comment), record, text, posted.updated_at)
