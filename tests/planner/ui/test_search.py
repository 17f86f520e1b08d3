"""The search of the catalog."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.ui.search import HitPage, SearchIndex

Make = Callable[..., Catalog]
FILES = {
    "daily": "MODEL (name shop.daily, kind FULL, owner 'ann', tags (pii), column_descriptions (price = 'in cents'));\n"
    "SELECT id, price FROM shop.items",
    "total": "MODEL (name shop.total, kind FULL, description 'All prices of a daily sheet');\n"
    "SELECT sum(price) AS total FROM shop.daily",
}


def names(page: HitPage) -> list[str]:
    return [hit.model.name for hit in page.hits]


@pytest.mark.parametrize(
    ("query", "models"),
    [
        ("", ["shop.apart", "shop.daily", "shop.items", "shop.shown", "shop.total"]),
        ("daily", ["shop.daily", "shop.total"]),  # a name before a description
        ("PRICE", ["shop.daily", "shop.items", "shop.total"]),  # a column before a description
        ("cents", ["shop.daily"]),
        ("ann", ["shop.daily"]),
        ("tag:pii", ["shop.daily"]),
        ("owner:ann price", ["shop.daily"]),
        ("kind:view", ["shop.shown"]),
        ("column:total", ["shop.shown", "shop.total"]),
        ("schema:shop seven", ["shop.apart"]),
        ("owner:pii", []),
        ("daily nothing", []),
    ],
)
def test_every_word_must_fit_and_the_best_fit_comes_first(catalog: Make, query: str, models: list[str]) -> None:
    assert names(SearchIndex(catalog(**FILES)).find(query, 1, 100)) == models


def test_a_hit_names_the_columns_that_matched(catalog: Make) -> None:
    (hit,) = SearchIndex(catalog(**FILES)).find("cents", 1, 100).hits

    assert hit.columns == ("price",)


def test_hits_are_paged_and_a_page_past_the_end_is_the_last(catalog: Make) -> None:
    index = SearchIndex(catalog(**FILES))
    pages = [index.find("", number, 2) for number in (1, 3, 99)]

    assert [names(page) for page in pages] == [["shop.apart", "shop.daily"], ["shop.total"], ["shop.total"]]
    assert [(page.number, page.pages) for page in pages] == [(1, 3), (3, 3), (3, 3)]
    assert [(page.first, page.last) for page in pages] == [(1, 2), (5, 5), (5, 5)]
