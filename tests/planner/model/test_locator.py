"""The place of an identifier in a model's text."""

from __future__ import annotations

import pytest

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model

TEXT = "MODEL (name shop.a,\ngrain total);\n-- total\nSELECT\n  'total' AS x,\n  Total,\nFROM\n  shop.orders"
MODEL = Model("shop.a", Kind.FULL, "models/a.sql", 1, TEXT)


def test_an_identifier_is_found_in_the_query_before_the_block() -> None:
    assert MODEL.locate("total").place == Place("models/a.sql", 6, 3)
    assert MODEL.locate("total", in_block=True).place.line == 2
    assert MODEL.locate("shop.orders").place == Place("models/a.sql", 8, 3)


@pytest.mark.parametrize("text", [TEXT, "SELECT 'an open quote", ""])
def test_what_is_not_found_is_at_the_block(text: str) -> None:
    model = Model("shop.a", Kind.FULL, "models/a.sql", 1, text)

    assert model.locate("nowhere").place == model.place


def test_an_external_table_is_an_item_of_a_file_that_is_no_sql() -> None:
    model = Model("shop.a", Kind.EXTERNAL, "external_models.yaml", 3, "name: shop.a")

    assert model.locate("shop.a").place == model.place


def test_an_error_looks_for_its_place_when_it_is_shown() -> None:
    locator = MODEL.locate("total")
    error = ProjectError("It is wrong.", place=locator)

    assert "place" not in vars(locator)
    assert str(error) == "models/a.sql:6: It is wrong."
    assert vars(locator)["place"] == error.place
