"""Columns that a query certainly takes from a table of which nobody knows the columns, for rows that leave them out."""

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from mergeplan.planner.parsing.sql.names import table_key


def find_read_columns(tree: exp.Expr, table: str) -> set[str]:
    """Return the columns of a table that a query names and that cannot be anything else."""
    return {
        column.name.lower()
        for scope in traverse_scope(tree)
        for column in scope.columns
        if _table_of_column(column, scope) == table and not _may_be_alias(column, scope)
    }


def _table_of_column(column: exp.Column, scope: Scope) -> str:
    """Return the table of a column; '' if a bare name may belong to another source or to an outer query."""
    if column.table:
        return _table_of_source(scope.sources.get(column.table))
    sources = list(scope.selected_sources.values())
    return _table_of_source(sources[0][1]) if len(sources) == 1 and not scope.is_subquery else ""


def _table_of_source(source: object) -> str:
    """Return the table that a source is, or whose columns it passes on by a `*` alone; '' for any other."""
    if isinstance(source, exp.Table):
        return table_key(source)
    if isinstance(source, Scope) and isinstance(source.expression, exp.Select):
        inner = list(source.selected_sources.values())
        is_star = [isinstance(output, exp.Star) for output in source.expression.selects] == [True]
        return _table_of_source(inner[0][1]) if is_star and len(inner) == 1 else ""
    return ""


def _may_be_alias(column: exp.Column, scope: Scope) -> bool:
    """Return True if a bare name may be that of an output that stands before it."""
    node: exp.Expr = column
    while node.parent is not None and node.parent is not scope.expression:
        node = node.parent
    outputs = scope.expression.selects if isinstance(scope.expression, exp.Query) else []
    before = outputs[: node.index] if node.arg_key == "expressions" else outputs
    return not column.table and column.name.lower() in {output.alias.lower() for output in before}
