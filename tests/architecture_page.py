"""The lists of files in docs/development/architecture.md; written by `python -m tests.architecture_page`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "development" / "architecture.md"
LISTS = re.compile(r"<!-- files of (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def page() -> str:
    """The page as it should be: each list has a line for every file of its folder."""
    return LISTS.sub(lambda found: listed(found[1]), PAGE.read_text(encoding="utf-8"))


def listed(folder: str) -> str:
    """One list; a folder below without a list of its own is part of it."""
    own = set(LISTS.findall(PAGE.read_text(encoding="utf-8"))) - {folder}
    files = [
        path
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "__init__.py" and "versions" not in path.parts
        if not any(path.is_relative_to(ROOT / each) for each in own if each.startswith(f"{folder}/"))
        if folder not in ("planner", "bot", "mergeplan") or path.parent == ROOT / folder
    ]
    lines = [f"| `{path.relative_to(ROOT / folder).with_suffix('')}` | {first_sentence(path)} |" for path in files]
    return "\n".join([f"<!-- files of {folder} -->", "| File | What it is |", "|---|---|", *lines, "<!-- end -->"])


def first_sentence(path: Path) -> str:
    """The first line of a file's docstring."""
    line = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
    return line.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
