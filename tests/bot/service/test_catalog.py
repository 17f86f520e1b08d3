"""The catalog, lineage, environments and plans in the pages of the service, as a browser asks for them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import httpx
import pytest

from mergeplan.bot.inbox.queue import CATALOG
from mergeplan.bot.pages.links import links_of
from mergeplan.bot.service.catalog import private_values
from mergeplan.planner.contract.catalog import CatalogView
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SECRET, SHOP, Bench

LONG = 2**31
PAGES = (
    "",
    "?q=orders",
    "models/shop.orders",
    "lineage",
    "lineage?focus=shop.orders",
    "unused",
    "environments",
    "plans",
)


@pytest.fixture(name="pages")
def _pages(make_bench: Callable[..., Bench]) -> Bench:
    """A bench whose checks lead to the service below a path of its own."""
    return make_bench(public_url="https://bot.example/plans")


def key(bench: Bench, repository: str = SHOP, number: int = 0, until_then: int = LONG) -> str:
    return links_of(bench.settings).sign_access(repository, number, until_then)


def ask(bench: Bench, path: str, cookie: str | None = None) -> httpx.Response:
    sent = {"Cookie": f"mergeplan_pages={key(bench) if cookie is None else cookie}"}
    return httpx.get(f"{bench.url}/catalog/{SHOP}/{path}", headers=sent, timeout=60)


def read_text(page: httpx.Response) -> str:
    """The page without its tags, as a reader sees it."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.text))


def test_a_pull_requests_page_leads_to_the_catalog_and_the_key_leaves_the_address(pages: Bench) -> None:
    number = pages.open(COLUMN)
    pages.idle()
    url = (pages.checks(pages.head(number))["plan"].details_url or "").replace("https://bot.example/plans", pages.url)
    link = re.findall(r'href="([^"]+/catalog/[^"]+)"', httpx.get(url).text)[0].replace("&amp;", "&")
    entered = httpx.get(link.replace("https://bot.example/plans", pages.url))

    assert (entered.status_code, entered.headers["location"]) == (303, f"/plans/catalog/{SHOP}/")
    cookie = entered.headers["set-cookie"]
    for part in ("HttpOnly", "Secure", "SameSite=lax", f"Path=/plans/catalog/{SHOP}/"):
        assert part in cookie
    page = httpx.get(f"{pages.url}/catalog/{SHOP}/", headers={"Cookie": cookie.partition(";")[0]})
    assert "shop.orders" in page.text


def test_every_page_is_the_same_as_of_the_ui_and_changes_nothing(pages: Bench) -> None:
    number = pages.open(COLUMN)
    pages.idle()
    for path in (*PAGES, f"plans/{number}", f"lineage?plan={number}"):
        answer = ask(pages, path)
        assert (answer.status_code, 'method="post"' in answer.text) == (200, False), path
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        for address in re.findall(r'(?:href|src|action)="(/[^"]*)"', answer.text):
            assert address.startswith(f"/plans/catalog/{SHOP}/"), address
    assert f"/plans/catalog/{SHOP}/plans/{number}" in ask(pages, "environments").text
    assert "#" + str(number) in ask(pages, "models/shop.orders").text
    assert httpx.post(f"{pages.url}/catalog/{SHOP}/plans").status_code == 405


def test_without_a_key_for_this_repository_nothing_is_shown(pages: Bench) -> None:
    pages.idle()
    wrong = ("", "x", key(pages, number=1), key(pages, "ann/other"), key(pages)[:-1])
    answers = [ask(pages, path, cookie) for cookie in wrong for path in ("", "models/shop.orders", "nothing")]
    unknown = httpx.get(f"{pages.url}/catalog/eve/other/", headers={"Cookie": f"mergeplan_pages={key(pages)}"})

    assert {answer.status_code for answer in (*answers, unknown)} == {403}
    assert len({answer.text for answer in (*answers, unknown)}) == 1
    expired = ask(pages, "", key(pages, until_then=1))
    assert (expired.status_code, "has expired" in expired.text) == (403, True)


def test_without_a_public_address_no_catalog_is_read_and_no_page_answers(bench: Bench) -> None:
    assert bench.calls("docs") == []
    assert httpx.get(f"{bench.url}/catalog/{SHOP}/?key=1.x").status_code == 403


def test_the_catalog_follows_each_promotion_and_says_when_it_is_behind(pages: Bench) -> None:
    assert "revision 1" in ask(pages, "").text
    pages.knobs(fail="docs")
    pages.github.commit(SHOP, "main", FILTER, "A push", author="ann")
    pages.idle()
    behind = ask(pages, "").text
    pages.knobs()
    pages.context.inbox.queue.wake(SHOP, CATALOG)
    pages.idle()
    page = ask(pages, "").text

    assert "Prod has moved on since: this is revision 1" in behind
    assert ("revision 2" in page, "moved on" in page) == (True, False)
    assert "WHERE true" in read_text(ask(pages, "models/shop.orders"))


def test_the_catalog_of_a_repository_is_titled_by_its_name(pages: Bench) -> None:
    view = CatalogView(project="work-1", environment="prod", made_at="2026-01-01T00:00:00+00:00")
    pages.context.inbox.catalogs.put(SHOP, "", view.model_dump_json().encode())
    text = ask(pages, "").text

    assert f"<h1>{SHOP}</h1>" in text
    assert f"{SHOP} · mergeplan</title>" in text
    assert "work-1" not in text


def test_a_catalog_of_another_version_is_read_again(pages: Bench) -> None:
    pages.idle()
    mark = pages.context.inbox.catalogs.mark(SHOP).mark
    for number, document in enumerate((b"{}", b'{"version": 99}', b"\xff", b'{"models": 7}')):
        pages.context.inbox.catalogs.put(SHOP, mark, document)
        answer = ask(pages, "")
        assert (answer.status_code, "Nothing was read yet" in answer.text) == (404, True)
        pages.idle()
        assert ask(pages, "").status_code == (404 if number else 200)  # at most once in a while


def test_no_project_code_runs_in_the_service_and_no_secret_is_on_a_page(pages: Bench) -> None:
    """The planner child, isolated as for a plan, opens the project; the service reads what that wrote."""
    pages.github.commit(SHOP, "main", {"models/orders.sql": f"SELECT '{SECRET}' AS id\n"}, "A push", author="ann")
    pages.idle()
    page = ask(pages, "models/shop.orders")
    child = pages.calls("docs")[-1]

    assert "SELECT '***' AS id" in read_text(page)
    assert SECRET not in str(child["environ"])
    assert not list(pages.home.glob("*.catalog.json"))
    assert private_values({"DB_PASSWORD": "hunter22", "REGION": "somewhere"}, ["DB_PASSWORD", "REGION"]) == (
        "hunter22",
    )


def test_markup_in_what_a_project_says_stays_text(make_bench: Callable[..., Bench]) -> None:
    hostile = "</a><script>alert(1)</script>"
    project = {**PROJECT, "models/orders.sql": f"SELECT '{hostile}' AS id\n"}
    pages = make_bench(project, public_url="https://bot.example/plans")
    pages.knobs(owner=hostile)
    pages.github.commit(SHOP, "main", {"models/totals.sql": "SELECT 1 AS n\n"}, "A push", author="ann")
    pages.idle()
    for path in ("", "models/shop.orders", "lineage", "?q=%3Cscript%3E", "?q=alert"):
        text = ask(pages, path).text
        assert "<script>" not in text, path
        assert not re.search(r"<[a-z]+[^>]*\son\w+=", text), path
    assert "&lt;script&gt;alert(1)" in ask(pages, "models/shop.orders").text


def test_an_address_that_leads_nowhere_is_a_page_with_a_sentence(pages: Bench) -> None:
    pages.idle()
    hostile = (
        "nothing",
        "models/shop.nothing",
        "plans/77",
        "plans/x",
        "lineage?plan=%3Cscript%3E",
        "plans/" + "9" * 400,
    )
    for path in hostile:
        answer = ask(pages, path)
        assert answer.status_code == 404, path
        assert "There is nothing at this address." in answer.text
        assert "<script>" not in answer.text
    assert ask(pages, "lineage?up=99").status_code == 422
    assert ask(pages, f"?q={'x' * 10_000}&page={'9' * 4_000}").status_code == 200
