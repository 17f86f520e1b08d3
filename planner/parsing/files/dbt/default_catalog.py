"""Tables of the default catalog as Spark knows it, where the project's files call that otherwise."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.kinds import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices


def drop_catalog(text: str, catalog: str) -> str:
    """A query that names tables without this catalog; one that cannot be read is left as it is."""
    if not catalog or catalog.lower() not in text.lower():
        return text
    try:
        trees = [tree for tree in SPARK.parse(text) if tree is not None]
    except (SqlglotError, RecursionError):
        return text
    parts = [table.parts for tree in trees for table in tree.find_all(exp.Table) if table.catalog.lower() == catalog]
    starts = [(first.meta.get("start"), second.meta.get("start")) for first, second, *_ in parts]
    return apply_splices(text, [Splice(int(start), int(end), "") for start, end in starts if start is not None])
