"""What of another tool's query would be taken for a macro of ours."""

from __future__ import annotations

import pytest

from mergeplan.planner.parsing.files.foreign_text import find_macro, is_blank


@pytest.mark.parametrize(
    ("text", "macro"),
    [
        ("select 'a@example.org', \"b@c\", r'@\\d', 'it''s @x', 'it\\'s @y' -- ask @team\n/* @z */", ""),
        ("select a from t where a like '%@%' and b = '@'", ""),
        ("select @start_ds as a\nfrom t", "@start_ds as a"),
        ("select `@name` from t", "@name` from t"),
        ("select a_@{x} from t", "@{x} from t"),
        ("select @'a b' as c", "@' as c"),
        ("select 'never closed, @x", "@x"),
    ],
)
def test_constants_and_comments_hold_no_macros(text: str, macro: str) -> None:
    assert find_macro(text) == macro


def test_a_file_of_comments_has_no_query() -> None:
    assert is_blank("\n-- select 1\n/* select 2 */ ;\n")
    assert not is_blank("-- first\nselect 1")
