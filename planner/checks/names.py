"""Ambiguous columns: a name that several tables of one FROM have, which Spark rejects."""

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from mergeplan.planner.naming import qualify_table

# Where an output's name is looked up before the tables' columns, or a name may be a lambda's own.
_ELSEWHERE = (exp.Order, exp.Sort, exp.Having, exp.Qualify, exp.Cluster, exp.Distribute, exp.Lambda, exp.Join)


def ambiguous_column(tree: exp.Expr, schemas: Mapping[str, frozenset[str]]) -> tuple[str, tuple[str, ...]] | None:
    """Return an unqualified column that certainly is in several sources, with these sources; None if there is none."""
    try:
        return next(
            (ambiguity for scope in traverse_scope(tree) if (ambiguity := _find_ambiguous(scope, schemas))), None
        )
    except SqlglotError:
        return None


def _find_ambiguous(scope: Scope, schemas: Mapping[str, frozenset[str]]) -> tuple[str, tuple[str, ...]] | None:
    select = scope.expression
    if not isinstance(select, exp.Select) or select.args.get("laterals"):
        return None
    joins = select.args.get("joins") or []
    if any(join.method == "NATURAL" for join in joins):
        return None
    hidden = {join.alias_or_name for join in joins if {join.kind, join.side} & {"SEMI", "ANTI"}}
    shared = {identifier.name.lower() for join in joins for identifier in join.args.get("using") or ()}
    read = {name: source for name, (_, source) in scope.selected_sources.items() if name not in hidden}
    sources = {name: _source_columns(source, schemas) for name, source in read.items()}
    for column in scope.columns:
        name = column.name.lower()
        if column.table or name in shared or column.find_ancestor(*_ELSEWHERE, exp.Select) is not select:
            continue
        having = tuple(sorted(source_name for source_name, columns in sources.items() if name in columns))
        if len(having) > 1:
            return name, having
    return None


def _source_columns(source: object, schemas: Mapping[str, frozenset[str]]) -> frozenset[str]:
    if isinstance(source, exp.Table):
        return schemas.get(qualify_table(source.catalog, source.db, source.name).lower(), frozenset())
    if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
        return frozenset(name.lower() for name in source.expression.named_selects)
    return frozenset()
