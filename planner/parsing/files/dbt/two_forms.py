"""The two forms of an incremental model, that of its first run and that of later ones, as one query."""

from __future__ import annotations

from sqlglot import exp, parse
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.nodes import DbtNode
from mergeplan.planner.parsing.sql.tokens import SourceText, parse_tokens, tokenize

SPARK = Dialect.get_or_raise("spark")


def later_reads_itself(node: DbtNode) -> bool:
    """True for a later form that names the node's own table, whatever stands before the name; in doubt too."""
    try:
        trees = parse(node.later, dialect="spark")
    except SqlglotError:
        return True
    own = node.table.rpartition(".")[2]
    return any(table.name.lower() == own for tree in trees if tree for table in tree.find_all(exp.Table))


def first_or_later(node: DbtNode) -> str:
    """The query of a first run while the table has no rows, and that of a later run from then on.

    Both stand in one query, so that an edit of either is an edit of the model.
    """
    first, later = node.text.strip().rstrip(";"), node.later.strip().rstrip(";")
    if is_alike(first, later):
        return first
    _check_query(node, first, "of a first run, where `is_incremental()` is false,")
    _check_query(node, later, "of later runs, where `is_incremental()` is true,")
    filled = f"EXISTS (SELECT 1 FROM {node.table})"
    return (
        f"SELECT * FROM (\n{first}\n) AS first_run WHERE NOT {filled}\n"
        f"UNION ALL\nSELECT * FROM (\n{later}\n) AS later_run WHERE {filled}"
    )


def is_alike(first: str, later: str) -> bool:
    """True for two texts that are one query: comments and white space aside."""
    try:
        words = [[text[at.start : at.end + 1] for at in SPARK.tokenize(text)] for text in (first, later)]
    except SqlglotError:
        return first.strip() == later.strip()
    return words[0] == words[1]


def _check_query(node: DbtNode, query: str, when: str) -> None:
    """ProjectError for one that is no SQL by itself: in a query of both forms, it would be wrong at another place."""
    source = SourceText(node.path, query, "spark")
    parse_tokens(source, tokenize(source), f"The query {when}")
