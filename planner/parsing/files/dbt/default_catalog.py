"""Tables of the default catalog, written without it if the project's files name it differently than Spark."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices


def drop_catalog(text: str, catalog: str) -> str:
    """Return a query whose tables are named without this catalog; return an unreadable query unchanged."""
    if not catalog or catalog.lower() not in text.lower():
        return text
    try:
        trees = [tree for tree in SPARK.parse(text) if tree is not None]
    except (SqlglotError, RecursionError):
        return text
    named = [table.parts for tree in trees for table in tree.find_all(exp.Table) if table.catalog.lower() == catalog]
    placed = [parts for parts in named if all("start" in part.meta for part in parts[:2])]
    starts = [(int(parts[0].meta["start"]), int(parts[1].meta["start"])) for parts in placed]
    return apply_splices(text, [Splice(start, end, "") for start, end in starts])
