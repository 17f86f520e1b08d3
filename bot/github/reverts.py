"""Pull requests that revert merged ones: found, or opened by GitHub's own *Revert*, each once."""

import re
from collections.abc import Callable

from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.github.calls import Calls
from mergeplan.bot.records import Pull

# The types are those of GitHub's published schema. REST has no revert.
DOCUMENT = (
    "mutation($input: RevertPullRequestInput!) { revertPullRequest(input: $input) { revertPullRequest { number } } }"
)


class Reverts:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def open(self, pull: Pull, open_pulls: Callable[[], tuple[Pull, ...]], body: str) -> int:
        clean = self._calls.clean(body)

        def look() -> int | None:
            return next((candidate.number for candidate in open_pulls() if is_revert(candidate, pull)), None)

        def post() -> int:
            repo = self._calls.repo
            variables = {"pullRequestId": repo.get_pull(pull.number).node_id, "body": clean}
            answer = repo.requester.graphql_query(DOCUMENT, {"input": variables})[1]
            try:
                return int(answer["data"]["revertPullRequest"]["revertPullRequest"]["number"])
            except (KeyError, TypeError) as error:
                raise ForgeFailed("GitHub did not say which pull request it opened", 422) from error

        return self._calls.write_once(look, post)


def is_revert(candidate: Pull, original: Pull) -> bool:
    """Return True for an open pull request of *Revert*: its branch is `revert-41-branch`, or that with a number."""
    name = re.escape(f"revert-{original.number}-{original.head_ref}")
    may_revert = candidate.is_open and not candidate.is_fork and candidate.base_ref == original.base_ref
    return may_revert and bool(re.fullmatch(rf"{name}(-\d+)?", candidate.head_ref))
