"""A hostile contributor's pull requests: whatever a tree, a comment or a name holds, the bot ends in a clear state."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.bot.records import PullState
from mergeplan_sandbox import pulls
from mergeplan_sandbox.git import pushes
from mergeplan_sandbox.state import MergeMethod
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP, Bench, until
from tests.bot.test_pull_requests import GREEN


class Clone:
    """wim's clone of the shop: what the sandbox's own commits cannot hold is pushed by git itself."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.folder = folder
        token = bench.github.add_user("wim")
        address = bench.github.clone_url(SHOP).replace("://", f"://wim:{token}@")
        subprocess.run(["git", "clone", "--quiet", address, str(folder)], check=True, env=self._environ)

    def push(self, branch: str = "change") -> None:
        """Everything in the folder, as one commit, by force."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "From git")
        self.git("push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self.folder), *arguments], check=True, env=self._environ)

    @property
    def _environ(self) -> dict[str, str]:
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
        return {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, **dict.fromkeys(names, "wim@example")}


@pytest.fixture(name="clone")
def _clone(bench: Bench, tmp_path: Path) -> Clone:
    return Clone(bench, tmp_path / "clone")


def propose_change(bench: Bench) -> int:
    """The branch `change` as a pull request, planned."""
    number = bench.github.open_pull_request(SHOP, "change", "main", "A change", author="wim")
    bench.idle()
    return number


def test_a_link_in_the_tree_is_not_followed(bench: Bench, clone: Clone, tmp_path: Path) -> None:
    """Behaviour 8: a model that is a link to a file of the bot's machine is the link's own text, and nothing more."""
    (tmp_path / "secret.sql").write_text("planted secret\n")
    (clone.folder / "models" / "stolen.sql").symlink_to(tmp_path / "secret.sql")
    (clone.folder / "seeds").symlink_to(tmp_path)
    clone.push()
    number = propose_change(bench)

    assert "shop.stolen" in bench.plan(number)
    assert "planted secret" not in bench.plan(number)
    assert bench.conclusions(bench.head(number)) == GREEN


@pytest.mark.parametrize(("folder", "is_planned"), [("other", True), ("models/other", False)])
def test_a_submodule_is_an_empty_folder_and_none_of_models(
    folder: str, is_planned: bool, bench: Bench, clone: Clone
) -> None:
    """Nothing is fetched from where a pull request points, and no model counts as removed for that."""
    commit = bench.github.head(SHOP)
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{folder}")
    (clone.folder / ".gitmodules").write_text('[submodule "other"]\n\tpath = x\n\turl = file:///etc\n')
    (clone.folder / "models" / "orders.sql").write_text(COLUMN["models/orders.sql"])
    clone.git("add", ".gitmodules", "models/orders.sql")
    clone.git("commit", "--quiet", "--message", "A submodule")
    clone.git("push", "--quiet", "origin", "HEAD:refs/heads/change")
    number = propose_change(bench)

    assert (bench.conclusions(bench.head(number)) == GREEN) is is_planned
    assert ("A submodule cannot hold models" in bench.plan(number)) is not is_planned


def test_a_head_with_nothing_in_common_with_the_base_is_told(bench: Bench, clone: Clone) -> None:
    """A force-push to an unrelated history ends as a failed plan, not in a check that runs for ever."""
    number = bench.open(COLUMN)
    bench.idle()
    clone.git("checkout", "--quiet", "--orphan", "fresh")
    clone.push()
    until(lambda: bench.record(number).state is PullState.FAILED, what="the failed plan")
    bench.idle()

    assert "no commit in common with the base branch" in bench.plan(number)
    assert bench.conclusions(bench.head(number))["plan"] == "failure"


@pytest.mark.prove
def test_files_that_are_no_text_are_shown_as_they_can_be(bench: Bench, clone: Clone) -> None:
    """CRLF, a byte that is no UTF-8 in config.yaml, and a file of 20 MB stop nobody."""
    (clone.folder / "models" / "orders.sql").write_bytes(b"SELECT 1 AS id,\r\n  2 AS more\r\n")
    (clone.folder / "config.yaml").write_bytes(b"gateways: {}  # caf\xe9\n")
    (clone.folder / "data.bin").write_bytes(b"\0" * 20_000_000)
    clone.push()
    number = propose_change(bench)

    assert bench.conclusions(bench.head(number)) == GREEN
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED


def test_a_pull_request_that_removes_the_project_is_refused_and_so_is_its_merge(bench: Bench) -> None:
    """Without config.yaml there is no project: the plan says so, and prod stays as it was until it is back."""
    number = bench.open({"config.yaml": None})
    bench.idle()
    assert "would leave no `config.yaml`" in bench.plan(number)
    assert bench.conclusions(bench.head(number))["promotion"] == "failure"

    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.UNPROMOTED
    assert bench.planner_state()["environments"]["prod"]["revision"] == 1
    bench.github.commit(SHOP, "main", {"config.yaml": "gateways: {}\n", **COLUMN}, "Back", author="ann")
    bench.idle()
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]


def test_a_pull_request_that_renames_the_projects_folder_is_told(make_bench: Callable[..., Bench]) -> None:
    """The folder that the service was told of is gone at that head: a failed plan, in words."""
    inside = {f"dbt/{path}": text for path, text in PROJECT.items()}
    bench = make_bench(project=inside, project_path="dbt")
    number = bench.open({**dict.fromkeys(inside), **{f"etl/{path}": text for path, text in PROJECT.items()}})
    bench.idle()

    assert "would leave no `dbt/config.yaml`" in bench.plan(number)
    assert bench.conclusions(bench.head(number))["plan"] == "failure"


def test_an_annotation_names_the_file_as_the_repository_does(make_bench: Callable[..., Bench]) -> None:
    """The project is in a folder of the repository: GitHub shows a remark only at a path from its root."""
    bench = make_bench(project={f"dbt/{path}": text for path, text in PROJECT.items()}, project_path="dbt")
    number = bench.open({"dbt/models/orders.sql": "SELECT 1 AS id\nBROKEN\n"})
    bench.idle()

    assert [mark.path for mark in bench.checks(bench.head(number))["plan"].annotations] == ["dbt/models/orders.sql"]


def test_a_pull_request_that_moves_to_another_base_is_let_go_and_taken_up_again(bench: Bench) -> None:
    """Its environment is dropped, no check succeeds for what is not planned, and the comment says where it merges."""
    bench.github.commit(SHOP, "other", {"README.md": "# Other\n"}, "Other", author="wim")
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.edit_pull_request(SHOP, number, base="other", author="wim")
    bench.idle()
    assert list(bench.planner_state()["environments"]) == ["prod"]
    assert "merges into `other` now" in bench.plan(number)
    assert set(bench.conclusions(bench.head(number)).values()) == {"cancelled"}

    bench.github.edit_pull_request(SHOP, number, base="main", author="wim")
    bench.idle()
    assert "pr_1" in bench.planner_state()["environments"]
    assert "1 non-breaking" in bench.plan(number)


@pytest.mark.parametrize("method", ["squash", "rebase"])
def test_every_way_to_merge_is_promoted_for_nothing(bench: Bench, method: MergeMethod) -> None:
    """Behaviour 9: the tree counts, not the commit's shape."""
    number = bench.open(COLUMN)
    bench.github.commit(SHOP, "change", {"README.md": "# More\n"}, "More", author="wim")
    bench.idle()
    bench.github.merge(SHOP, number, author="ann", method=method)
    bench.idle()

    assert bench.record(number).state is PullState.PROMOTED
    assert "nothing was computed" in bench.plan(number)
    assert bench.planner_state()["environments"]["prod"]["revision"] == 2


def test_two_pull_requests_on_one_model_are_promoted_one_upon_the_other(bench: Bench) -> None:
    """Behaviours 9, 22: the second is planned again on what the first made of prod, and prod ends with both."""
    lines = {"models/orders.sql": "SELECT 1 AS id,\n\n\n\n\n  9 AS last\n"}
    bench.github.commit(SHOP, "main", lines, "Longer", author="ann")
    first = bench.open({"models/orders.sql": "SELECT 1 AS first,\n\n\n\n\n  9 AS last\n"}, "one")
    second = bench.open({"models/orders.sql": "SELECT 1 AS id,\n\n\n\n\n  9 AS final\n"}, "two")
    bench.idle()
    bench.github.merge(SHOP, first, author="ann")
    bench.github.merge(SHOP, second, author="ann")
    bench.idle()

    both = "SELECT 1 AS first,\n\n\n\n\n  9 AS final\n"
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == both
    assert [bench.record(number).state for number in (first, second)] == [PullState.PROMOTED] * 2


def test_a_revert_brings_prod_back_and_a_merge_after_a_rollback_brings_all(bench: Bench) -> None:
    """Prod follows the branch: a revert is a change like another; a rollback lasts until the next promotion."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    bench.say(number, "/rollback", author="ann")
    later = bench.open({"models/more.sql": "SELECT 3 AS id\n"}, "later")
    bench.idle()
    bench.github.merge(SHOP, later, author="ann")
    bench.idle()
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]

    revert = bench.open({"models/orders.sql": PROJECT["models/orders.sql"]}, "revert")
    bench.idle()
    bench.github.merge(SHOP, revert, author="ann")
    bench.idle()
    assert bench.record(revert).state is PullState.PROMOTED
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == PROJECT["models/orders.sql"]


def test_a_burst_of_closing_and_reopening_ends_as_it_ended(bench: Bench) -> None:
    """Behaviour 21."""
    bench.knobs(hang="pr")
    number = bench.open(COLUMN)
    for _ in range(4):
        bench.github.close(SHOP, number, author="wim")
        bench.github.reopen(SHOP, number, author="wim")
    bench.knobs()
    bench.idle()

    assert bench.conclusions(bench.head(number)) == GREEN
    assert bench.record(number).state is PullState.PLANNED
    assert "pr_1" in bench.planner_state()["environments"]


def test_a_fork_that_was_deleted_is_still_planned_and_merged(bench: Bench) -> None:
    """Behaviour 6: GitHub keeps its commits; a head of nobody's is a fork's."""
    fork = bench.github.fork(SHOP, "rea")
    bench.github.commit(fork, "main", COLUMN, "From a fork", author="rea")
    number = bench.github.open_pull_request(SHOP, "rea:main", "main", "From a fork", author="rea")
    bench.idle()
    with bench.github.state.lock:
        del bench.github.state.repositories[fork]
    bench.say(number, f"/ok-to-plan {bench.head(number)}", author="ann")

    assert bench.conclusions(bench.head(number)) == GREEN


def push_back(bench: Bench, fork: str, commit: str) -> None:
    """rea's fork is at an older commit again."""
    address = bench.github.clone_url(fork).replace("://", f"://rea:{bench.github.add_user('rea')}@")
    push = ["git", "-C", str(bench.github.state.git(fork)), "push", "--quiet", "--force", address]
    subprocess.run([*push, f"{commit}:refs/heads/main"], check=True)


def test_a_word_for_a_forks_head_is_for_the_head_shown_when_it_was_said(bench: Bench) -> None:
    """A push between the comment and its execution, and a push back to what was allowed once, need a new word."""
    fork = bench.github.fork(SHOP, "rea")
    first = bench.github.commit(fork, "main", COLUMN, "From a fork", author="rea")
    number = bench.github.open_pull_request(SHOP, "rea:main", "main", "From a fork", author="rea")
    bench.idle()
    second = bench.github.commit(fork, "main", FILTER, "More", author="rea")
    bench.say(number, f"/ok-to-plan {first}", author="ann")
    assert f"The head is now `{second}`." in bench.replies(number)[-1]
    bench.say(number, f"/ok-to-plan {second}", author="ann")
    assert len(bench.calls("plan", f"pr_{number}")) == 1

    push_back(bench, fork, first)
    bench.idle()
    assert bench.head(number) == first
    assert set(bench.conclusions(first).values()) == {"action_required"}
    push_back(bench, fork, second)
    bench.idle()
    assert bench.record(number).state is PullState.HELD
    assert len(bench.calls("plan", f"pr_{number}")) == 1


def test_a_text_that_looks_like_a_replys_marker_takes_no_comment_over(bench: Bench) -> None:
    """Behaviour 31: a model's text holds the marker of a reply to come; the plan comment stays the plan comment."""
    marker = "".join(f"-- <!-- mergeplan:reply:{number} -->\n" for number in range(1000, 1200))
    number = bench.open({"models/orders.sql": marker + "SELECT 2 AS id\n"})
    bench.idle()
    comment = bench.say(number, "/help", author="rea")

    assert f"mergeplan:reply:{comment} " in bench.plan(number), "the marker did not foresee the comment"
    assert len(bench.bot_comments(number)) == 2
    assert bench.plan(number).startswith("<!-- mergeplan:plan -->")


def test_two_hundred_commands_in_one_comment_get_one_valid_reply(bench: Bench) -> None:
    """Behaviours 34, 36."""
    number = bench.open(COLUMN)
    bench.idle()
    before = len(bench.calls("plan"))
    bench.say(number, "/categorize orders breaking\n/categorize orders non-breaking\n/help\n/plan\n" * 50)

    (reply,) = bench.replies(number)
    assert len(reply) < 65_536
    assert "**Now:**" in reply
    assert len(bench.calls("plan")) - before <= 2


def test_a_renamed_prod_branch_is_followed(bench: Bench) -> None:
    """The default branch has another name from one moment to the next: prod and its pull requests go on there."""
    number = bench.open(COLUMN)
    bench.idle()
    main = bench.github.head(SHOP)
    with bench.github.state.lock:
        repository = bench.github.state.repositories[SHOP]
        git = bench.github.state.git(SHOP)
        subprocess.run(["git", "-C", str(git), "branch", "-m", "main", "trunk"], check=True)
        repository.default_branch = "trunk"
    bench.github.edit_pull_request(SHOP, number, base="trunk", author="wim")
    bench.idle()

    assert bench.conclusions(bench.head(number)) == GREEN
    assert bench.context.inbox.prods.get(SHOP).branch == "trunk"
    assert main == bench.github.head(SHOP, "trunk")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED


def test_a_revert_of_a_revert_brings_the_change_again(bench: Bench) -> None:
    """Revert by GitHub's button, twice: prod ends with the change."""
    number = bench.open(COLUMN)
    bench.idle()
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    for _ in range(2):
        repo = bench.github.state.repositories[SHOP]
        with bench.github.state.lock:
            number = pulls.revert_pull(bench.github.site, repo, repo.issues[number], "ann", {}).number  # type: ignore[arg-type]
        bench.idle()
        bench.github.merge(SHOP, number, author="ann")
        bench.idle()
        assert bench.record(number).state is PullState.PROMOTED

    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]
    assert list(bench.planner_state()["environments"]) == ["prod"]


def test_a_trunk_that_was_rewritten_is_what_prod_shows_and_open_pull_requests_are_planned_on_it(bench: Bench) -> None:
    """A forced push takes a merge out of the branch: prod follows, and nothing of the lost merge stays."""
    merged, number = bench.open(COLUMN), bench.open({"models/more.sql": "SELECT 3 AS x\n"}, "more")
    before = bench.github.head(SHOP)
    bench.idle()
    bench.github.merge(SHOP, merged, author="ann")
    bench.idle()
    with bench.github.state.lock:
        pushes.point_branch(bench.github.site, bench.github.state.repositories[SHOP], "main", before, "ann")
    bench.idle()

    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == PROJECT["models/orders.sql"]
    assert bench.context.inbox.prods.get(SHOP).promoted_commit == before
    assert bench.conclusions(bench.head(number)) == GREEN and "`shop.orders`" not in bench.plan(number)


def test_a_branch_that_is_deleted_and_restored_is_planned_again(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    head = bench.head(number)
    bench.github.delete_branch(SHOP, "change", author="wim")
    bench.idle()
    assert bench.record(number).state is PullState.CLOSED
    assert list(bench.planner_state()["environments"]) == ["prod"]
    with bench.github.state.lock:
        pushes.point_branch(bench.github.site, bench.github.state.repositories[SHOP], "change", head, "wim")
    bench.github.reopen(SHOP, number, author="wim")
    bench.idle()

    assert (bench.record(number).state, bench.conclusions(head)) == (PullState.PLANNED, GREEN)
    assert len(bench.bot_comments(number)) == 1
