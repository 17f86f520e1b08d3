"""The SQL of views: what they are created with, and which of their properties are ours."""

from __future__ import annotations

from collections.abc import Mapping

from mergeplan.planner.engine.spark.quoting import literal, quoted

OURS = "mergeplan.properties"


def creation(
    name: str,
    text: str,
    comment: str,
    columns: Mapping[str, str],
    properties: Mapping[str, str],
    *,
    replace: bool = False,
) -> str:
    """The statement that creates a view, or takes the place of one; `columns` are their comments, by name."""
    listed = ", ".join(f"{quoted(column)}{commented(words)}" for column, words in columns.items())
    given = properties_clause({**properties, **listing_ours(properties)})
    verb = "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW"
    return f"{verb} {quoted(name)}{f' ({listed})' if listed else ''}{commented(comment)}{given} AS\n{text}"


def commented(text: str) -> str:
    """` COMMENT 'text'`, or nothing."""
    return f" COMMENT {literal(text)}" if text else ""


def properties_clause(given: Mapping[str, str]) -> str:
    """` TBLPROPERTIES (...)`, or nothing."""
    pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in given.items())
    return f" TBLPROPERTIES ({pairs})" if pairs else ""


def listing_ours(given: Mapping[str, str]) -> dict[str, str]:
    """The property that says which of a view's properties are ours."""
    return {OURS: ",".join(sorted(given))} if given else {}
