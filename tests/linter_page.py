"""The tables of docs/reference/linter.md, made from types: `python -m tests.linter_page` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

from mergeplan.planner.catalog.tables import ROWS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "linter.md"
MARKED = re.compile(r"(<!-- tables -->\n).*?(<!-- end -->)", re.DOTALL)
NAMES = {str: "text", int: "integer", bool: "0 or 1"}


def write_page(text: str) -> str:
    """Return the page with the tables as they must be."""
    return MARKED.sub(lambda marks: marks[1] + "\n".join(_table_lines()) + f"\n{marks[2]}", text)


def _table_lines() -> Iterator[str]:
    for row in ROWS:
        columns = {name: hint for name, hint in get_type_hints(row, include_extras=True).items() if name != "table"}
        yield f"**`{row.table}`**: {(row.__doc__ or '').strip()}\n\n| Column | Type | Meaning |\n|---|---|---|"
        for name, hint in columns.items():
            yield f"| `{name}` | {NAMES[hint.__origin__]} | {hint.__metadata__[0]} |"
        yield ""


if __name__ == "__main__":
    PAGE.write_text(write_page(PAGE.read_text("utf-8")), "utf-8")
