"""Names and documents keep to the field's language, and no folder holds over 20 files: `python -m tests.language`."""

from __future__ import annotations

import pytest

from tests.language import (
    clause_docstrings,
    documented_functions,
    folder_sizes,
    function_names,
    idle_names,
    importers,
    is_participle,
    pages,
    parameter_names,
    short_names,
    variable_names,
)

PARTICIPLES = 10.0  # functions of 1,000 that may be named by a participle or a particle
VAGUE_NAMES = 0.0  # assignments and parameters of 1,000 that are called `each`, `found` or `given`
VAGUE_NAMES_OF_TESTS = 2  # as many assignments in all tests: those of the pinned reader in `test_every_property`
PRIVATE_WORDS = 2.0  # of 1,000 words of a page
CLAUSES = 3  # docstrings of 1,000 that open with a clause; ruff holds them to the imperative
DOCUMENTED, ONE_WORD, IDLE_NAMES = 450, 250, 10  # of 1,000 each


@pytest.mark.parametrize(
    ("name", "participle"),
    [("_asked_by", True), ("rendered", True), ("of", True), ("seed_rows", False), ("read_file", False)],
)
def test_a_participle_is_known_by_its_first_word(name: str, participle: bool) -> None:
    assert is_participle(name) is participle


def test_no_more_functions_are_named_by_participles() -> None:
    assert function_names().per_thousand <= PARTICIPLES


def test_no_more_variables_have_names_that_say_nothing() -> None:
    assert variable_names().per_thousand <= VAGUE_NAMES


def test_no_more_parameters_have_names_that_say_nothing() -> None:
    assert parameter_names().per_thousand <= VAGUE_NAMES


def test_no_more_names_of_tests_say_nothing() -> None:
    assert function_names(("tests",)).per_thousand <= PARTICIPLES
    assert variable_names(("tests",)).count <= VAGUE_NAMES_OF_TESTS
    assert parameter_names(("tests",)).count == 0


def test_docstrings_and_names_do_not_get_worse() -> None:
    measures = (clause_docstrings(), documented_functions(), short_names(), idle_names())
    limits = (CLAUSES, DOCUMENTED, ONE_WORD, IDLE_NAMES)

    assert [m.per_thousand <= limit for m, limit in zip(measures, limits, strict=True)] == [True] * 4


def test_a_command_is_a_file_that_the_table_alone_imports() -> None:
    outsiders = {name: files - {"bot/commands/table.py"} for name, files in importers("bot/commands/verbs").items()}

    assert {name: files for name, files in outsiders.items() if files} == {"plan": {"bot/commands/verbs/backfill.py"}}


def test_no_page_uses_more_private_words() -> None:
    measured = {page: round(measure.per_thousand, 1) for page, measure in pages().items()}

    assert {page: rate for page, rate in measured.items() if rate > PRIVATE_WORDS} == {}


def test_no_folder_has_more_than_twenty_files() -> None:
    assert {folder: size for folder, size in folder_sizes().items() if size > 20} == {}
