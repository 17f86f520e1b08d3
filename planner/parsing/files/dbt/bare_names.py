"""Tables that a query names without a schema: they are in the schema of dbt's connection."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices

_READ = re.compile(r"\b(?:FROM|JOIN)\s+(`[^`]+`|\w+)(?![\w`]|\s*[.(])", re.IGNORECASE)
_COMMON = re.compile(r"(`[^`]++`|(?<!\w)\w++)\s++AS\s*\(", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def name_schema(text: str, schema: str) -> str:
    """Return a query with the schema before each unqualified table; return an unreadable query unchanged."""
    if not _reads_bare_names(text):
        return text
    try:
        trees = [tree for tree in SPARK.parse(text) if tree is not None]
    except (SqlglotError, RecursionError):
        return text
    common = {table.alias_or_name.lower() for tree in trees for table in tree.find_all(exp.CTE)}
    starts = [
        int(table.this.meta["start"])
        for tree in trees
        for table in tree.find_all(exp.Table)
        if not table.db and isinstance(table.this, exp.Identifier) and "start" in table.this.meta
        if table.name.lower() not in common and not table.find_ancestor(exp.Lateral, exp.Unnest)
    ]
    return apply_splices(text, [Splice(start, start, f"{schema}.") for start in starts])


def _reads_bare_names(text: str) -> bool:
    """Return True if a query may name a table without a schema that is no common table expression of its own."""
    bare = _COMMENT.sub(" ", text)
    read, common = ({name.strip("`").lower() for name in words.findall(bare)} for words in (_READ, _COMMON))
    return bool(read - common)
