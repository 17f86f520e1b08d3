"""The pages over HTTP, as a browser without JavaScript reads them."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from mergeplan.planner.api.access import Access, Mode, Scope
from tests.planner.ui.conftest import Browser, Open, links_of

TOKENS = {Scope.READ: "r" * 20, Scope.PLAN: "p" * 20, Scope.APPLY: "a" * 20}
READING = ("/", "/?q=price", "/models/shop.daily", "/unused", "/lineage", "/environments", "/checks", "/checks/lint")
ALL = (*READING, "/plans", "/plans/new", "/diff", "/login", "/nothing")
HOSTILE = """MODEL (name shop.apart, kind FULL, owner '<b>x</b>', tags ("</script>"),
  description '<script>alert(1)</script>', column_descriptions (seven = '"><img src=x onerror=y>'));
SELECT '</pre><script>x</script>' AS seven"""


def test_the_catalog_is_searched_on_the_server(browse: Open) -> None:
    browser = browse()
    page = browser.get("/?q=price")

    assert "2 models for “price”" in page
    assert '<a href="/models/shop.daily"><code>shop.daily</code></a>' in page
    assert '<p class="hit">price</p>' in page
    assert "No model matches" in browser.get("/?q=nothing")


def test_a_models_page_has_columns_queries_schedule_audits_and_lineage(browse: Open) -> None:
    page = browse().get("/models/shop.daily")

    for text in ("not_null", "@daily", '<span class="v">@start_date</span>', "The query as Spark runs it", "Made from"):
        assert text in page
    assert '<a href="/models/shop.items"><code>shop.items</code></a> <code>price</code>' in page
    assert 'href="/lineage?focus=shop.daily"' in page
    assert "There is no model `shop.dailx`" not in page


def test_every_link_of_every_page_leads_somewhere(browse: Open) -> None:
    browser, seen, waiting = browse(), set[str](), ["/"]
    while waiting:
        address = waiting.pop().replace("&amp;", "&")
        if address not in seen:
            seen.add(address)
            answer = browser.client.get(address)
            assert answer.status_code == 200, address
            if answer.headers["content-type"].startswith("text/html"):
                waiting += links_of(answer.text) - seen

    assert {"/models/shop.total", "/lineage?focus=shop.total", "/plans/new", "/checks/lint", "/diff"} <= seen


def test_pages_run_and_load_nothing_but_our_own_files(browse: Open) -> None:
    browser = browse(apart=HOSTILE)
    for address in (*ALL, "/models/shop.apart"):
        answer = browser.client.get(address)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        page, tags = answer.text, re.findall(r"<[a-z][^>]*>", answer.text)
        assert not [tag for tag in tags if re.search(r"^<(img|style)|\s(style|on\w+)=|javascript:|https?:", tag)]
        assert "<b>x" not in page
        assert all("src=" in tag for tag in tags if tag.startswith("<script"))
        for url, integrity in re.findall(r'(?:href|src)="(/assets/[^"]+)" integrity="([^"]+)"', page):
            content = browser.client.get(url).content
            assert integrity == f"sha384-{b64encode(hashlib.sha384(content).digest()).decode()}"


def test_an_asset_may_be_kept_and_a_page_may_not(browse: Open) -> None:
    browser = browse()
    (style,) = re.findall(r'"(/assets/style-[^"]+)"', browser.get("/"))

    assert "immutable" in browser.client.get(style).headers["cache-control"]
    assert browser.client.get("/").headers["cache-control"] == "no-store"
    browser.get("/assets/style-0000000000000000.css", 404)


def test_the_lineage_is_a_drawing_of_links_beside_a_list(browse: Open) -> None:
    page = browse().get("/lineage?focus=shop.daily&up=1&down=1")

    drawn = page[page.index("<svg width") : page.index("</svg>", page.index("<svg width"))]
    assert set(re.findall(r"<title>([^<,]+)", drawn)) == {"shop.items", "shop.daily", "shop.total"}
    assert 'href="/lineage?focus=shop.total&amp;up=1&amp;down=1"' in drawn
    steps = re.findall(r'data-label="Steps">([^<]+)', page[page.index('id="listed"') :])
    assert steps == ["1 step up", "focus", "1 step down"]


def test_a_lineage_without_a_focus_has_no_steps(browse: Open) -> None:
    page = browse().get("/lineage")

    assert "Steps</th>" not in page
    assert 'data-label="Steps"' not in page


def test_a_lineage_leads_across_a_wide_screen_and_down_a_narrow_one(browse: Open) -> None:
    page = browse().get("/lineage?focus=shop.daily")

    across, down = (page[page.index(f'class="graph lineage {way}"') :] for way in ("across", "down"))
    places = [
        [tuple(map(int, place)) for place in re.findall(r'<rect x="(\d+)" y="(\d+)"', drawn.partition("</svg>")[0])]
        for drawn in (across, down)
    ]
    assert [x for x, _ in places[0]] == sorted({x for x, _ in places[0]})
    assert [y for _, y in places[1]] == sorted({y for _, y in places[1]})


def test_a_kind_has_one_spelling_on_every_page(browse: Open) -> None:
    kind = "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [price])"
    browser = browse(history=f"MODEL (name shop.history, kind {kind});\nSELECT id, price FROM shop.daily")

    for address in ("/", "/models/shop.history", "/lineage", "/models/shop.daily"):
        assert set(re.findall("scd type 2 by column", browser.get(address), re.IGNORECASE)) == {"SCD type 2 by column"}


def test_a_page_names_the_product_the_project_and_where_it_is(browse: Open) -> None:
    page = browse().get("/models/shop.daily")

    header = page[page.index('<header class="app">') : page.index("</header>")]
    assert " mergeplan</a>" in header
    assert '<a href="/" aria-current="page">Catalog</a>' in header
    tree = page[page.index('<nav class="tree"') :]
    assert '<a href="/models/shop.daily" aria-current="page">daily</a>' in tree


@pytest.mark.parametrize(
    ("address", "lists"),
    [
        ("/lineage?focus=shop.daily", ("models", "columns")),
        ("/plans/new", ("models", "environments")),
        ("/diff", ("models",)),
    ],
)
def test_a_field_for_a_name_offers_the_names(browse: Open, address: str, lists: tuple[str, ...]) -> None:
    page = browse().get(address)

    assert all(f'<datalist id="names-of-{name}">' in page and f'list="names-of-{name}"' in page for name in lists)
    assert '<option value="shop.total">' in page


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("focus=shop.dailx", "There is no model <code>shop.dailx</code>."),
        ("select=shop.dailx", "<code>shop.dailx</code> selects no model."),
        ("focus=shop.daily&column=pricey", "<code>shop.daily</code> has no column <code>pricey</code>."),
        ("column=price", "A column needs its model."),
    ],
)
def test_what_the_lineage_does_not_know_is_said_above_the_form(browse: Open, query: str, sentence: str) -> None:
    page = browse().get(f"/lineage?{query}")

    assert sentence in page
    assert '<form class="wish"' in page


@pytest.mark.parametrize(
    ("address", "status", "sentence"),
    [
        ("/nothing", 404, "There is nothing at this address."),
        ("/models/shop.dailx", 404, "There is no model <code>shop.dailx</code>."),
        ("/environments/dev", 404, "There is no environment <code>dev</code>."),
        ("/plans/20260101000000-00000000", 404, "There is no plan"),
        ("/lineage?up=99", 422, "<code>up</code>"),
        ("/environments/a%20b", 422, "environment"),
    ],
)
def test_an_error_is_a_page_with_a_sentence(browse: Open, address: str, status: int, sentence: str) -> None:
    page = browse().get(address, status)

    assert sentence in page
    assert "Traceback" not in page
    assert "Back to the catalog" in page


def test_an_address_of_the_api_is_answered_by_the_api(browse: Open) -> None:
    answer = browse().client.get("/api/v1/nothing", headers={"Accept": "text/html"})

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_file_that_cannot_be_opened_is_named(browse: Open, tmp_path: Path) -> None:
    browser = browse()
    (tmp_path / "models" / "apart.sql").write_text("MODEL (name shop.apart, kind FUL);\nSELECT 7 AS seven")
    page = browser.get("/")

    assert "Not in the catalog" in page
    assert "models/apart.sql:1" in page


def test_a_project_that_cannot_be_opened_is_an_error_with_its_place(browse: Open, tmp_path: Path) -> None:
    browser = browse()
    (tmp_path / "config.yaml").write_text("gateways: [")
    browser.context.reader.expire()
    page = browser.get("/", 409)

    assert "config.yaml" in page
    assert "Traceback" not in page


def test_a_server_with_tokens_asks_for_one_and_keeps_it_in_a_cookie(browse: Open) -> None:
    browser = browse(Access(tokens=TOKENS))
    asked = browser.client.get("/models/shop.daily", headers={"Accept": "text/html"}, follow_redirects=False)
    assert asked.headers["location"] == f"/login?next={quote('/models/shop.daily', safe='')}"

    wrong = browser.client.post("/login", data={"token": "x" * 20, "next": "/"}, follow_redirects=False)
    right = browser.client.post("/login", data={"token": "r" * 20, "next": "//evil.example"}, follow_redirects=False)

    assert (wrong.status_code, right.status_code, right.headers["location"]) == (403, 303, "/")
    assert "set-cookie" not in wrong.headers
    assert {"httponly", "samesite=strict"} <= set(right.headers["set-cookie"].lower().split("; "))
    assert "shop.daily" in browser.get("/models/shop.daily")


def sign_in(browser: Browser, scope: Scope) -> Browser:
    browser.client.post("/login", data={"token": TOKENS[scope]}, follow_redirects=False)
    return browser


def test_what_a_mode_does_not_do_is_not_offered_and_is_refused(browse: Open) -> None:
    browser = browse(Access(Mode.CATALOG))
    for address in READING:
        assert not re.search(r'method="post"|href="/(plans|diff)', browser.get(address)), address

    assert "mode <code>catalog</code>" in browser.get("/plans/new", 403)
    for address in ("/plans", "/checks/tests", "/checks/audits", "/diff", "/environments/prod/run"):
        assert browser.post(address, sure="1", first="a", second="b").status_code == 403, address


def test_what_a_token_does_not_allow_is_not_offered_and_is_refused(browse: Open) -> None:
    browser = sign_in(browse(Access(tokens=TOKENS)), Scope.READ)

    assert "/plans/new" not in browser.get("/plans")
    assert "scope <code>plan</code>" in browser.get("/plans/new", 403)
    assert browser.post("/plans", environment="dev").status_code == 403
    assert not browser.context.jobs.list()


def test_a_form_of_another_page_does_nothing(browse: Open) -> None:
    browser = browse()
    forged = browser.post("/plans", environment="dev", csrf="0" * 64)
    without = browser.client.post("/plans", data={"environment": "dev"})
    elsewhere = {"Origin": "https://evil.example"}
    foreign = browser.client.post("/plans", data={"csrf": browser.csrf()}, headers=elsewhere)
    typed = browser.client.post("/plans", json={"csrf": browser.csrf()})

    assert [answer.status_code for answer in (forged, without, foreign, typed)] == [403, 403, 403, 415]
    assert not browser.context.jobs.list()
