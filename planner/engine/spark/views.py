"""The SQL of views: the clauses of their creation, and the list of the properties that are ours."""

from collections.abc import Mapping

from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.naming import quote_column

OURS = "mergeplan.properties"


def creation_statement(
    name: str,
    text: str,
    comment: str,
    columns: Mapping[str, str],
    properties: Mapping[str, str],
    *,
    replace: bool = False,
) -> str:
    """Return the statement that creates or replaces a view; `columns` are their comments, by name."""
    listed = ", ".join(f"{quote_column(column)}{comment_clause(words)}" for column, words in columns.items())
    property_clause = properties_clause({**properties, **listing_ours(properties)})
    clauses = f"{f' ({listed})' if listed else ''}{comment_clause(comment)}{property_clause}"
    verb = "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW"
    return f"{verb} {quote_name(name)}{clauses} AS\n{text}"


def comment_clause(text: str) -> str:
    return f" COMMENT {literal(text)}" if text else ""


def properties_clause(properties: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    return f" TBLPROPERTIES ({pairs})" if pairs else ""


def listing_ours(properties: Mapping[str, str]) -> dict[str, str]:
    return {OURS: ",".join(sorted(properties))} if properties else {}
