"""git clones, fetches and pushes over HTTP, by the same rules as the API."""

import subprocess
from pathlib import Path

import pytest

from mergeplan_sandbox.git import git_http, repos
from mergeplan_sandbox.git.repos import GitError, git
from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP


def add_token(sandbox: Sandbox, repository: str, token: str) -> str:
    """The clone address as a bot uses it."""
    return sandbox.clone_url(repository).replace("http://", f"http://x-access-token:{token}@")


@pytest.fixture(name="work")
def _work(sandbox: Sandbox, tmp_path: Path) -> Path:
    """A clone of wim's."""
    git(tmp_path, "clone", "--quiet", add_token(sandbox, SHOP, sandbox.add_user("wim")), "work")
    work = tmp_path / "work"
    git(work, "config", "user.name", "wim")
    git(work, "config", "user.email", sandbox.state.users["wim"].email)
    return work


def push(work: Path, text: str, *flags: str) -> str:
    """Commits a change of the one model to `more` and pushes it."""
    git(work, "checkout", "--quiet", "-B", "more", "origin/more")
    (work / "models" / "orders.sql").write_text(text)
    git(work, "commit", "--quiet", "--all", "--message", "By git")
    git(work, "push", "--quiet", *flags, "origin", "more")
    return git(work, "rev-parse", "HEAD").strip()


def test_a_push_moves_the_pull_request_and_is_told(sandbox: Sandbox, work: Path, number: int) -> None:
    sha = push(work, "SELECT 3 AS id\n")
    sandbox.wait_idle()

    assert sandbox.pull_request(SHOP, number).head_sha == sha
    assert [(item.event, item.action) for item in sandbox.deliveries[-2:]] == [
        ("push", None),
        ("pull_request", "synchronize"),
    ]
    assert sandbox.deliveries[-1].payload["sender"]["login"] == "wim"


def test_the_merge_ref_can_be_fetched_without_a_token(sandbox: Sandbox, tmp_path: Path, number: int) -> None:
    repos.create_repository(tmp_path / "mirror", "main")

    git(tmp_path / "mirror", "fetch", "--quiet", sandbox.clone_url(SHOP), f"refs/pull/{number}/merge")

    assert git(tmp_path / "mirror", "show", "FETCH_HEAD:models/orders.sql") == "SELECT 2 AS id\n"


@pytest.mark.parametrize("asked", ["URL", "--symref URL HEAD", "URL refs/heads/more refs/pull/1/head", "--heads URL"])
def test_branches_are_listed_without_a_process_as_git_lists_them(
    sandbox: Sandbox, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    argv = ("ls-remote", *asked.replace("URL", sandbox.clone_url(SHOP)).split())
    with monkeypatch.context() as patch:
        patch.setattr(git_http, "list_references", lambda repo, body: None)
        listed_by_git = git(tmp_path, *argv)
    monkeypatch.setattr(git_http, "_call_backend", None)  # a process that is started now fails

    assert git(tmp_path, *argv) == listed_by_git != ""


def test_a_tag_is_listed_with_the_commit_that_it_names(sandbox: Sandbox, tmp_path: Path) -> None:
    person = {f"GIT_COMMITTER_{part}": "ann@localhost" for part in ("NAME", "EMAIL")}
    git(sandbox.state.git(SHOP), "tag", "--annotate", "--message", "First", "v1", "main", env=person)

    listing = git(tmp_path, "ls-remote", sandbox.clone_url(SHOP), "refs/tags/v1*")

    assert listing.splitlines()[1] == f"{repos.find_tip(sandbox.state.git(SHOP), 'main')}\trefs/tags/v1^{{}}"


def test_a_commit_can_be_fetched_by_its_sha(sandbox: Sandbox, tmp_path: Path) -> None:
    repos.create_repository(tmp_path / "mirror", "main")

    git(tmp_path / "mirror", "fetch", "--quiet", "--depth=1", sandbox.clone_url(SHOP), sandbox.head(SHOP, "more"))


def test_a_reader_does_not_push(sandbox: Sandbox, work: Path) -> None:
    git(work, "remote", "set-url", "origin", add_token(sandbox, SHOP, sandbox.add_user("rea")))
    before = sandbox.head(SHOP, "more")

    with pytest.raises(GitError, match="403"):
        push(work, "SELECT 3 AS id\n")
    assert sandbox.head(SHOP, "more") == before


def test_a_private_repository_is_cloned_by_the_app_and_by_nobody_else(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.create_repository("ann/secret", {"a": "1"}, private=True)
    sandbox.install_app("ann/secret")
    token = sandbox.installation_token("ann/secret")

    git(tmp_path, "clone", "--quiet", add_token(sandbox, "ann/secret", token), "mine")
    with pytest.raises(GitError, match="could not read Username"):
        git(tmp_path, "clone", "--quiet", sandbox.clone_url("ann/secret"), "theirs")
    with pytest.raises(GitError, match="not found"):
        git(tmp_path, "clone", "--quiet", add_token(sandbox, "ann/secret", sandbox.add_user("rea")), "theirs")


def test_pull_request_refs_cannot_be_pushed(work: Path, number: int) -> None:
    with pytest.raises(GitError, match="hidden ref"):
        git(work, "push", "--quiet", "--force", "origin", f"HEAD:refs/pull/{number}/head")


def test_a_large_push_arrives_whole(sandbox: Sandbox, work: Path) -> None:
    text = "".join(f"SELECT {number} -- {number * 7919}\n" for number in range(200_000))

    push(work, text)

    assert sandbox.read(SHOP, "models/orders.sql", "more") == text


def test_the_test_s_git_reads_no_settings_of_this_machine() -> None:
    done = subprocess.run(
        ["git", "config", "--list", "--show-scope"],
        env=repos.git_environment(),
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        timeout=120,
    )

    assert "global" not in done.stdout and "system" not in done.stdout


def test_references_are_those_that_git_lists_packed_or_not(sandbox: Sandbox, number: int) -> None:
    folder = sandbox.state.git(SHOP)
    git(folder, "pack-refs", "--all")
    sandbox.commit(SHOP, "more", {"models/orders.sql": "SELECT 3 AS id\n"}, "After it was packed", author="wim")
    listed = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()

    assert [f"{name} {sha}" for name, sha in repos.list_refs(folder, "refs/").items()] == listed
    assert f"refs/pull/{number}/head {sandbox.head(SHOP, 'more')}" in listed
