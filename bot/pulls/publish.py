"""Brings GitHub in line with a record: the comment and the checks are written when what they should say has changed."""

from __future__ import annotations

import hashlib

import structlog

from bot.github.gateway import GitHubFailed, RepositoryGateway
from bot.inbox.inbox import Inbox
from bot.records import AFTER_MERGE, CheckRef, PullRecord, PullState
from bot.report.checks import CheckView, checks, promotion_check, superseded
from bot.report.comment import PLAN_MARKER, Shown, plan_comment

log = structlog.get_logger(__name__)


def publish(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord) -> PullRecord:
    """Writes what differs from what GitHub last got; a second call in the same state writes nothing.

    A pull request's own job and prod's may both come here: one after the other, and each reads the newest record.
    """
    with inbox.pulls.alone(record.repository, record.number):
        return _publish(inbox, gateway, inbox.pulls.get(record.repository, record.number))


def _publish(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord) -> PullRecord:
    record = retire_checks(inbox, gateway, record)
    for view in checks(_shown(inbox, record)) if record.head else ():
        record = _put_check(inbox, gateway, record, record.head, view)
    if record.state in AFTER_MERGE and record.merge_sha and record.merge_sha != record.head:
        record = _put_check(inbox, gateway, record, record.merge_sha, promotion_check(record))
    return _put_comment(inbox, gateway, record)


def retire_checks(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord) -> PullRecord:
    """Ends the checks of heads that are no longer the newest; nothing stays in progress."""
    for ref in record.checks:
        if not ref.done and ref.sha not in (record.head, record.merge_sha):
            record = _put_check(inbox, gateway, record, ref.sha, superseded(ref.name, record.head))
    return record


def end_checks(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, newer: str) -> PullRecord:
    """Ends the running checks of this head because another run takes its place."""
    with inbox.pulls.alone(record.repository, record.number):
        for ref in record.checks:
            if not ref.done and ref.sha == record.head:
                record = _put_check(inbox, gateway, record, ref.sha, superseded(ref.name, newer))
    return record


def _shown(inbox: Inbox, record: PullRecord) -> Shown:
    return Shown(record, inbox.prods.get(record.repository))


def _put_check(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord, sha: str, view: CheckView) -> PullRecord:
    known = record.check(view.name, sha)
    if known and known.digest == view.digest:
        return record
    key = f"mergeplan:{record.number}:{view.name.rpartition(' ')[2]}"
    try:
        check_id, url = gateway.checks.write(sha, view, key, known.id if known else gateway.checks.find(sha, key))
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
    return inbox.pulls.change(record.repository, record.number, checks=fresh.with_check(ref).checks)


def _put_comment(inbox: Inbox, gateway: RepositoryGateway, record: PullRecord) -> PullRecord:
    text = plan_comment(_shown(inbox, record))
    if text is None:
        return record
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    is_plan = record.state is PullState.PLANNED or (record.state is PullState.PLANNING and record.fresh)
    shows = is_plan or record.state is PullState.HELD
    is_new = shows and (record.shown_head, record.shown_revision) != (record.head, record.prod_revision)
    if digest == record.comment_digest and not is_new:
        return record
    changes: dict[str, object] = {"comment_digest": digest}
    if digest != record.comment_digest:
        posted = None
        if record.comment_id:
            try:
                posted = gateway.edit_comment(record.number, record.comment_id, text)
            except GitHubFailed as error:
                if error.status != 404:
                    raise
        posted = posted or gateway.write_comment(record.number, text, PLAN_MARKER)
        changes["comment_id"] = posted.id
        if is_new:
            changes["shown_since"] = posted.updated_at
    plan = record.outcome.plan if record.outcome else None
    if shows:
        changes |= {
            "shown_head": record.head,
            "shown_revision": record.prod_revision,
            "shown_plan": plan.id if plan else "",
        }
    return inbox.pulls.change(record.repository, record.number, **changes)
