"""Signed links: what they open, for how long, and what they give away."""

from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from mergeplan.bot.pages.links import DAYS, PageLinks, links_of, page_key
from mergeplan.bot.settings import Settings

NOW = 1_800_000_000.0
LINKS = PageLinks("https://bot.example", page_key("a private key"))


def link_key(url: str) -> str:
    return url.partition("?key=")[2]


def test_a_link_opens_its_pull_request_until_it_expires() -> None:
    url = LINKS.url("ann/shop", 7, "plan", NOW)
    later = NOW + DAYS * 86_400

    assert url.startswith("https://bot.example/pulls/ann/shop/7/plan?key=")
    assert LINKS.verdict("ann/shop", 7, link_key(url), later - 1) == "open"
    assert LINKS.verdict("ann/shop", 7, link_key(url), later) == "expired"


@pytest.mark.parametrize(
    ("repository", "number"), [("ann/shop", 8), ("ann/other", 7), ("ann/shop", 0), ("ben/shop", 7)]
)
def test_a_link_opens_no_other_pull_request(repository: str, number: int) -> None:
    assert LINKS.verdict(repository, number, link_key(LINKS.url("ann/shop", 7, "plan", NOW)), NOW) == "wrong"


@pytest.mark.parametrize("change", ["x{0}", "{0}x", "0{0}", "{1}", "f{0}", "", ".", "1.", "é.é", "{2}."])
def test_a_link_that_was_changed_opens_nothing(change: str) -> None:
    key = link_key(LINKS.url("ann/shop", 7, "plan", NOW))
    until, _, signature = key.partition(".")
    assert LINKS.verdict("ann/shop", 7, change.format(key, signature, until), NOW) == "wrong"


def test_services_of_one_app_open_each_others_links_and_the_webhooks_secret_has_no_part_in_it() -> None:
    """A link is public where its check is: nobody may try guesses of a secret that somebody made up against it."""
    one = Settings(public_url="https://a.example", github_private_key=SecretStr("key\n"), webhook_secret=SecretStr("1"))
    two = Settings(public_url="https://b.example", github_private_key=SecretStr("key"), webhook_secret=SecretStr("2"))
    other = Settings(public_url="https://a.example", github_private_key=SecretStr("another"))
    key = link_key(links_of(one).url("ann/shop", 7, "plan", NOW))

    assert links_of(two).verdict("ann/shop", 7, key, NOW) == "open"
    assert links_of(other).verdict("ann/shop", 7, key, NOW) == "wrong"


def test_without_an_address_or_a_key_there_are_no_links() -> None:
    assert links_of(Settings(github_token=SecretStr("t"))).url("ann/shop", 7, "plan", NOW) == ""
    assert links_of(Settings(public_url="https://a.example")).url("ann/shop", 7, "plan", NOW) == ""
    assert PageLinks("https://a.example").verdict("ann/shop", 7, "1.", NOW) == "wrong"


@pytest.mark.parametrize(
    "url", ["http://bot.example", "javascript:alert(1)", "https://u:p@bot.example", "https://a/?b"]
)
def test_an_address_that_is_not_encrypted_or_holds_more_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings(public_url=url)
