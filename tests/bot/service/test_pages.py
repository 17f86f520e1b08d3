"""The pages behind the checks' Details links, as a browser asks for them."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from mergeplan.bot.records import PullState
from tests.bot.changing import change_record
from tests.bot.conftest import COLUMN, FILTER, SECRET, SHOP, Bench, until


@pytest.fixture(name="pages")
def _pages(copy_bench: Callable[..., Bench]) -> Bench:
    """A bench whose checks lead to the service; each test asks at the door itself."""
    return copy_bench(public_url="https://bot.example/plans")


def details(bench: Bench, number: int) -> dict[str, str]:
    """Where the checks of a pull request lead, at this machine's door."""
    runs = bench.checks(bench.head(number))
    return {name: (run.details_url or "").replace("https://bot.example/plans", bench.url) for name, run in runs.items()}


def test_each_checks_details_link_opens_a_page_of_the_plan(pages: Bench) -> None:
    number = pages.open(COLUMN)
    pages.idle()
    answers = {name: httpx.get(url) for name, url in details(pages, number).items()}

    assert {answer.status_code for answer in answers.values()} == {200}
    assert "shop.orders" in answers["plan"].text
    assert "Views" in answers["promotion"].text or "Prod now" in answers["promotion"].text
    assert "default-src 'none'" in answers["plan"].headers["content-security-policy"]
    assert "refresh" not in answers["plan"].text


def test_a_link_opens_no_other_pull_request_and_without_one_nothing_is_told(pages: Bench) -> None:
    first, second = pages.open(COLUMN), pages.open(FILTER, branch="other")
    pages.idle()
    url = details(pages, first)["plan"]
    moved = httpx.get(url.replace(f"/{first}/", f"/{second}/"))
    unknown, bare = httpx.get(url.replace(f"/{first}/", "/999/")), httpx.get(url.partition("?")[0])

    assert [response.status_code for response in (moved, unknown, bare)] == [403] * 3
    assert moved.text == unknown.text == bare.text
    assert httpx.get(url.replace("/plan?", "/secrets?")).status_code == 403


def test_a_page_shows_a_backfill_while_it_goes_on(pages: Bench) -> None:
    pages.knobs(hang="pr")
    number = pages.open(COLUMN)
    until(lambda: "environment" in pages.checks(pages.head(number)), what="the check")
    url = details(pages, number)["environment"]
    until(lambda: " of 1000" in httpx.get(url).text, what="the batches")
    going_on = httpx.get(url).text
    pages.knobs()
    pages.idle()

    assert 'http-equiv="refresh"' in going_on
    assert pages.record(number).state is PullState.PLANNED
    assert "The run has ended." in httpx.get(url).text


def test_a_promotions_page_says_what_it_did_and_prods_own_page_stands(pages: Bench) -> None:
    number = pages.open(COLUMN)
    pages.idle()
    pages.github.merge(SHOP, number, author="ann")
    pages.idle()
    pages.github.commit(SHOP, "main", FILTER, "A push", author="ann")
    pages.idle()
    text = httpx.get(details(pages, number)["promotion"]).text
    pushed = pages.checks(pages.github.head(SHOP))
    prod = (pushed["promotion"].details_url or "").replace("https://bot.example/plans", pages.url)

    assert "Revision of prod" in text
    assert "merge" in text
    assert httpx.get(prod).status_code == 200


def test_a_planted_secret_is_on_no_page(pages: Bench) -> None:
    """Behaviour 8: as in comments and checks."""
    number = pages.open(COLUMN)
    pages.idle()
    url = details(pages, number)["plan"]
    why = f"It said {SECRET} and ghs_0123456789abcdefghij."
    pages.context.inbox.pulls.update(SHOP, number, change_record, state=PullState.CANCELLED, reason=why)
    text = httpx.get(url).text

    assert "It said *** and ***." in text


def test_without_an_address_the_checks_lead_to_no_page(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()

    assert set(details(bench, number).values()) == {""}
    assert httpx.get(f"{bench.url}/pulls/{SHOP}/{number}/plan").status_code == 403
