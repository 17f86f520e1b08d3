"""A unified diff as lines, each with what it is."""

from __future__ import annotations

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
    shown: list[DiffLine] = []
    for line in lines:
        most -= len(line) + 1
        if most < 0:
            break
        shown.append(DiffLine(_line_kind(line), line))
    return tuple(shown), len(lines) - len(shown)


def _line_kind(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "file"
    return {"+": "add", "-": "del", "@": "at"}.get(line[:1], "")
