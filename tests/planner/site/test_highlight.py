"""Code in pages: coloured by what it is, and still text."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.site.highlight import CODE_MAX, highlight_code
from mergeplan.planner.wording import printable_text


def test_words_comments_texts_numbers_and_macros_have_colours_and_columns_have_none() -> None:
    coloured = highlight_code("SELECT day, name -- the day\nFROM t WHERE x = 'a' AND n > 1 AND day > @start_date")

    spans = re.findall(r'<span class="(.)">([^<]+)</span>', coloured)
    assert [text for style, text in spans if style == "k"] == ["SELECT", "FROM", "WHERE", "AND", "AND"]
    assert [pair for pair in spans if pair[0] != "k"] == [
        ("c", "-- the day"), ("s", "&#39;a&#39;"), ("n", "1"), ("v", "@start_date"),
    ]  # fmt: skip


def test_a_file_of_python_is_coloured_as_python() -> None:
    assert '<span class="k">def</span>' in highlight_code("def f(select): pass", "models/m.py")


def test_a_long_text_has_no_colours() -> None:
    assert "<span" not in highlight_code("SELECT 1 " * CODE_MAX)


@pytest.mark.parametrize("opening", ["/*", "{{", "{%", "'", '"', "`", "--", "'\\\\"])
def test_what_is_opened_again_and_again_and_never_closed_takes_no_longer(opening: str) -> None:
    assert highlight_code(opening * (CODE_MAX // len(opening)))


@given(st.text(st.sampled_from("ab'\"`-/*@{}%<>&\n\\ select1\u202e"), max_size=60), st.sampled_from(["m.sql", "m.py"]))
def test_colours_change_no_text_and_let_no_markup_through(text: str, path: str) -> None:
    coloured = highlight_code(text, path)

    assert html.unescape(re.sub(r'</?span(?: class="[cknsv]")?>', "", coloured)) == printable_text(text)
