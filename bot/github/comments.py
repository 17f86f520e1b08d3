"""The comments of pull requests: read, written and edited, each of ours once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import structlog
from github.IssueComment import IssueComment

from mergeplan.bot.forge.checks import Edited
from mergeplan.bot.forge.failures import ForgeFailed, OwnerUnavailable
from mergeplan.bot.github.calls import Calls
from mergeplan.bot.records import Posted

T = TypeVar("T")
log = structlog.get_logger(__name__)


class Comments:
    """The comments of one repository's pull requests; ours are by `login`."""

    def __init__(self, calls: Calls, login: str) -> None:
        self._calls, self._login = calls, login

    def read(self, number: int) -> tuple[Posted, ...]:
        return self._calls.read(lambda: tuple(map(_parse_comment, self._calls.repo.get_issue(number).get_comments())))

    def editor(self, comment: Posted) -> Edited:
        # By GraphQL: REST gives whole seconds, in which an edit may hide. A GitHub may lack it, or refuse this query.
        try:
            answer = self._calls.read(
                lambda: self._calls.connection.client.requester.graphql_node(
                    comment.node_id, "lastEditedAt editor { login }", "IssueComment"
                )[1]
            )
        except ForgeFailed as error:
            if isinstance(error, OwnerUnavailable) or error.status == 401:
                raise
            return Edited(known=False)
        node = (answer.get("data") or {}).get("node")
        if node is None:
            return Edited(known=False)
        return Edited(by=(node["editor"] or {}).get("login", ""), edited=bool(node["lastEditedAt"]))

    def write(self, number: int, body: str, marker: str) -> Posted:
        body = self._calls.clean(body)

        def look() -> Posted | None:
            own_comments = (
                comment
                for comment in self.read(number)
                if comment.author == self._login and comment.body.startswith(marker)
            )
            return next(own_comments, None)

        def post() -> Posted:
            return _parse_comment(self._calls.repo.get_issue(number).create_comment(body))

        posted = self._pass_lock(lambda: self._calls.write_once(look, post), self._leave_out(body))
        return posted if posted.body == body else self.edit(number, posted.id, body)

    def edit(self, number: int, comment_id: int, body: str) -> Posted:
        clean = self._calls.clean(body)

        def change() -> Posted:
            comment = self._calls.repo.get_issue(number).get_comment(comment_id)
            comment.edit(clean)
            return _parse_comment(comment)

        return self._pass_lock(lambda: self._calls.write(change), self._leave_out(clean, comment_id))

    def react(self, number: int, comment_id: int, content: str) -> None:
        def change() -> None:
            self._calls.repo.get_issue(number).get_comment(comment_id).create_reaction(content)

        self._pass_lock(lambda: self._calls.write(change, first=True), None, gone=(404, 410))

    def _leave_out(self, body: str, comment_id: int = 0) -> Posted:
        now = datetime.now(UTC).isoformat(timespec="seconds")  # the checks show the same, at this moment
        return Posted(comment_id, self._login, body, now, now, by_bot=True, edited=False)

    def _pass_lock(self, write: Callable[[], T], otherwise: T, gone: tuple[int, ...] = ()) -> T:
        """Write, or go on with the other value where people have locked the conversation, or deleted the comment."""
        try:
            return write()
        except ForgeFailed as error:
            if "is locked" not in str(error) and error.status not in gone:
                raise
            log.warning("comment_not_written", repository=self._calls.name, why=str(error))
            return otherwise


def _parse_comment(comment: IssueComment) -> Posted:
    author = comment.user
    return Posted(
        id=comment.id,
        author=author.login if author else "",
        body=comment.body or "",
        at=comment.created_at.astimezone(UTC).isoformat(),
        updated_at=comment.updated_at.astimezone(UTC).isoformat(),
        by_bot=bool(author and author.type == "Bot"),
        edited=comment.updated_at - comment.created_at > timedelta(0),
        node_id=comment.node_id or "",
    )
