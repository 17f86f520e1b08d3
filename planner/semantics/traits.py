"""Properties of a query that follow from its text alone, without its parents."""

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, tree_of
from mergeplan.planner.semantics.syntax import is_star_of_count


@dataclass(frozen=True)
class Traits:
    """The properties of a query by its text alone. The defaults apply to a text that cannot be parsed.

    `unnamed`: it may mean columns that it does not name. `by_order`: it may take rows by an order that leaves ties, so
    that the keys of its parents decide its rows. `columns`: those that it names, of any table.
    """

    unnamed: bool = True
    by_order: bool = True
    columns: frozenset[str] = frozenset()


def traits_of(sql: str, memory: ShapeMemory) -> Traits:
    key = memory.key("traits", sql)
    traits = memory.recall(Traits, key)
    if traits is None:
        traits = _read_traits(sql)
        memory.remember(key, traits)
    return traits


@lru_cache(maxsize=8192)
def _read_traits(sql: str) -> Traits:
    try:
        tree = tree_of(sql)
    except FAILURES:
        return Traits()
    columns = frozenset(column.name.lower() for column in tree.find_all(exp.Column))
    return Traits(may_mean_unnamed(tree), takes_rows_by_order(tree), columns)


def takes_rows_by_order(tree: exp.Expr) -> bool:
    """Return True if the query takes rows by an order in which they may have ties."""
    return tree.find(exp.Window, exp.ArgMax, exp.ArgMin) is not None


def may_mean_unnamed(tree: exp.Expr) -> bool:
    """Return True if a query may mean a column of its tables without naming it.

    A star does (COUNT(*) does not), and so do NATURAL JOIN, PIVOT, UNPIVOT, TABLESAMPLE, new names for all columns of a
    table (`t AS a (x, y)`), a table outside FROM and JOIN, a name made by IDENTIFIER(), and the name of a whole table
    in place of a column.
    """
    tables = {table.alias_or_name.lower() for table in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}
    return any(means_unnamed(node, tables) for node in tree.walk())


def means_unnamed(node: exp.Expr, tables: set[str]) -> bool:
    if isinstance(node, exp.Star):
        return not is_star_of_count(node)
    if isinstance(node, exp.Join):
        return str(node.args.get("method") or "").upper() == "NATURAL"
    if isinstance(node, exp.Column):
        return not node.table and node.name.lower() in tables
    if isinstance(node, exp.Table):
        alias = node.args.get("alias")
        return not isinstance(node.parent, exp.From | exp.Join) or bool(alias and alias.columns)
    return isinstance(node, exp.Pivot | exp.TableSample | exp.Columns | exp.Command) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "IDENTIFIER"
    )
