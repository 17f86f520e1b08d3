"""The gateway to GitHub: the few verbs that the bot uses, patient on reads, never twice on writes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote

import structlog
from github import Consts
from github.CheckRun import CheckRun
from github.IssueComment import IssueComment
from github.Repository import Repository

from bot.checks import CheckView
from bot.events import Said
from bot.owners import Connection, Owners, OwnerUnavailable
from bot.patience import READ_TRIES, GitHubFailed, GitHubPaused, is_passing, patiently
from bot.polling import MOST_PAGES, Polls
from bot.records import Posted, Pull
from bot.settings import ROLES, Role, Settings

T = TypeVar("T")
log = structlog.get_logger(__name__)
WRITE_TRIES = 3
ANNOTATIONS_A_CALL = 50
GHOST = "ghost"  # who GitHub shows where an account is gone
WITHOUT_GRAPHQL = (404, 405, 410, 501)


@dataclass(frozen=True)
class Edited:
    """What became of a comment after it was written; `by` is '' when nobody edited it, or nobody knows who."""

    by: str = ""
    edited: bool = False
    known: bool = True


class GitHub:
    """Every repository that the bot may see, through an App or a token."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._options: dict[str, Any] = {
            "base_url": settings.github_api_url.rstrip("/") or Consts.DEFAULT_BASE_URL,
            "timeout": settings.api_timeout_seconds,
            "retry": None,  # retried here, where it is known what may be repeated
            "seconds_between_requests": 0,
            "seconds_between_writes": settings.write_spacing_seconds,
            "per_page": 100,
            "lazy": True,  # an object known by its number costs no call until something of it is read
        }
        self._lock = threading.Lock()
        self._known: dict[str, RepositoryGateway] = {}
        self._polls = Polls()
        self._secrets = settings.secrets()
        self._login = settings.bot_login
        self.owners = Owners(settings, self._options, self._polls)

    def repository(self, name: str) -> RepositoryGateway:
        """The verbs for one repository; OwnerUnavailable or GitHubFailed when it cannot be opened."""
        self.owners.of(name)
        login = self.login()
        with self._lock:
            if name not in self._known:
                self._known[name] = RepositoryGateway(name, self.owners, self._polls, login, self._secrets)
            return self._known[name]

    def login(self) -> str:
        """Who the bot's own comments are by: `slug[bot]`, or the token's user."""
        if not self._login:
            app = self.owners.app
            if app:
                slug = patiently(self.owners.app_pause, lambda: app.get_app().slug)
                self._login = f"{slug}[bot]"
            else:
                connection = self.owners.of("")
                self._login = patiently(connection.pause, lambda: connection.client.get_user().login)
        return self._login

    def repositories(self, owner: str = "") -> tuple[str, ...]:
        """The repositories to look after: those of an owner where the App is installed, or those the settings name."""
        named = tuple(each.strip() for each in self._settings.repositories.split(",") if each.strip())
        if not self.owners.app:
            return named
        return self.owners.repositories(owner)

    def budget(self) -> Mapping[str, int]:
        """How many calls each installation has left, by its last answer."""
        return {str(each.installation): each.client.rate_limiting[0] for each in self.owners.connections()}


class RepositoryGateway:
    """What the bot does in one repository."""

    def __init__(self, name: str, owners: Owners, polls: Polls, login: str, secrets: Sequence[str]) -> None:
        self.name = name
        self.login = login
        self._owners = owners
        self._polls = polls
        self._secrets = secrets
        self._open: tuple[Connection, Repository] | None = None

    # --- reading ---

    @property
    def clone_url(self) -> str:
        return self._read(lambda: self._repo.clone_url)

    @property
    def default_branch(self) -> str:
        return self._read(lambda: self._repo.default_branch)

    def default_branch_now(self) -> str:
        """The default branch, asked anew: it may have been renamed."""

        def read() -> str:
            self._repo.update()  # by its ETag: free while nothing has changed
            return self._repo.default_branch

        return self._read(read)

    def git_token(self) -> str:
        """A token that git may fetch with, for now."""
        return self._owners.of(self.name).token()

    def pull(self, number: int) -> Pull:
        """The pull request as it is now."""
        return self._poll(f"pulls/{int(number)}", lambda value: (_pull(value),))[0]

    def open_pulls(self) -> tuple[Pull, ...]:
        """Every open pull request."""
        return self._poll("pulls?direction=desc&per_page=100&sort=updated&state=open", _pulls)

    def closed_pulls(self, limit: int = 50) -> tuple[Pull, ...]:
        """The pull requests that were closed or merged last."""
        return self._poll(f"pulls?direction=desc&per_page={int(limit)}&sort=updated&state=closed", _pulls, pages=1)

    def branch_head(self, branch: str) -> str:
        """The commit that a branch is at."""
        return self._poll(f"git/ref/heads/{quote(branch)}", lambda value: (str(value["object"]["sha"]),))[0]

    def role(self, login: str) -> Role | None:
        """The live permission of a person; None when it could not be read."""
        try:
            name = self._read(lambda: self._repo.get_collaborator_role_name(login))
        except GitHubFailed as error:
            return "none" if error.status == 404 else None
        if name in ROLES:
            return next(role for role in ROLES if role == name)
        # A custom role: its base permission is what counts.
        try:
            base = self._read(lambda: self._repo.get_collaborator_permission(login))
        except GitHubFailed:
            return None
        return next((role for role in ROLES if role == base), None)

    def comments(self, number: int, since: datetime | None = None) -> tuple[Posted, ...]:
        """The comments of a pull request, oldest first; only those touched since then, if a time is given."""

        def read() -> tuple[Posted, ...]:
            issue = self._repo.get_issue(number)
            return tuple(_posted(each) for each in (issue.get_comments(since=since) if since else issue.get_comments()))

        return self._read(read)

    def editor(self, comment: Posted) -> Edited:
        """Who edited a comment after it was written, by GraphQL: REST gives whole seconds, and an edit may hide in one.

        `known` is False on a GitHub that has no GraphQL.
        """
        try:
            found = self._read(
                lambda: self._connection.client.requester.graphql_node(
                    comment.node_id, "lastEditedAt editor { login }", "IssueComment"
                )[1]
            )
        except GitHubFailed as error:
            if error.status in WITHOUT_GRAPHQL:
                return Edited(known=False)
            raise
        node = found["data"]["node"]
        return Edited(by=(node["editor"] or {}).get("login", ""), edited=bool(node["lastEditedAt"]))

    def find_check(self, sha: str, key: str) -> int:
        """The id of our check with that key on a commit, 0 when there is none."""
        found = self._read(lambda: list(self._repo.get_commit(sha).get_check_runs()))
        return next((each.id for each in found if each.external_id == key), 0)

    # --- writing ---

    def write_comment(self, number: int, body: str, marker: str) -> Posted:
        """Posts a comment that begins with that hidden marker; edits it when one of ours does so already."""
        body = self._clean(body)

        def look() -> Posted | None:
            ours = (
                each for each in self.comments(number) if each.author == self.login and each.body.startswith(marker)
            )
            return next(ours, None)

        def post() -> Posted:
            return _posted(self._repo.get_issue(number).create_comment(body))

        posted = self._write_once(look, post)
        return posted if posted.body == body else self.edit_comment(number, posted.id, body)

    def edit_comment(self, number: int, comment_id: int, body: str) -> Posted:
        """Makes a comment say this."""
        clean = self._clean(body)

        def edit() -> Posted:
            comment = self._repo.get_issue(number).get_comment(comment_id)
            comment.edit(clean)
            return _posted(comment)

        return self._read(edit, tries=WRITE_TRIES)

    def react(self, number: int, comment_id: int, content: str) -> None:
        """Adds a reaction; GitHub keeps one of a kind, so it may be repeated."""
        self._read(
            lambda: self._repo.get_issue(number).get_comment(comment_id).create_reaction(content), tries=WRITE_TRIES
        )

    def unreact(self, number: int, comment_id: int, content: str) -> None:
        """Takes our own reaction of that kind back."""

        def remove() -> None:
            for reaction in self._repo.get_issue(number).get_comment(comment_id).get_reactions():
                if reaction.content == content and reaction.user.login == self.login:
                    reaction.delete()

        self._read(remove, tries=WRITE_TRIES)

    def write_check(self, sha: str, view: CheckView, key: str, known: int = 0) -> tuple[int, str]:
        """Makes a check on a commit say this, and returns its id and page; `known` is its id when it stands already."""
        output, rest = self._output(view)
        state: dict[str, Any] = {"status": view.status, "external_id": key}
        if view.done:
            state["conclusion"] = view.conclusion
        if known:
            try:
                run = self._read(lambda: self._edited(known, state, output), tries=WRITE_TRIES)
                return self._more(run, rest, output)
            except GitHubFailed as error:
                if error.status not in (403, 404, 422):
                    raise

        def look() -> CheckRun | None:
            found = self._repo.get_commit(sha).get_check_runs(check_name=view.name)
            return next((each for each in found if each.external_id == key), None)

        def post() -> CheckRun:
            return self._repo.create_check_run(name=view.name, head_sha=sha, output=output, **state)

        run = self._write_once(look, post, look_first=False)
        return self._more(run, rest, output)

    def _edited(self, check_id: int, state: dict[str, Any], output: dict[str, Any]) -> CheckRun:
        run = self._repo.get_check_run(check_id)
        run.edit(**state, output=output)
        return run

    def _more(self, run: CheckRun, rest: list[dict[str, Any]], output: dict[str, Any]) -> tuple[int, str]:
        """GitHub takes 50 annotations a call: the others follow."""
        for start in range(0, len(rest), ANNOTATIONS_A_CALL):
            part = {**output, "annotations": rest[start : start + ANNOTATIONS_A_CALL]}
            self._read(lambda part=part: run.edit(output=part), tries=1)  # type: ignore[misc]
        return run.id, run.html_url or ""

    def _output(self, view: CheckView) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        marks = []
        for each in view.annotations:
            mark: dict[str, Any] = {
                "path": each.path,
                "start_line": max(each.line, 1),
                "end_line": max(each.line, 1),
                "annotation_level": each.level,
                "message": self._clean(each.message)[:60_000],
            }
            if each.column:
                mark |= {"start_column": each.column, "end_column": each.column}
            marks.append(mark)
        output: dict[str, Any] = {"title": self._clean(view.title), "summary": self._clean(view.summary)}
        if marks:
            output["annotations"] = marks[:ANNOTATIONS_A_CALL]
        return output, marks[ANNOTATIONS_A_CALL:]

    # --- patience ---

    @property
    def _connection(self) -> Connection:
        return self._owners.of(self.name)

    @property
    def _repo(self) -> Repository:
        """Called within `_read`: opened anew when its installation is another one by now."""
        connection = self._connection
        if self._open is None or self._open[0] is not connection:
            self._open = connection, connection.client.get_repo(self.name)
        return self._open[1]

    def _read(self, call: Callable[[], T], tries: int = READ_TRIES) -> T:
        """Does a call; once more when the installation that it was made by is gone and there is a new one."""
        connection = self._connection
        try:
            return patiently(connection.pause, call, tries)
        except OwnerUnavailable:
            raise
        except GitHubFailed as error:
            if error.status == 404 or not self._owners.was_shut(connection, error):
                raise
        return patiently(self._connection.pause, call, tries)

    def _poll(self, path: str, keep: Callable[[Any], tuple[T, ...]], pages: int = MOST_PAGES) -> tuple[T, ...]:
        """What stands at an address below the repository's; free while it has not changed."""

        def read() -> tuple[T, ...]:
            connection = self._connection
            url, key = f"/repos/{self.name}/{path}", str(connection.installation)
            return self._polls.read(connection.ask, url, keep, key=key, pages=pages)

        return self._read(read)

    def _write_once(self, look: Callable[[], T | None], post: Callable[[], T], *, look_first: bool = True) -> T:
        """A POST whose answer may be lost: before it is sent again, look whether it was done."""
        found = self._read(look) if look_first else None
        for attempt in range(WRITE_TRIES):
            if found is not None:
                return found
            try:
                return self._read(post, tries=1)
            except GitHubFailed as error:
                if not is_passing(error.status) or attempt == WRITE_TRIES - 1:
                    raise
                threading.Event().wait(0.2 * 2**attempt)
            found = self._read(look)
        raise AssertionError("unreachable")

    def _clean(self, text: str) -> str:
        return redacted(text, (*self._secrets, *self._live_tokens()))

    def _live_tokens(self) -> tuple[str, ...]:
        try:
            return (self._connection.token(),)
        except (GitHubFailed, GitHubPaused):
            return ()


def redacted(text: str, secrets: Sequence[str]) -> str:
    """The text without any of the secrets, and without anything that looks like a GitHub token."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    return TOKEN.sub("***", text)


TOKEN = re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9_-]{16,}|github_pat_[A-Za-z0-9_]{20,})")


def _pulls(value: Any) -> tuple[Pull, ...]:
    return tuple(_pull(each) for each in value)


def _pull(value: Mapping[str, Any]) -> Pull:
    """A pull request from GitHub's JSON; its author may have no account any more, its head no repository."""
    head, merged = value["head"], value["merged_at"] is not None
    updated = value.get("updated_at") or ""
    return Pull(
        number=value["number"],
        title=value["title"] or "",
        author=(value["user"] or {}).get("login", GHOST),
        is_open=value["state"] == "open",
        merged=merged,
        merge_sha=(value["merge_commit_sha"] or "") if merged else "",
        head=head["sha"],
        head_repository=(head["repo"] or {}).get("full_name", ""),
        base_ref=value["base"]["ref"],
        head_ref=head["ref"] or "",
        updated_at=datetime.fromisoformat(updated.replace("Z", "+00:00")).astimezone(UTC).isoformat()
        if updated
        else "",
    )


def _posted(comment: IssueComment) -> Posted:
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


def said(posted: Posted) -> Said:
    """A comment as its webhook would have brought it."""
    return Said(posted.id, posted.author, posted.body, posted.at)


__all__ = [
    "GitHub",
    "GitHubFailed",
    "GitHubPaused",
    "OwnerUnavailable",
    "RepositoryGateway",
    "said",
]
