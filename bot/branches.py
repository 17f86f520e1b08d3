"""Records and rules of branches that have an environment, as the prod branch defines them; pure functions."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mergeplan.planner.snapshot.environment import PROD, parse_environment_name

PATTERN = re.compile(r"[*?\[\\\s~^:]")  # what git lets no branch's name hold
BRANCHES_MOST = 20


@dataclass(frozen=True)
class PullPreview:
    """A pull request into a branch as it was planned: its head, and the commit that the environment shows."""

    number: int
    head: str
    base: str


@dataclass(frozen=True)
class BranchRecord:
    """A branch, and how far its environment has followed it."""

    branch: str
    environment: str
    commit: str = ""  # the last one that was taken on
    promoted_commit: str = ""  # the last one that the environment shows
    revision: int = 0  # of the environment since then
    running: str = ""  # the commit whose check is not completed
    attempts: int = 0  # of that commit
    again: bool = False  # somebody asked for what failed to be tried again
    previews: tuple[PullPreview, ...] = ()  # of open pull requests into it

    @property
    def is_behind(self) -> bool:
        """True when the last commit that was taken on did not reach the environment."""
        return self.commit != self.promoted_commit


def normalize_branches(environments: Mapping[str, str] | None) -> dict[str, str]:
    """Return the environment of each branch, in lower case; raise ValueError or RequestError for an invalid one."""
    named = {branch: parse_environment_name(name) for branch, name in (environments or {}).items()}
    if len(named) > BRANCHES_MOST:
        raise ValueError(f"it names more than {BRANCHES_MOST} branches")
    if wrong := next((branch for branch in named if not branch or PATTERN.search(branch)), None):
        raise ValueError(f"`{wrong[:80]}` is no branch: each is named in full, without patterns")
    if twice := [name for name, times in Counter(named.values()).items() if times > 1]:
        raise ValueError(f"two branches have the environment `{twice[0]}`: each push would undo the other's")
    return named


def find_conflict(branches: Mapping[str, str], prod_branch: str, pull_prefix: str) -> tuple[str, str]:
    """Return the first branch whose environment is not possible, and why; two empty texts for none."""
    of_pull = re.compile(rf"{re.escape(pull_prefix)}_\d+(_queue)?")
    for branch, environment in branches.items():
        if branch == prod_branch:
            return branch, f"`{branch}` is the branch of prod: its environment is prod"
        if environment == PROD:
            return branch, f"`{PROD}` is the environment of `{prod_branch}`, and of no other branch"
        if of_pull.fullmatch(environment):
            return branch, f"`{environment}` is the name of a pull request's environment"
    return "", ""


def merge_records(records: Sequence[BranchRecord], environments: Mapping[str, str]) -> tuple[BranchRecord, ...]:
    """Return the records of the branches that the rules name; another environment starts a new record."""
    records_by_branch = {(record.branch, record.environment): record for record in records}
    return tuple(records_by_branch.get(pair, BranchRecord(*pair)) for pair in environments.items())


def branches_of(records: Collection[BranchRecord]) -> frozenset[str]:
    return frozenset(record.branch for record in records)
