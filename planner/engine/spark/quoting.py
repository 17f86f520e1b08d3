"""Names and texts as they stand in Spark SQL."""

from __future__ import annotations


def quote_name(name: str) -> str:
    """A name, each of its parts in backquotes."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))


def literal(text: str) -> str:
    """A text as a literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
