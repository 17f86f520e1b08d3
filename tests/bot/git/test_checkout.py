"""Git without a shell and without a token in sight."""

from __future__ import annotations

import random
import subprocess
from itertools import permutations
from pathlib import Path

import pytest

from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Checkout, changes_no_model
from mergeplan.bot.git.objects import ObjectMemory, name_of, open_objects
from mergeplan_sandbox.server import Sandbox
from tests.bot.git.conftest import SHOP
from tests.bot.git.test_work_tree import git


def test_the_token_is_in_no_file(checkout: Checkout, github: Sandbox) -> None:
    """Behaviour 8: a private repository is fetched, and the token is nowhere in the mirror."""
    token = github.installation_token(SHOP)
    texts = [path.read_bytes() for path in checkout.folder.rglob("*") if path.is_file()]

    assert checkout.has(github.head(SHOP))
    assert not any(b"ghs_" in text or token.encode() in text for text in texts)


def test_two_sides_are_merged_as_github_would(checkout: Checkout, github: Sandbox) -> None:
    """The same two commits always give the same commit; a conflict names its files."""
    base = github.head(SHOP)
    one = github.commit(SHOP, "one", {"a.sql": "SELECT 2\n"}, "One", author="ann")
    two = github.commit(SHOP, "two", {"b.sql": "SELECT 2\n"}, "Two", author="ann")
    three = github.commit(SHOP, "three", {"a.sql": "SELECT 3\n"}, "Three", author="ann")
    for branch in ("one", "two", "three"):
        checkout.fetch(branch)

    assert checkout.merge(base, one).commit == one
    assert checkout.merge(one, two) == checkout.merge(one, two)
    merged = checkout.merge(one, two)
    assert (checkout.read(merged.commit, "a.sql"), checkout.read(merged.commit, "b.sql")) == (
        "SELECT 2\n",
        "SELECT 2\n",
    )
    assert checkout.merge(one, three).conflicts == ("a.sql",)


def test_files_are_fetched_when_they_are_read_and_only_those_of_the_project(
    checkout: Checkout, github: Sandbox
) -> None:
    """A large repository: neither what it held before nor what lies beside the project is fetched."""
    old, beside, mine = ("\n".join(f"{name} {n * 7919}" for n in range(20_000)) for name in ("old", "beside", "mine"))
    github.commit(SHOP, "main", {"dbt/a.sql": old}, "Old", author="ann")
    github.commit(SHOP, "main", {"dbt/a.sql": mine, "videos/b": beside}, "New", author="ann")
    checkout.fetch("main")
    with checkout.files(github.head(SHOP), "dbt") as place:
        assert [path.name for path in place.iterdir()] == ["a.sql"]
        assert (place / "a.sql").read_text() == mine

    here = {text: _holds(checkout, text) for text in (old, beside, mine)}
    assert list(here.values()) == [False, False, True]
    assert checkout.read(github.head(SHOP), "videos/b") == beside


def _holds(checkout: Checkout, text: str) -> bool:
    with open_objects(checkout.folder / "mirror.git" / "objects", ObjectMemory()) as objects:
        return objects.find(name_of("blob", text.encode()), "blob") is not None


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_are_merged_as_with_every_file_at_hand(
    checkout: Checkout, github: Sandbox, tmp_path: Path, seed: int
) -> None:
    """Branches that were merged into each other, both ways, with conflicts and without."""
    choose, home = random.Random(seed), tmp_path / "clone"  # noqa: S311
    git(tmp_path, "clone", "--quiet", url_of(github), str(home))
    tips = {name: git(home, "rev-parse", "HEAD").strip() for name in "xyz"}
    for step in range(14):
        one, other = choose.sample("xyz", 2)
        before = dict(tips)
        git(home, "checkout", "--quiet", "--detach", tips[one])
        if step < 3 or choose.random() < 0.5:
            lines = [f"{choose.randrange(4) if n == step % 9 else n}\n" for n in range(9)]
            (home / choose.choice(["a.sql", "b.sql", "new.sql"])).write_text("".join(lines))
            git(home, "add", "--all")
        else:
            git(home, "merge", "--quiet", "-X", "ours", "--no-edit", before[other])
        git(home, "commit", "--quiet", "--allow-empty", "--message", f"{step}")
        tips[one] = git(home, "rev-parse", "HEAD").strip()
        if choose.random() < 0.3:  # the other side merges the same commits: two merge bases
            git(home, "checkout", "--quiet", "--detach", before[other])
            git(home, "merge", "--quiet", "-X", "theirs", "--no-edit", before[one])
            tips[other] = git(home, "rev-parse", "HEAD").strip()
    git(home, "push", "--quiet", url_of(github), *(f"{oid}:refs/heads/{name}" for name, oid in tips.items()))
    for name in tips:
        checkout.fetch(name)

    for one, other in permutations("xyz", 2):
        merged = checkout.merge(tips[one], tips[other])
        code, out = merge_tree(home, tips[one], tips[other])
        assert (merged.tree, merged.conflicts) == ((out[0], ()) if code == 0 else ("", tuple(dict.fromkeys(out[1:]))))


def url_of(github: Sandbox) -> str:
    """The repository's address, with a token of ann's."""
    return github.clone_url(SHOP).replace("://", f"://x-access-token:{github.add_user('ann')}@")


def merge_tree(home: Path, one: str, other: str) -> tuple[int, list[str]]:
    """What git says of a merge with everything at hand."""
    asked = ["git", "merge-tree", "--write-tree", "--name-only", "--no-messages", one, other]
    done = subprocess.run(asked, cwd=home, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_the_files_of_a_commit_hold_no_link_and_no_git(checkout: Checkout, github: Sandbox, tmp_path: Path) -> None:
    """A pull request cannot point outside of its own tree."""
    with checkout.files(github.head(SHOP)) as place:
        assert sorted(path.name for path in place.iterdir()) == ["a.sql", "b.sql"]
        assert place.is_relative_to(tmp_path / "home" / "trees")


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "a:b", "a*", "x.lock", "--upload-pack=touch pwned", "a\nb"])
def test_an_odd_branch_is_refused(checkout: Checkout, branch: str) -> None:
    """Behaviour 7: the name goes through git's own validator, and never becomes an option."""
    with pytest.raises(CheckoutFailed):
        checkout.fetch(branch)


@pytest.mark.parametrize("commit", ["HEAD", "--all", "a" * 39, "$(id)", ""])
def test_a_commit_is_forty_hex_digits(checkout: Checkout, commit: str) -> None:
    """Behaviour 7."""
    with pytest.raises(CheckoutFailed):
        checkout.has(commit)


def test_only_plain_files_are_sure_to_change_no_model() -> None:
    """In doubt a planner is asked."""
    assert changes_no_model(["README.md", "docs/a.py", ".github/workflows/x.yml"], ".")
    assert not changes_no_model(["README.md", "macros/a.py"], ".")
    assert not changes_no_model(["models/notes.md"], ".")
