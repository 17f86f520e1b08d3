"""Git without a shell and without a token in sight."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.git.call import CheckoutFailed
from bot.git.checkout import Checkout, changes_no_model
from bot.sandbox.server import Sandbox

SHOP = "ann/shop"


@pytest.fixture(name="github")
def _github(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path / "github") as sandbox:
        sandbox.add_user("ann")
        sandbox.create_repository(SHOP, {"a.sql": "SELECT 1\n", "b.sql": "SELECT 1\n"}, private=True)
        sandbox.install_app(SHOP)
        yield sandbox


@pytest.fixture(name="checkout")
def _checkout(github: Sandbox, tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "home", SHOP, github.clone_url(SHOP), lambda: github.installation_token(SHOP))
    made.fetch("main")
    return made


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
