"""The effect of an edit as a line."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mergeplan.planner.lsp.edit_plan import length_text


@pytest.mark.parametrize(
    ("hours", "text"), [(0, ""), (3, "3 hours"), (24, "1 day"), (24 * 7, "7 days"), (36, "2 days")]
)
def test_time_that_is_shorter_than_a_day_is_counted_too(hours: int, text: str) -> None:
    assert length_text(timedelta(hours=hours)) == text
