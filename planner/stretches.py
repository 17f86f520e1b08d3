"""What of a query comes out otherwise when a table that is filled by stretches of time is filled in other stretches.

A table that was filled day by day is filled in one go when it is built anew. What is computed from rows of one moment
of the time column alone is the same either way; what looks further is not: a window or a GROUP BY without the time
column, a stretch's own dates in an output, a subquery over the stretch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from planner.functions import folds_rows


def looking_further(tree: exp.Query, time_column: str) -> Iterator[exp.Expr]:
    """The nodes of a qualified query that look beyond one moment of its time column."""
    if not _has_dates(tree):
        return  # it reads all time there is, whatever the stretch
    times = _times(tree, time_column)
    for scope in traverse_scope(tree):
        select = scope.expression
        if not isinstance(select, exp.Select) or not _is_stretched(scope):
            continue
        if scope.is_subquery:
            yield select
        yield from (date for output in select.selects for date in output.find_all(exp.Parameter) if _is_date(date))
        own = _own_times(select, times)
        yield from (w for w in scope.find_all(exp.Window) if not _stays(w.args.get("partition_by") or (), own))
        if _mixes_times(select, own):
            yield select


def _mixes_times(select: exp.Select, times: Collection[exp.Expr]) -> bool:
    """True when rows of several moments become one row."""
    if group := select.args.get("group"):
        return not _stays(group.expressions, times)
    distinct = select.args.get("distinct") and not _stays([output.unalias() for output in select.selects], times)
    return bool(distinct) or any(map(folds, select.selects))


def folds(projection: exp.Expr) -> bool:
    """True when the projection holds an aggregate of its own query: neither windowed nor inside a subquery.

    `SUM(x) OVER ()` folds nothing, `SUM(SUM(x)) OVER ()` and `RANK() OVER (ORDER BY COUNT(*))` do.
    """
    nodes = list(projection.walk(prune=lambda node: isinstance(node, exp.Query)))
    windowed = {id(_windowed(node)) for node in nodes if isinstance(node, exp.Window)}
    return any(id(node) not in windowed and folds_rows(node) for node in nodes)


def _windowed(window: exp.Window) -> exp.Expr:
    """The function that a window applies."""
    node: exp.Expr = window.this
    while isinstance(node, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)):
        node = node.this
    return node


def _has_dates(tree: exp.Expr) -> bool:
    return any(map(_is_date, tree.find_all(exp.Parameter)))


def _is_date(node: exp.Parameter) -> bool:
    return str(node.name).startswith(("start_", "end_"))


def _is_stretched(scope: Scope) -> bool:
    """True when the stretch decides which rows the query sees, by itself or by a query that it reads."""
    sources = (source for source in scope.sources.values() if isinstance(source, Scope))
    return _has_dates(scope.expression) or any(map(_is_stretched, sources))


def _times(tree: exp.Query, time_column: str) -> set[str]:
    """The names under which the time column is known: its own, and those of the columns that it is computed from."""
    outputs = [output for output in tree.selects if output.alias_or_name == time_column]
    return {time_column, *(column.name for output in outputs for column in output.find_all(exp.Column))}


def _own_times(select: exp.Select, times: Collection[str]) -> set[exp.Expr]:
    """What a query's outputs of these names are computed as."""
    return {
        output.unalias() for output in select.selects if output.alias_or_name in times and output.find(exp.Column)
    } | {exp.column(name) for name in times}


def _stays(parts: Collection[exp.Expr], times: Collection[exp.Expr]) -> bool:
    """True when rows that agree in these expressions agree in their time."""
    names = {each.name for each in times if isinstance(each, exp.Column)}
    return any(part in times or (isinstance(part, exp.Column) and part.name in names) for part in parts)
