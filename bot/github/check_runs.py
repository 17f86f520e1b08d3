"""The checks that the bot writes on commits: each by itself, or with the comment in one call of GraphQL."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import structlog
from github.CheckRun import CheckRun

from mergeplan.bot.forge.checks import CheckId, CheckRequest, CommentEdit, Written
from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.github.calls import Calls
from mergeplan.bot.report.checks.check import CheckView

log = structlog.get_logger(__name__)
ANNOTATIONS_A_CALL, ANNOTATION_BYTES = 50, 60_000
KNOWN_SECONDS = 20.0  # less than a lease: meanwhile no other service writes the checks of this pull request
COMMITS_MOST = 500
APART_SECONDS = 600.0  # how long all is written one by one after GraphQL was refused
FAILURES_MOST = 3  # in a row: a GitHub without GraphQL may answer with any status, or not at all
Input = dict[str, Any]


@dataclass(frozen=True)
class _Known:
    """The checks of a commit by key, as they were found at a moment and written since."""

    at: float
    ids: dict[str, CheckId]


class CheckRuns:
    """The check runs of one repository; `folder` is where its project is, whose files annotations name."""

    def __init__(self, calls: Calls, folder: str = ".") -> None:
        self._calls, self._folder = calls, PurePosixPath(folder)
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        self._apart_until, self._failures = 0.0, 0

    def find(self, sha: str, key: str) -> CheckId:
        # The checks of a commit are written one after the other, so GitHub is called once for all of them.
        with self._lock:
            cached_checks = self._known.get(sha)
        if cached_checks is None or time.monotonic() - cached_checks.at > KNOWN_SECONDS:
            at = time.monotonic()
            runs = self._calls.read(lambda: list(self._calls.repo.get_commit(sha).get_check_runs()))
            cached_checks = _Known(at, {run.external_id: _check_id(run) for run in reversed(runs)})
            with self._lock:
                for old in list(self._known)[: max(0, len(self._known) - COMMITS_MOST)]:
                    del self._known[old]
                self._known[sha] = cached_checks
        return cached_checks.ids.get(key, CheckId())

    def write(self, request: CheckRequest) -> CheckId:
        view, output, later_annotations = request.view, *self._build_output(request.view)
        state: dict[str, Any] = {"status": view.status, "external_id": request.key}
        state["actions"] = [asdict(action) for action in view.actions]  # none take away those that it had
        if request.details:
            state["details_url"] = request.details
        if view.is_completed:
            state["conclusion"] = view.conclusion
        if request.known.id:
            try:
                run = self._calls.write(lambda: self._edit_run(request.known.id, state, output))
                return self._send_annotations(run, later_annotations, output)
            except ForgeFailed as error:
                if error.status not in (403, 404, 422):
                    raise

        def look() -> CheckRun | None:
            runs = self._calls.repo.get_commit(request.sha).get_check_runs(check_name=view.name)
            return next((check_run for check_run in runs if check_run.external_id == request.key), None)

        def post() -> CheckRun:
            return self._calls.repo.create_check_run(name=view.name, head_sha=request.sha, output=output, **state)

        try:
            run = self._calls.write_once(look, post, look_first=False)
        except BaseException:
            self._forget_commit(request.sha)
            raise
        self._store_check(request, _check_id(run))
        return self._send_annotations(run, later_annotations, output)

    def write_together(self, comment: CommentEdit | None, requests: Sequence[CheckRequest]) -> Written | None:
        # GitHub counts calls that write, and accepts one a second: a comment and five checks are one call, not six.
        if time.monotonic() < self._apart_until or not all(map(_can_combine, requests)):
            return None
        outputs = [self._build_output(write_request.view)[0] for write_request in requests]
        clean = replace(comment, body=self._calls.clean(comment.body)) if comment else None

        def send() -> Written:
            repo = self._calls.repo
            document, variables = build_mutation(clean, requests, outputs, repo.node_id)
            answer = repo.requester.graphql_query(document, variables)[1]
            return parse_written(answer, comment=clean is not None, checks=len(requests))

        try:
            done = self._calls.write(send, tries=1)
        except (ForgeFailed, KeyError, TypeError, ValueError) as error:
            for request in requests:
                self._forget_commit(request.sha)
            self._failures += 1
            passing = isinstance(error, ForgeFailed) and error.is_passing
            if not passing or self._failures >= FAILURES_MOST:
                self._apart_until, self._failures = time.monotonic() + APART_SECONDS, 0
            log.info("written_apart", repository=self._calls.name, why=str(error)[:300])
            return None
        self._failures = 0
        for request, check in zip(requests, done.checks, strict=True):
            self._store_check(request, check)
        return done

    def _store_check(self, request: CheckRequest, check: CheckId) -> None:
        with self._lock:
            if request.sha in self._known:
                self._known[request.sha].ids[request.key] = check

    def _forget_commit(self, sha: str) -> None:
        """Forget what a commit shows: a write may have been done all the same."""
        with self._lock:
            self._known.pop(sha, None)

    def _edit_run(self, check_id: int, state: dict[str, Any], output: dict[str, Any]) -> CheckRun:
        run = self._calls.repo.get_check_run(check_id)
        run.edit(**state, output=output)
        return run

    def _send_annotations(self, run: CheckRun, rest: list[dict[str, Any]], output: dict[str, Any]) -> CheckId:
        """Send the annotations after the first 50, since GitHub accepts 50 a call."""
        for start in range(0, len(rest), ANNOTATIONS_A_CALL):
            part = {**output, "annotations": rest[start : start + ANNOTATIONS_A_CALL]}
            self._calls.write(lambda part=part: run.edit(output=part), tries=1)  # type: ignore[misc]
        return _check_id(run)

    def _build_output(self, view: CheckView) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        marks = []
        for annotation in view.annotations:
            message = self._calls.clean(annotation.message).encode(errors="replace")[:ANNOTATION_BYTES]
            mark: dict[str, Any] = {
                "path": str(self._folder / annotation.path),
                "start_line": max(annotation.line, 1),
                "end_line": max(annotation.line, 1),
                "annotation_level": annotation.level,
                "message": message.decode(errors="ignore"),
            }
            if annotation.column:
                mark |= {"start_column": annotation.column, "end_column": annotation.column}
            marks.append(mark)
        output: dict[str, Any] = {"title": self._calls.clean(view.title), "summary": self._calls.clean(view.summary)}
        if marks:
            output["annotations"] = marks[:ANNOTATIONS_A_CALL]
        return output, marks[ANNOTATIONS_A_CALL:]


def _check_id(run: CheckRun) -> CheckId:
    return CheckId(run.id, run.node_id or "", run.html_url or "")


def _can_combine(request: CheckRequest) -> bool:
    """Return False for a check with more annotations than a call takes, or one of an earlier release."""
    return len(request.view.annotations) <= ANNOTATIONS_A_CALL and bool(request.known.node or not request.known.id)


def build_mutation(
    comment: CommentEdit | None, requests: Sequence[CheckRequest], outputs: Sequence[Input], repository: str
) -> tuple[str, Input]:
    """Return the document that writes all of them, and its variables.

    `outputs` are the checks' texts in REST's form, one each; `repository` is the repository's GraphQL id. GitHub runs
    the parts in their order, each by itself. The types are those of GitHub's published schema.
    """
    heads, parts, variables = list[str](), list[str](), dict[str, Any]()
    if comment:
        heads.append("$comment: UpdateIssueCommentInput!")
        parts.append("comment: updateIssueComment(input: $comment) { issueComment { updatedAt } }")
        variables["comment"] = {"id": comment.node, "body": comment.body}
    for index, (request, output) in enumerate(zip(requests, outputs, strict=True)):
        kind, name = "Update" if request.known.id else "Create", f"c{index}"
        heads.append(f"${name}: {kind}CheckRunInput!")
        parts.append(f"{name}: {kind.lower()}CheckRun(input: ${name}) {{ checkRun {{ id databaseId url }} }}")
        variables[name] = _check_input(request, output, repository)
    return f"mutation({', '.join(heads)}) {{ {' '.join(parts)} }}", variables


def parse_written(answer: Mapping[str, Any], *, comment: bool, checks: int) -> Written:
    """Return what the answer confirms as written; raise KeyError, TypeError or ValueError for another answer."""
    data = answer["data"]
    edited = datetime.fromisoformat(data["comment"]["issueComment"]["updatedAt"]) if comment else None
    runs = [data[f"c{index}"]["checkRun"] for index in range(checks)]
    check_ids = tuple(CheckId(int(run["databaseId"]), str(run["id"]), str(run["url"])) for run in runs)
    return Written(edited.astimezone(UTC).isoformat() if edited else "", check_ids)


def _check_input(request: CheckRequest, output: Input, repository: str) -> Input:
    view = request.view
    fields: Input = {"repositoryId": repository, "externalId": request.key, "status": view.status.upper()}
    fields["actions"] = [asdict(action) for action in view.actions]  # none take away those that it had
    if request.known.id:
        fields["checkRunId"] = request.known.node
    else:
        fields |= {"name": view.name, "headSha": request.sha}
    if request.details:
        fields["detailsUrl"] = request.details
    if view.is_completed:
        fields["conclusion"] = view.conclusion.upper()
    marks = [_format_annotation(annotation) for annotation in output.get("annotations", ())]
    fields["output"] = {**output, "annotations": marks} if marks else dict(output)
    return fields


def _format_annotation(mark: Input) -> Input:
    names = {"start_line": "startLine", "end_line": "endLine", "start_column": "startColumn", "end_column": "endColumn"}
    return {
        "path": mark["path"],
        "location": {name: mark[key] for key, name in names.items() if key in mark},
        "annotationLevel": mark["annotation_level"].upper(),
        "message": mark["message"],
    }
