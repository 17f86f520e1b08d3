"""Names and texts as Spark SQL writes them."""

from mergeplan.planner.naming import quote_name

__all__ = ["literal", "quote_name"]


def literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
