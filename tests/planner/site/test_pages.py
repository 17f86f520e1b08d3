"""The pages: they say what the catalog says, load nothing, run nothing but the search, and are safe to open."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.site.filters import page_name
from mergeplan.planner.site.pages import Site

Make = Callable[..., Catalog]
HOSTILE = """MODEL (name shop.apart, kind FULL, owner '<b>x</b>', tags ("</script>"),
  description '<script>alert(1)</script>', column_descriptions (seven = '</script><img src=x onerror=y>'));
SELECT '</pre><script>x</script>' AS seven"""

WIDE = "MODEL (name shop.daily, kind FULL);\nSELECT price, 1 AS more FROM shop.items WHERE id > day"


def blocks(page: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)


def pages(catalog: Catalog) -> list[str]:
    site = Site(catalog)
    return [site.index(), site.unused(), *map(site.model, catalog.models), Site(catalog, single=True).index()]


def test_a_models_page_has_its_columns_with_links(catalog: Make) -> None:
    page = Site(catalog()).model("shop.daily")

    assert '<td><code>price</code></td><td data-label="Type"><span class="type">int</span></td>' in page
    assert '<a href="shop.items.html"><code>shop.items</code></a> <code>price</code>' in page
    assert '<a href="shop.total.html"><code>shop.total</code></a> <code>total</code>' in page
    assert "not_null" in page
    assert '<span class="k">BETWEEN</span> <span class="v">@start_date</span>' in page
    assert "The query as Spark runs it" in page


def test_the_index_lists_every_model_by_schema_and_knows_the_columns(catalog: Make) -> None:
    page = Site(catalog()).index()

    listed = re.findall(r'<li><div class="what"><a href="models/([^"]+)\.html">', page)
    assert listed == ["shop.apart", "shop.daily", "shop.items", "shop.shown", "shop.total"]
    assert '"columns": [["seven"], ["id"], ["price"], ["day"], ["total"]]' in page
    assert '"models": [[0], [1, 2, 3], [1, 3, 2], [4], [4]]' in page


def test_every_link_of_the_site_leads_to_a_page_of_it(catalog: Make) -> None:
    made = catalog()
    site, files = Site(made), {f"{page_name(name)}.html" for name in made.models}

    for name in made.models:
        links = set(re.findall(r'href="([^"#]+)', site.model(name)))
        assert links - {"../index.html"} <= files
    assert set(re.findall(r'href="models/([^"]+)"', site.index())) == files


def test_every_link_of_a_single_file_leads_to_a_part_of_it(catalog: Make) -> None:
    page = Site(catalog(), single=True).index()

    targets = {link for link in re.findall(r'href="#([^"]*)"', page) if not link.startswith("q=")}
    assert targets <= set(re.findall(r'id="([^"]+)"', page))
    assert not re.findall(r'href="[^#]', page)


def test_pages_load_and_send_nothing_and_their_policy_knows_style_and_script(catalog: Make) -> None:
    for page in pages(catalog()):
        policy = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)[0].replace("&#39;", "'")
        hashes = [b64encode(hashlib.sha256(text.encode()).digest()).decode()
                  for text in (*blocks(page, "style"), *blocks(page, "script"))]  # fmt: skip

        assert "default-src 'none'" in policy
        assert all(f"'sha256-{digest}'" in policy for digest in hashes)
        assert not re.search(r"<link|<iframe|<form|\ssrc=|@import|url\(|\sstyle=|\son\w+=", page)


def test_what_a_project_says_is_never_markup(catalog: Make) -> None:
    for page in pages(catalog(apart=HOSTILE)):
        assert not re.search(r"<b>x|<img|alert\(1\)</script>", page)
        assert page.count("<script") == page.count("</script>") == (2 if 'id="words"' in page else 0)


def test_text_that_turns_the_direction_is_taken_out(catalog: Make) -> None:
    text = "MODEL (name shop.apart, kind FULL, description 'a\u202eb\u2066c');\nSELECT 7 AS seven"
    page = Site(catalog(apart=text)).model("shop.apart")

    assert '<p class="description">abc</p>' in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page)


def test_a_drawing_is_well_formed_and_shows_two_steps(catalog: Make) -> None:
    page = Site(catalog()).model("shop.total")

    drawn = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])  # noqa: S314  # our own page
    texts = [text.text for text in drawn.iter("text")]
    assert {"shop.items", "shop.daily", "shop.total", "shop.shown"} <= set(texts)
    assert len(list(drawn.iter("path"))) == 3


def test_an_unused_column_is_marked_and_listed(catalog: Make) -> None:
    site = Site(catalog(daily=WIDE))

    assert site.model("shop.daily").count('class="badge unused"') == 1
    assert '<a href="models/shop.daily.html"><code>shop.daily</code></a></td>' in site.unused()
    assert "<code>more</code>" in site.unused()
    assert "1 unused column<" in site.index()


def test_a_file_that_cannot_be_opened_is_named_on_the_index(catalog: Make) -> None:
    made = catalog({"models/apart.sql": "MODEL (name shop.apart, kind FUL);\nSELECT 7 AS seven"})
    page = Site(made).index()

    assert "Not in the catalog: <code>shop.apart</code> <code>models/apart.sql:1</code>" in page
    assert "unused.html" not in page


@pytest.mark.parametrize(
    ("model", "safe"),
    [("shop.orders", True), ("lake.shop.orders", True), ("shop.a b", False), ("shop.x/../y", False), ("index", False),
     ("shop." + "x" * 200, False), ("shop.ü", False), ("shop.", False)],
)  # fmt: skip
def test_a_page_has_a_name_that_is_safe_in_a_path(model: str, safe: bool) -> None:
    assert (page_name(model) == model) is safe
    assert re.fullmatch(r"[a-z0-9_][a-z0-9_.-]{0,150}", page_name(model))
