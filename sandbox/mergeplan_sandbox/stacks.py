"""Stacks of pull requests, a preview of GitHub's: the lowest goes into the trunk, each other one into the one below."""

from collections.abc import Sequence
from itertools import pairwise

from mergeplan_sandbox import pulls
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.git import pushes, repos
from mergeplan_sandbox.state import MergeMethod, PullRequest, Repository
from mergeplan_sandbox.webhooks import Site


def create_stack(repo: Repository, members: Sequence[PullRequest]) -> int:
    """Link pull requests of one repository, the lowest first, and return the stack's number."""
    for below, above in pairwise(members):
        if above.base_ref != below.head_ref or repo.full_name != above.head_repository:
            raise ApiError(422, f"#{above.number} does not target the branch of #{below.number}.")
    number = max(repo.stacks, default=0) + 1
    repo.stacks[number] = [pull.number for pull in members]
    return number


def merge_stack(site: Site, repo: Repository, top: PullRequest, sender: str, method: MergeMethod) -> str:
    """Merge a pull request and all of its stack below it in one operation, and return the trunk's new tip.

    Those above are rebased and go into the trunk. GitHub documents neither the bases of merged layers, which stay here,
    nor the order of the webhooks.
    """
    number = next(number for number, members in repo.stacks.items() if top.number in members)
    members = [pull for pull in repo.pulls if pull.number in repo.stacks[number] and pull.merged_at is None]
    members.sort(key=lambda pull: repo.stacks[number].index(pull.number))
    merged = members[: members.index(top) + 1]
    _check_linear(site, repo, merged)
    folder, trunk = site.state.git(repo.full_name), members[0].base_ref
    old_tip = tip = repos.find_tip(folder, trunk) or ""
    author, before = pushes.find_person(site.state, sender), dict[int, str]()
    for pull in merged:
        before[pull.number], tip = tip, pulls.commit_merge(folder, pull, tip, author, method, {})
        pulls.conclude_merge(pull, sender, tip, before[pull.number])
    repos.set_ref(folder, f"refs/heads/{trunk}", tip)
    for pull in merged:
        pushes.close_pull(site, repo, pull, sender)
    pushes.notify_push(site, repo, trunk, old_tip, tip, sender)
    _lift_rest(site, repo, members[len(merged) :], trunk, sender)
    return tip


def _check_linear(site: Site, repo: Repository, members: Sequence[PullRequest]) -> None:
    folder = site.state.git(repo.full_name)
    for pull in members:
        pulls.check_mergeable(repo, pull)
    for below, above in pairwise(members):
        if not repos.is_ancestor(folder, below.head_sha, above.head_sha):
            raise ApiError(405, "The stack must be rebased before it can be merged.")


def _lift_rest(site: Site, repo: Repository, rest: Sequence[PullRequest], trunk: str, sender: str) -> None:
    folder, author = site.state.git(repo.full_name), pushes.find_person(site.state, sender)
    onto = repos.find_tip(folder, trunk) or ""
    if rest:
        pushes.retarget_pull(site, repo, rest[0], trunk, sender)
    for pull in rest:
        onto = repos.rebase_commits(folder, onto, pull.head_sha, author)
        pushes.point_branch(site, repo, pull.head_ref, onto, sender)
