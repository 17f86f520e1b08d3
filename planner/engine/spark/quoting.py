"""Names and texts as they stand in Spark SQL."""

from __future__ import annotations

from mergeplan.planner.naming import quote_name

__all__ = ["literal", "quote_name"]


def literal(text: str) -> str:
    """A text as a literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
