"""docs/reference/json.md says of every line and key what the contract says."""

from __future__ import annotations

from tests.json_page import PAGE, page


def test_the_tables_are_those_of_the_contract() -> None:
    assert PAGE.read_text() == page(PAGE.read_text()), "python -m tests.json_page"
