"""The merge queue: groups of a base branch and pull requests, merged in order once their checks have succeeded."""

from collections.abc import Sequence

from mergeplan_sandbox import webhooks
from mergeplan_sandbox.api import shapes_pulls
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.git import pushes, repos
from mergeplan_sandbox.state import MergeGroup, PullRequest, Repository, now
from mergeplan_sandbox.webhooks import Site


def enqueue_pull(site: Site, repo: Repository, pull: PullRequest, sender: str, *, jump: bool = False) -> MergeGroup:
    """Put a pull request at the end of the queue, or before all others; its group contains all that wait before it."""
    if jump:
        behind = _drop_groups(site, repo, [group for group in repo.queue if group.base_ref == pull.base_ref], sender)
        group = enqueue_pull(site, repo, pull, sender)
        for other in behind:
            enqueue_pull(site, repo, other, sender)
        return group
    if pull.state != "open" or pull.draft or not pull.mergeable:
        raise ApiError(405, "Pull Request is not mergeable")
    folder = site.state.git(repo.full_name)
    ahead = [group for group in repo.queue if group.base_ref == pull.base_ref]
    base = ahead[-1].head_sha if ahead else repos.find_tip(folder, pull.base_ref)
    tree = repos.merge_trees(folder, base, pull.head_sha) if base else None
    if base is None or tree is None:
        raise ApiError(405, "Pull Request is not mergeable")
    text = f"Merge pull request #{pull.number} from {pull.head_ref}\n"
    head = repos.commit_tree(folder, tree, (base, pull.head_sha), text, pushes.find_person(site.state, sender))
    branch = f"gh-readonly-queue/{pull.base_ref}/pr-{pull.number}-{base}"
    group = MergeGroup(pull.number, f"refs/heads/{branch}", head, pull.base_ref, base)
    repos.set_ref(folder, group.head_ref, head)
    repo.queue.append(group)
    webhooks.announce_push(site, repo, group.head_ref, repos.ZERO_SHA, head, sender)
    webhooks.merge_group(site, repo, group, "checks_requested", sender)
    return group


def advance_queue(site: Site, repo: Repository, sender: str) -> list[int]:
    """Merge the groups at the front that succeeded and return their numbers.

    A group that failed leaves the queue, and those behind it are created again.
    """
    merged = []
    while repo.queue:
        group = repo.queue[0]
        pull = next(candidate for candidate in repo.pulls if candidate.number == group.number)
        if pull.state != "open" or not repos.is_ancestor(site.state.git(repo.full_name), pull.head_sha, group.head_sha):
            dequeue_group(site, repo, group, sender)  # GitHub does this at the push, or the close
            continue
        runs = [run for run in repo.checks.values() if run.head_sha == group.head_sha]
        required = repo.required_checks.get(group.base_ref, [])
        done = {run.name: run.conclusion for run in sorted(runs, key=lambda run: run.id) if run.conclusion}
        if any(done.get(name) not in (None, *shapes_pulls.PASSED) for name in required):
            dequeue_group(site, repo, group, sender)
        elif all(name in done for name in required):
            _merge_group(site, repo, pull, group, sender)
            merged.append(group.number)
        else:
            break
    return merged


def _merge_group(site: Site, repo: Repository, pull: PullRequest, group: MergeGroup, sender: str) -> None:
    folder = site.state.git(repo.full_name)
    repo.queue.remove(group)
    repos.set_ref(folder, f"refs/heads/{group.base_ref}", group.head_sha)
    repos.set_ref(folder, group.head_ref, None)
    pull.merged_at, pull.merged_by, pull.merge_commit_sha = now(), sender, group.head_sha
    webhooks.merge_group(site, repo, group, "destroyed", sender, "merged")
    pushes.close_pull(site, repo, pull, sender)
    pushes.notify_push(site, repo, group.base_ref, group.base_sha, group.head_sha, sender)


def dequeue_group(site: Site, repo: Repository, dropped: MergeGroup, sender: str) -> None:
    """Take a group out, because it failed or somebody cancelled it; create those behind it again."""
    behind = repo.queue[repo.queue.index(dropped) + 1 :]
    _drop_groups(site, repo, [dropped], sender, "dequeued")
    for pull in _drop_groups(site, repo, behind, sender):
        enqueue_pull(site, repo, pull, sender)


def _drop_groups(
    site: Site, repo: Repository, groups: Sequence[MergeGroup], sender: str, reason: str = "invalidated"
) -> list[PullRequest]:
    for group in groups:
        repos.set_ref(site.state.git(repo.full_name), group.head_ref, None)
        repo.queue.remove(group)
        webhooks.merge_group(site, repo, group, "destroyed", sender, reason)
    numbers = [group.number for group in groups]
    return sorted((pull for pull in repo.pulls if pull.number in numbers), key=lambda pull: numbers.index(pull.number))
