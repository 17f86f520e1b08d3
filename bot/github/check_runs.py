"""The checks that the bot writes on commits."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from github.CheckRun import CheckRun

from bot.github.calls import Calls
from bot.github.patience import GitHubFailed
from bot.report.checks import CheckView

ANNOTATIONS_A_CALL = 50
KNOWN_SECONDS = 20.0  # less than a lease: meanwhile no other service writes the checks of this pull request
COMMITS_MOST = 500


@dataclass(frozen=True)
class _Known:
    """The checks of a commit by key, as they were found at a moment and written since."""

    at: float
    ids: dict[str, int]


class CheckRuns:
    """The check runs of one repository; `folder` is where its project is, whose files annotations name."""

    def __init__(self, calls: Calls, folder: str = ".") -> None:
        self._calls, self._folder = calls, PurePosixPath(folder)
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def find(self, sha: str, key: str) -> int:
        """The id of our check with that key on a commit, 0 when there is none.

        The checks of a commit are written one after the other: it is asked once for all of them.
        """
        with self._lock:
            known = self._known.get(sha)
        if known is None or time.monotonic() - known.at > KNOWN_SECONDS:
            at = time.monotonic()
            found = self._calls.read(lambda: list(self._calls.repo.get_commit(sha).get_check_runs()))
            known = _Known(at, {each.external_id: each.id for each in reversed(found)})
            with self._lock:
                for old in list(self._known)[: max(0, len(self._known) - COMMITS_MOST)]:
                    del self._known[old]
                self._known[sha] = known
        return known.ids.get(key, 0)

    def write(self, sha: str, view: CheckView, key: str, known: int = 0, details: str = "") -> tuple[int, str]:
        """Makes a check on a commit say this, and returns its id and GitHub's page of it.

        `known` is its id when it stands already; `details` is where its Details link leads.
        """
        output, rest = self._output(view)
        state: dict[str, Any] = {"status": view.status, "external_id": key}
        if details:
            state["details_url"] = details
        if view.done:
            state["conclusion"] = view.conclusion
        if known:
            try:
                run = self._calls.write(lambda: self._edited(known, state, output))
                return self._more(run, rest, output)
            except GitHubFailed as error:
                if error.status not in (403, 404, 422):
                    raise

        def look() -> CheckRun | None:
            found = self._calls.repo.get_commit(sha).get_check_runs(check_name=view.name)
            return next((each for each in found if each.external_id == key), None)

        def post() -> CheckRun:
            return self._calls.repo.create_check_run(name=view.name, head_sha=sha, output=output, **state)

        try:
            run = self._calls.write_once(look, post, look_first=False)
        except BaseException:
            with self._lock:
                self._known.pop(sha, None)  # it may be there all the same
            raise
        with self._lock:
            if sha in self._known:
                self._known[sha].ids[key] = run.id
        return self._more(run, rest, output)

    def _edited(self, check_id: int, state: dict[str, Any], output: dict[str, Any]) -> CheckRun:
        run = self._calls.repo.get_check_run(check_id)
        run.edit(**state, output=output)
        return run

    def _more(self, run: CheckRun, rest: list[dict[str, Any]], output: dict[str, Any]) -> tuple[int, str]:
        """GitHub takes 50 annotations a call: the others follow."""
        for start in range(0, len(rest), ANNOTATIONS_A_CALL):
            part = {**output, "annotations": rest[start : start + ANNOTATIONS_A_CALL]}
            self._calls.write(lambda part=part: run.edit(output=part), tries=1)  # type: ignore[misc]
        return run.id, run.html_url or ""

    def _output(self, view: CheckView) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        marks = []
        for each in view.annotations:
            mark: dict[str, Any] = {
                "path": str(self._folder / each.path),
                "start_line": max(each.line, 1),
                "end_line": max(each.line, 1),
                "annotation_level": each.level,
                "message": self._calls.clean(each.message)[:60_000],
            }
            if each.column:
                mark |= {"start_column": each.column, "end_column": each.column}
            marks.append(mark)
        output: dict[str, Any] = {"title": self._calls.clean(view.title), "summary": self._calls.clean(view.summary)}
        if marks:
            output["annotations"] = marks[:ANNOTATIONS_A_CALL]
        return output, marks[ANNOTATIONS_A_CALL:]
