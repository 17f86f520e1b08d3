"""The versions of the REST API: by the header of a call, and without the fields that a newer version dropped."""

from collections.abc import Mapping
from typing import Any

from mergeplan_sandbox.api.limits import ApiError

HEADER = "x-github-api-version"
OLDEST = "2022-11-28"  # what GitHub answers without the header
# Of pull requests, issues and repositories, by GitHub's published types. A webhook has no version, and keeps them.
DROPPED: Mapping[str, frozenset[str]] = {
    OLDEST: frozenset(),
    "2026-03-10": frozenset(
        {"merge_commit_sha", "assignee", "has_downloads", "use_squash_pr_title_as_default", "master_branch", "rate"}
    ),
}


def check_version(version: str) -> str:
    """Return the version of a call, which may name none; raise ApiError for an unknown one."""
    if version and version not in DROPPED:
        raise ApiError(400, f'"{version}" is not a supported version of the API.')
    return version or OLDEST


def drop_fields(answer: Any, version: str) -> Any:
    dropped = DROPPED[version]
    if not dropped:
        return answer
    if isinstance(answer, list):
        return [drop_fields(item, version) for item in answer]
    if isinstance(answer, dict):
        return {name: drop_fields(value, version) for name, value in answer.items() if name not in dropped}
    return answer
