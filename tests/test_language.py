"""Names and documents keep to the field's language, and no folder holds over 20 files: `python -m tests.language`."""

from __future__ import annotations

import pytest

from tests.language import folders, function_names, is_participle, pages, variable_names

PARTICIPLES = 50.0  # functions of 1,000 that may be named by a participle or a particle
VAGUE_VARIABLES = 0.0  # assignments of 1,000 to `each`, `found` or `given`
PRIVATE_WORDS = 2.0  # of 1,000 words of a page


@pytest.mark.parametrize(
    ("name", "participle"),
    [("_asked_by", True), ("rendered", True), ("of", True), ("seed_rows", False), ("read_file", False)],
)
def test_a_participle_is_known_by_its_first_word(name: str, participle: bool) -> None:
    assert is_participle(name) is participle


def test_no_more_functions_are_named_by_participles() -> None:
    assert function_names().per_thousand <= PARTICIPLES


def test_no_more_variables_have_names_that_say_nothing() -> None:
    assert variable_names().per_thousand <= VAGUE_VARIABLES


def test_no_page_uses_more_private_words() -> None:
    measured = {page: round(measure.per_thousand, 1) for page, measure in pages().items()}

    assert {page: rate for page, rate in measured.items() if rate > PRIVATE_WORDS} == {}


def test_no_folder_has_more_than_twenty_files() -> None:
    assert folders() == {}
