"""A fetch asks for the references that it needs; how many others the repository has costs nothing."""

from __future__ import annotations

import pytest

from mergeplan.bot.git.call import CheckoutFailed, ServerUnreachable
from mergeplan.bot.git.checkout import Checkout
from mergeplan_sandbox.git import git_http
from mergeplan_sandbox.server import Sandbox
from tests.bot.git.conftest import SHOP


@pytest.fixture(name="answers")
def _answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each answer of the git server."""
    sizes, serve = list[int](), git_http._serve_request

    def count_bytes(*arguments: object) -> git_http.Response:
        answer = serve(*arguments)  # type: ignore[arg-type]
        sizes.append(len(answer.body))
        return answer

    monkeypatch.setattr(git_http, "_serve_request", count_bytes)
    return sizes


def add_pulls(github: Sandbox, first: int, last: int) -> None:
    """Write the references that so many closed pull requests leave."""
    packed = github.state.git(SHOP) / "packed-refs"
    text = packed.read_text() if packed.exists() else ""
    lines = sorted(f"{github.head(SHOP)} refs/pull/{number}/head\n" for number in range(first, last))
    packed.write_text(text + "".join(lines))


def measure_fetches(checkout: Checkout, github: Sandbox, answers: list[int], text: str) -> int:
    """The bytes of a fetch of something new and of one of nothing new."""
    answers.clear()
    github.commit(SHOP, "change", {"a.sql": text}, "More", author="ann")
    checkout.fetch("main", 1)
    checkout.fetch("main", 1)
    return sum(answers)


def test_a_fetch_among_thousands_of_references_costs_what_one_among_fifty_does(
    checkout: Checkout, github: Sandbox, answers: list[int]
) -> None:
    github.commit(SHOP, "change", {"b.sql": "SELECT 2\n"}, "A change", author="ann")
    github.open_pull_request(SHOP, "change", "main", "A change", author="ann")
    add_pulls(github, 1000, 1050)
    few = measure_fetches(checkout, github, answers, "SELECT 50\n")
    add_pulls(github, 2000, 7000)
    many = measure_fetches(checkout, github, answers, "SELECT 7000\n")

    assert checkout.head("main") == github.head(SHOP)
    assert 0 < many < 1.1 * few


def test_a_branch_that_is_not_there_is_told_and_one_with_a_long_name_is_fetched(
    checkout: Checkout, github: Sandbox
) -> None:
    long = "/".join(["b" * 120] * 2)
    github.commit(SHOP, long, {"b.sql": "SELECT 2\n"}, "A change", author="ann")
    checkout.fetch(long)

    assert checkout.head(long) == github.head(SHOP, long)
    with pytest.raises(CheckoutFailed, match="no such branch"):
        checkout.fetch("absent")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/ann/shop.git", "{site}/ann/gone.git"])
def test_a_server_that_does_not_serve_costs_no_mirror(checkout: Checkout, github: Sandbox, url: str) -> None:
    """It is not fetched anew as where an object is broken."""
    mirror = (checkout.folder / "mirror.git").stat().st_ino
    other = Checkout(checkout.folder, SHOP, url.format(site=github.url), lambda: github.installation_token(SHOP))
    with pytest.raises(ServerUnreachable):
        other.fetch("main")

    assert (checkout.folder / "mirror.git").stat().st_ino == mirror
    assert checkout.has(github.head(SHOP))
