"""A statement that would take a worker's time, or end its process, is an error at its line; a long one stays linear."""

from __future__ import annotations

from time import process_time

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.sql.tokens import SourceText, parse_tokens, tokenize
from mergeplan.planner.parsing.sql.verbatim import write_tokens


def source(text: str) -> SourceText:
    return SourceText("models/a.sql", f"-- A comment.\n{text}", "spark")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT " + " + ".join(["1"] * 30_000), "has more than 20,000 operators or branches in a row"),
        ("SELECT " + "1, " * 200_000 + "1", "has more than 300,000 words and signs"),
        ("SELECT * FROM " * 20_000 + "(SELECT 1 AS a)", "`SELECT` cannot stand here"),
        ("SELECT " + "(" * 50_000 + "1" + ")" * 50_000, "is nested too deeply to be parsed"),
        ("SELECT " + "NOT " * 50_000 + "TRUE", "is nested too deeply to be parsed"),
    ],
)
def test_a_bomb_is_an_error_at_its_line(text: str, said: str) -> None:
    """`FROM SELECT` a few thousand times ended the process; 100,000 terms took half a minute."""
    bomb = source(text)
    with pytest.raises(ProjectError, match=said) as caught:
        parse_tokens(bomb, tokenize(bomb))

    assert caught.value.place is not None
    assert (caught.value.place.path, caught.value.place.line) == ("models/a.sql", 2)


def test_a_text_is_written_again_in_time_that_its_length_explains() -> None:
    """Each of its words counted the lines before it."""

    text = source("SELECT 1 IN (\n" + ",\n".join(["1234567890"] * 40_000) + ")")
    tokens, started = tokenize(text), process_time()

    assert len(write_tokens(text, tokens)) > 400_000
    assert process_time() - started < 4  # of the processor's time: it took 11 seconds, and takes half of one
