"""The two forms of an incremental model, for its first run and for later ones, as one query."""

from sqlglot import exp, parse
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from mergeplan.planner.parsing.files.dbt.nodes import DbtNode
from mergeplan.planner.parsing.files.foreign_text import without_end
from mergeplan.planner.parsing.sql.tokens import SourceText, parse_tokens, tokenize
from mergeplan.planner.semantics.two_forms import join_forms

SPARK = Dialect.get_or_raise("spark")


def later_reads_itself(node: DbtNode) -> bool:
    """Return True if the later form names the node's own table, qualified in any way; in doubt too."""
    try:
        trees = parse(node.later, dialect="spark")
    except SqlglotError:
        return True
    bare_name = node.table.rpartition(".")[2]
    return any(table.name.lower() == bare_name for tree in trees if tree for table in tree.find_all(exp.Table))


def first_or_later(node: DbtNode) -> str:
    """Return the query of a first run while the table has no rows, and of a later run from then on."""
    first, later = without_end(node.text), without_end(node.later)
    if is_alike(first, later):
        return first
    _check_query(node, first, "of a first run, where `is_incremental()` is false,")
    _check_query(node, later, "of later runs, where `is_incremental()` is true,")
    return join_forms(first, later, node.table)


def is_alike(first: str, later: str) -> bool:
    """Return True for two texts that are the same query except for comments and white space."""
    try:
        words = [[text[at.start : at.end + 1] for at in SPARK.tokenize(text)] for text in (first, later)]
    except SqlglotError:
        return first.strip() == later.strip()
    return words[0] == words[1]


def _check_query(node: DbtNode, query: str, when: str) -> None:
    """Raise ProjectError for a form that is no SQL by itself: in the joined query, the error would be elsewhere."""
    source = SourceText(node.path, query, "spark")
    parse_tokens(source, tokenize(source), f"The query {when}")
