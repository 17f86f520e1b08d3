"""docs/reference/api.md says of every endpoint what the OpenAPI document says."""

from __future__ import annotations

from tests.api_page import PAGE, page


def test_the_endpoints_are_those_of_the_document() -> None:
    assert PAGE.read_text() == page(PAGE.read_text()), "python -m tests.api_page"
