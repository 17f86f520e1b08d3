"""A unified diff as lines, each with what it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from mergeplan.planner.wording import printable_text


@dataclass(frozen=True)
class DiffLine:
    """A line of a unified diff: `add`, `del`, `at`, `file` or ''."""

    sort: str
    text: str


def diff_lines(diff: str, most: int) -> tuple[tuple[DiffLine, ...], int]:
    """Return a diff's lines within so many characters, and how many are left out."""
    lines = printable_text(diff).rstrip("\n").split("\n")
    body_start = len(lines) - len(diff_body(lines))
    shown: list[DiffLine] = []
    for number, line in enumerate(lines):
        most -= len(line) + 1
        if most < 0:
            break
        kind = "file" if number < body_start else {"+": "add", "-": "del", "@": "at"}.get(line[:1], "")
        shown.append(DiffLine(kind, line))
    return tuple(shown), len(lines) - len(shown)


def diff_body(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of a file's diff below the names of the file; a removed `-- note` looks like such a name.

    >>> diff_body(["--- a/m.sql", "+++ b/m.sql", "@@ -1 +0 @@", "--- note"])
    ['@@ -1 +0 @@', '--- note']
    """
    has_names = len(lines) > 1 and lines[0].startswith("---") and lines[1].startswith("+++")
    return lines[2:] if has_names else lines
