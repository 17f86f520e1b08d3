"""The threat model says which test shows what, and each of these tests exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mergeplan.bot.child.planner_process import ALLOWED

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/explanation/threat-model.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_test_that_the_threat_model_names_exists(file: str, test: str) -> None:
    assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8")


def test_every_threat_has_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count(" | ") == 2]
    threats = [row for row in rows if "tests/" in row or row.split(" | ")[0] not in ("| Actor", "| Threat", "| Asset")]
    without = [row for row in threats if "tests/" not in row and not row.startswith("| **")]

    assert without == []
    assert len(NAMED) > 30


def test_the_page_on_isolation_lists_every_variable_that_a_planner_gets() -> None:
    page = (ROOT / "docs/explanation/isolation.md").read_text(encoding="utf-8")

    assert [name for name in ALLOWED if f"`{name}`" not in page] == []
