"""What changed between two commits, also where names are odd and files are no text."""

from pathlib import Path

import pytest

from mergeplan_sandbox.git import repos
from mergeplan_sandbox.git.diffs import diff_files
from mergeplan_sandbox.git.repos import Person

ANN = Person("Ann", "ann@localhost")


@pytest.fixture(name="repo")
def _repo(tmp_path: Path) -> Path:
    repo = tmp_path / "shop.git"
    repos.create_repository(repo, "main")
    return repo


def test_each_kind_of_change_is_named(repo: Path) -> None:
    long = "".join(f"line {number}\n" for number in range(20))
    first = repos.commit_files(repo, "main", {"old": long, "gone": "1\n", "kept": "1\n", "same": "1\n"}, "a", ANN, None)
    later = {"old": None, "new name": long, "gone": None, "kept": "2\n", "added": "new\n"}
    second = repos.commit_files(repo, "main", later, "b", ANN, first)

    diffs = {
        change.filename: (change.status, change.additions, change.deletions)
        for change in diff_files(repo, first, second)
    }

    assert diffs == {
        "added": ("added", 1, 0),
        "gone": ("removed", 0, 1),
        "kept": ("modified", 1, 1),
        "new name": ("renamed", 0, 0),
    }


@pytest.mark.parametrize("name", ["a b.sql", 'quo"ted', "é.sql", "-x", "tab\tbed", "back\\slash", "dir/$(id)"])
def test_odd_names_stay_as_they_are(repo: Path, name: str) -> None:
    first = repos.commit_files(repo, "main", {"x": "1\n"}, "a", ANN, None)
    second = repos.commit_files(repo, "main", {name: "diff --git a/x b/x\n"}, "b", ANN, first)

    (change,) = diff_files(repo, first, second)
    assert (change.filename, change.patch) == (name, "@@ -0,0 +1 @@\n+diff --git a/x b/x")
    assert repos.read_blob(repo, second, name) is not None


def test_what_is_no_text_has_no_patch(repo: Path) -> None:
    first = repos.commit_files(repo, "main", {"x": b"\0\1\2"}, "a", ANN, None)
    second = repos.commit_files(repo, "main", {"x": b"\0\1\3"}, "b", ANN, first)

    assert [(change.filename, change.patch) for change in diff_files(repo, first, second)] == [("x", "")]


def test_nothing_changed_is_an_empty_list(repo: Path) -> None:
    first = repos.commit_files(repo, "main", {"x": "1"}, "a", ANN, None)

    assert diff_files(repo, first, first) == []


def test_messages_and_names_cannot_steer_git(repo: Path) -> None:
    sha = repos.commit_files(
        repo, "main", {"x": "1"}, "--flag\n\nfrom refs/heads/other", Person("A <x>\n", "a@b"), None
    )

    commit = repos.read_commit(repo, sha)
    assert (commit.message, commit.author.name) == ("--flag\n\nfrom refs/heads/other", "A x")
    assert repos.find_tip(repo, "--help") is None
    assert not repos.valid_branch("--upload-pack=x") and not repos.valid_branch("a..b")
