"""Every regular expression takes time in proportion to the text that it meets: no project and no comment stalls it."""

from __future__ import annotations

import pytest

from tests.patterns import FEW, MANY, UsedPattern, slow_text, used_patterns

FOLDERS = ("planner", "bot", "sandbox/mergeplan_sandbox")


def slow_ones(*folders: str, characters: str) -> dict[str, str]:
    """Where a slow pattern is written, and the text that shows it."""
    texts = {pattern.where: slow_text(pattern, characters) for pattern in used_patterns(*folders)}
    return {where: text for where, text in texts.items() if text}


def test_the_patterns_that_meet_sql_are_linear() -> None:
    assert slow_ones("planner/parsing/sql", characters=FEW) == {}


@pytest.mark.prove
def test_all_patterns_are_linear() -> None:
    assert len(list(used_patterns(*FOLDERS))) > 200
    assert slow_ones(*FOLDERS, characters=MANY) == {}


@pytest.mark.parametrize(
    ("text", "anywhere"),
    [(r"\d+\.?\d*", False), (r"\s+as\s+", True), (r"(a|a)*b", False), (r"(\w+\s?)*;", False), (r"x*y*x*z", False)],
)
def test_a_slow_pattern_is_seen(text: str, anywhere: bool) -> None:
    """What `planner/parsing/sql/verbatim.py` read numbers with, and its like."""
    assert slow_text(UsedPattern("here", text, 0, anywhere), FEW)


@pytest.mark.parametrize("text", [r"\d+(?:\.\d*)?", r"[a-z]+ as ", r"(?:a|b)*c", r"(?:\w+\s)*;", r"x*+y*+z"])
def test_a_linear_pattern_is_not_blamed(text: str) -> None:
    assert slow_text(UsedPattern("here", text, 0, anywhere=False), MANY) == ""
