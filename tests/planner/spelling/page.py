"""The published score: the tables of docs/explanation/parser-results.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "parser-results.md"


def score_of_page() -> dict[str, int]:
    """How many pairs are compared of each source."""
    return {name: int(cells[0]) for name, *cells in _rows("Score") if len(cells) == 6 and cells[0].isdigit()}


def rules_of_page() -> set[str]:
    """The rules that excuse a pair whose plans differ."""
    return {name for name, *_cells in _rows("Rules")} - {"Rule"}


def _rows(heading: str) -> Iterator[list[str]]:
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n#")[0]
    for line in section.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("| ").split(" | ")]
