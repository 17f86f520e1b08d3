"""The commits of merged pull requests, which REST does not show with them since its version of 2026-03-10."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.github.calls import Calls
from mergeplan.bot.records import Pull

log = structlog.get_logger(__name__)


class Merges:
    """The merges of one repository; the commit of a merge never changes, so each is read once."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._commits: dict[int, str] = {}

    def add_commit(self, pull: Pull) -> Pull:
        """Return the pull request with the commit of its merge; raise ForgeFailed if GitHub has none yet."""
        complete = self.add_commits((pull,))[0]
        if pull.merged and not complete.merge_sha:
            raise ForgeFailed(f"GitHub does not say yet with which commit #{pull.number} was merged")
        return complete

    def add_commits(self, pulls: tuple[Pull, ...]) -> tuple[Pull, ...]:
        """Return the pull requests with the commits of those that are merged, '' where GitHub has none."""
        numbers = [pull.number for pull in pulls if pull.merged and pull.number not in self._commits]
        if numbers:
            try:
                commits = self._calls.read(lambda: self._read_commits(numbers), tries=1)
            except ForgeFailed as error:
                log.info("merges_read_apart", repository=self._calls.name, why=str(error))
                commits = {number: self._find_event(number) for number in numbers}
            self._commits |= {number: commit for number, commit in commits.items() if commit}
        return tuple(replace(pull, merge_sha=self._commits.get(pull.number, "")) for pull in pulls)

    def _read_commits(self, numbers: Sequence[int]) -> Mapping[int, str]:
        owner, _, name = self._calls.name.partition("/")
        answer = self._calls.repo.requester.graphql_query(build_query(numbers), {"owner": owner, "name": name})[1]
        try:
            merges = {number: answer["data"]["repository"][f"p{number}"]["mergeCommit"] for number in numbers}
            return {number: str(merge["oid"]) for number, merge in merges.items() if merge}
        except (KeyError, TypeError) as error:
            raise ForgeFailed("GitHub did not say with which commit a pull request was merged") from error

    def _find_event(self, number: int) -> str:
        commits = self._calls.poll(f"issues/{int(number)}/events?per_page=100", _parse_merges)
        return commits[-1] if commits else ""


def build_query(numbers: Sequence[int]) -> str:
    """Return the document that asks for the merge commits; its types are those of GitHub's published schema."""
    parts = (f"p{number}: pullRequest(number: {number}) {{ mergeCommit {{ oid }} }}" for number in numbers)
    head = "query($owner: String!, $name: String!) { repository(owner: $owner, name: $name)"
    return f"{head} {{ {' '.join(parts)} }} }}"


def _parse_merges(events: Any) -> tuple[str, ...]:
    return tuple(str(event["commit_id"] or "") for event in events if event["event"] == "merged")
