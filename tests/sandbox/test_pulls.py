"""What can happen to a pull request, with real git."""

from typing import Any

import pytest
from github import Github, GithubException

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.git import pushes, repos
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP

MODEL = "models/orders.sql"


def test_a_pull_request_says_what_it_changes(bot: Github, number: int) -> None:
    pull = bot.get_repo(SHOP).get_pull(number)

    assert (pull.changed_files, pull.additions, pull.deletions, pull.commits) == (1, 1, 1, 1)
    assert [file.patch for file in pull.get_files()] == ["@@ -1 +1 @@\n-SELECT 1 AS id\n+SELECT 2 AS id"]
    assert pull.mergeable and pull.mergeable_state == "clean"


def test_a_push_moves_the_head_and_its_ref(sandbox: Sandbox, number: int) -> None:
    sha = sandbox.commit(SHOP, "more", {MODEL: "SELECT 3 AS id\n"}, "Three", author="wim")

    assert sandbox.pull_request(SHOP, number).head_sha == sha
    assert repos.list_refs(sandbox.state.git(SHOP), "refs/pull/")[f"refs/pull/{number}/head"] == sha


def test_the_merge_ref_holds_both_sides(sandbox: Sandbox, number: int) -> None:
    sandbox.commit(SHOP, "main", {"new.sql": "SELECT 9\n"}, "Nine", author="ann")

    merged = f"refs/pull/{number}/merge"
    assert sandbox.read(SHOP, MODEL, merged) == "SELECT 2 AS id\n"
    assert sandbox.read(SHOP, "new.sql", merged) == "SELECT 9\n"


def test_the_base_sha_stays_until_the_head_moves(sandbox: Sandbox, number: int) -> None:
    before = sandbox.pull_request(SHOP, number).base_sha

    tip = sandbox.commit(SHOP, "main", {"new.sql": "SELECT 9\n"}, "Nine", author="ann")

    assert sandbox.pull_request(SHOP, number).base_sha == before
    sandbox.commit(SHOP, "more", {MODEL: "SELECT 3 AS id\n"}, "Three", author="wim")
    assert sandbox.pull_request(SHOP, number).base_sha == tip


def test_a_conflict_makes_it_unmergeable(sandbox: Sandbox, bot: Github, number: int) -> None:
    sandbox.commit(SHOP, "main", {MODEL: "SELECT 7 AS id\n"}, "Seven", author="ann")
    pull = bot.get_repo(SHOP).get_pull(number)

    assert (pull.mergeable, pull.mergeable_state) == (False, "dirty")
    with pytest.raises(GithubException) as refused:
        pull.merge()
    assert refused.value.status == 405


def test_merging_another_head_is_refused(sandbox: Sandbox, bot: Github, number: int) -> None:
    pull = bot.get_repo(SHOP).get_pull(number)
    sandbox.commit(SHOP, "more", {MODEL: "SELECT 3 AS id\n"}, "Three", author="wim")

    with pytest.raises(GithubException, match="Head branch was modified") as refused:
        pull.merge(sha=pull.head.sha)

    assert refused.value.status == 409
    assert sandbox.pull_request(SHOP, number).state == "open"


@pytest.mark.parametrize(("method", "parents"), [("merge", 2), ("squash", 1), ("rebase", 1)])
def test_each_way_to_merge_brings_the_change(sandbox: Sandbox, bot: Github, method: str, parents: int) -> None:
    sandbox.commit(SHOP, "more", {"two.sql": "SELECT 2\n"}, "Second commit", author="wim")
    number = sandbox.open_pull_request(SHOP, "more", "main", "Both", author="wim")
    sandbox.commit(SHOP, "main", {"new.sql": "SELECT 9\n"}, "Nine", author="ann")

    merged = bot.get_repo(SHOP).get_pull(number).merge(merge_method=method)

    assert merged.sha == sandbox.head(SHOP)
    assert len(repos.read_commit(sandbox.state.git(SHOP), merged.sha).parents) == parents
    assert sandbox.read(SHOP, MODEL) == "SELECT 2 AS id\n" and sandbox.read(SHOP, "new.sql") == "SELECT 9\n"
    assert bot.get_repo(SHOP).get_pull(number).merged


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
def test_a_merge_is_reverted_whichever_way_it_came(sandbox: Sandbox, bot: Github, method: str) -> None:
    sandbox.commit(SHOP, "more", {"two.sql": "SELECT 2\n"}, "Second commit", author="wim")
    number = sandbox.open_pull_request(SHOP, "more", "main", "Both", author="wim")
    sandbox.commit(SHOP, "main", {"new.sql": "SELECT 9\n"}, "Nine", author="ann")
    bot.get_repo(SHOP).get_pull(number).merge(merge_method=method)
    sandbox.commit(SHOP, "main", {"later.sql": "SELECT 10\n"}, "Ten", author="ann")

    made = revert_pull(bot, number)
    pull = sandbox.pull_request(SHOP, made["number"])
    bot.get_repo(SHOP).get_pull(pull.number).merge()

    assert (pull.head_ref, pull.title, pull.body) == (
        f"revert-{number}-more",
        'Revert "Both"',
        f"Reverts {SHOP}#{number}",
    )
    assert [sandbox.read(SHOP, name) for name in (MODEL, "new.sql", "later.sql")] == [
        "SELECT 1 AS id\n",
        "SELECT 9\n",
        "SELECT 10\n",
    ]
    assert "two.sql" not in repos.git(sandbox.state.git(SHOP), "ls-tree", "--name-only", "main")


def test_a_second_revert_has_a_branch_of_its_own_and_what_cannot_be_reverted_is_refused(
    sandbox: Sandbox, bot: Github, number: int
) -> None:
    with pytest.raises(GithubException, match="not merged"):
        revert_pull(bot, number)
    bot.get_repo(SHOP).get_pull(number).merge()
    sandbox.close(SHOP, revert_pull(bot, number)["number"], author="ann")
    second = revert_pull(bot, number)
    sandbox.commit(SHOP, "main", {MODEL: "SELECT 7 AS id\n"}, "Seven", author="ann")

    assert second["headRefName"] == f"revert-{number}-more-1"
    with pytest.raises(GithubException, match="couldn't be reverted automatically"):
        revert_pull(bot, number)


def revert_pull(bot: Github, number: int) -> dict[str, Any]:
    """The revert of a pull request, as GraphQL answers."""
    asked = "revertPullRequest(input: $i) { revertPullRequest { number headRefName } }"
    document = f"mutation($i: RevertPullRequestInput!) {{ {asked} }}"
    pull = bot.get_repo(SHOP).get_pull(number)
    _, answer = bot.requester.graphql_query(document, {"i": {"pullRequestId": pull.node_id}})
    made: dict[str, Any] = answer["data"]["revertPullRequest"]["revertPullRequest"]
    return made


def test_a_required_check_blocks_until_it_succeeds(sandbox: Sandbox, bot: Github, number: int) -> None:
    sandbox.require_checks(SHOP, "main", ["plan"])
    repo = bot.get_repo(SHOP)
    pull = repo.get_pull(number)
    assert pull.mergeable_state == "blocked"
    with pytest.raises(GithubException, match='"plan" is expected'):
        pull.merge()

    repo.create_check_run("plan", pull.head.sha, conclusion="success")

    assert pull.merge().merged


def test_pushing_the_head_into_the_base_merges_it(sandbox: Sandbox, bot: Github, number: int) -> None:
    repo = sandbox.state.repositories[SHOP]

    pushes.point_branch(sandbox.site, repo, "main", sandbox.head(SHOP, "more"), "ann")

    assert bot.get_repo(SHOP).get_pull(number).merged


def test_a_deleted_branch_closes_its_pull_request(sandbox: Sandbox, number: int) -> None:
    sandbox.delete_branch(SHOP, "more", author="wim")

    pull = sandbox.pull_request(SHOP, number)
    assert (pull.state, pull.merged_at) == ("closed", None)


def test_a_reopened_pull_request_has_the_branch_s_head(sandbox: Sandbox, number: int) -> None:
    sandbox.close(SHOP, number, author="wim")
    sha = sandbox.commit(SHOP, "more", {MODEL: "SELECT 3 AS id\n"}, "Three", author="wim")

    sandbox.reopen(SHOP, number, author="wim")

    assert sandbox.pull_request(SHOP, number).head_sha == sha


def test_a_fork_s_commits_are_fetched_from_the_base_repository(sandbox: Sandbox, bot: Github) -> None:
    fork = sandbox.fork(SHOP, "rea")
    sha = sandbox.commit(fork, "idea", {"idea.sql": "SELECT 5\n"}, "Idea", author="rea")

    number = sandbox.open_pull_request(SHOP, "rea:idea", "main", "Idea", author="rea")

    pull = bot.get_repo(SHOP).get_pull(number)
    assert (pull.head.repo.full_name, pull.head.label, pull.head.sha) == (fork, "rea:idea", sha)
    assert sandbox.read(SHOP, "idea.sql", f"refs/pull/{number}/head") == "SELECT 5\n"


@pytest.mark.parametrize(
    ("head", "base", "why"),
    [
        ("nothing", "main", "head is not a branch"),
        ("more", "nothing", "base is not a branch"),
        ("main", "main", "No commits between"),
    ],
)
def test_a_pull_request_needs_two_branches_that_differ(sandbox: Sandbox, head: str, base: str, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        sandbox.open_pull_request(SHOP, head, base, "T", author="wim")
    assert refused.value.status == 422
    assert why in str(refused.value.errors)


def test_one_branch_has_one_open_pull_request(sandbox: Sandbox, number: int) -> None:
    with pytest.raises(ApiError) as refused:
        sandbox.open_pull_request(SHOP, "more", "main", "Again", author="wim")
    assert "already exists for ann:more" in str(refused.value.errors)


def test_pull_requests_are_found_by_head_base_and_state(sandbox: Sandbox, bot: Github, number: int) -> None:
    repo = bot.get_repo(SHOP)

    assert [pull.number for pull in repo.get_pulls(head="ann:more", base="main")] == [number]
    assert list(repo.get_pulls(head="ann:other")) == []
    sandbox.close(SHOP, number, author="wim")
    assert list(repo.get_pulls()) == []
    assert [pull.number for pull in repo.get_pulls(state="all")] == [number]
