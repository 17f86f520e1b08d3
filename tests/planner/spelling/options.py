"""The optional pieces of Spark's grammar: `options.sql`, each line of which stands for many queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_FILE = Path(__file__).parent / "options.sql"


def optional_queries() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every line of the file: its heading, the line, and the queries for which it stands."""
    heading = ""
    for line in _FILE.read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("-- "):
            heading = line.removeprefix("-- ")
        elif line.strip():
            yield heading, line, tuple(dict.fromkeys(_expand(line)))


def _expand(line: str) -> Iterator[str]:
    """Every query of a line."""
    opening = re.search(r"\[\[|\{\{", line)
    if opening is None:
        yield " ".join(line.split())
        return
    end = _closing(line, opening.start())
    inner = line[opening.end() : end]
    choices = [*_split(inner)] if opening[0] == "{{" else ["", inner]
    for choice in choices:
        yield from _expand(line[: opening.start()] + choice + line[end + 2 :])


def _closing(line: str, start: int) -> int:
    depth = 0
    for match in re.finditer(r"\[\[|\{\{|\]\]|\}\}", line[start:]):
        depth += 1 if match[0] in ("[[", "{{") else -1
        if depth == 0:
            return start + match.start()
    raise ValueError(line)


def _split(inner: str) -> Iterator[str]:
    """The choices of `x ;; y`, each with its own brackets."""
    depth, begin = 0, 0
    for match in re.finditer(r"\[\[|\{\{|\]\]|\}\}| ;; ?", inner):
        if not match[0].startswith(" ;;"):
            depth += 1 if match[0] in ("[[", "{{") else -1
        elif depth == 0:
            yield inner[begin : match.start()]
            begin = match.end()
    yield inner[begin:]
