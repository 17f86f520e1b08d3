"""Text of a project within the Markdown of a scheduler: it ends no code and begins no link. Standard library only."""

from __future__ import annotations

import re


def code_span(text: str) -> str:
    """Return text as code on one line.

    >>> code_span("s.t"), code_span("a`b")
    ('`s.t`', '``a`b``')
    """
    flat = " ".join(text.split()) or " "
    ticks = "`" * (_count_ticks(flat) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def code_block(text: str, language: str = "") -> str:
    fence = "`" * max(3, _count_ticks(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _count_ticks(text: str) -> int:
    """Return the length of the longest run of back-ticks."""
    return max(map(len, re.findall("`+", text)), default=0)
