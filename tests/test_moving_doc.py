"""Every sentence of docs/tutorials/moving.md by which something is refused is one that a file of a project gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SURROUNDING = ROOT / "tests/planner/apply/backfill/test_before_after_all.py"  # what is refused when a plan is applied
SENTENCES = re.findall(r"^\|.*\| ``(.+?)`` \|", (ROOT / "docs/tutorials/moving.md").read_text(), flags=re.MULTILINE)
# `tests/planner/project/test_loader.py` opens each of these projects, and gets what it expects.
EXPECTED = [
    *(case.read_text().partition("=== ")[0] for case in (ROOT / "tests/projects/bad").glob("*.txt")),
    SURROUNDING.read_text(),
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_is_refused_is_refused_in_these_words(sentence: str) -> None:
    assert any(sentence in expected for expected in EXPECTED)


def test_the_page_has_its_table() -> None:
    assert len(SENTENCES) > 15
