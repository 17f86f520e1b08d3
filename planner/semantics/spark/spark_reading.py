"""Corrects a parsed query where sqlglot reads it otherwise than Spark: lambdas, and brackets around subqueries."""

from __future__ import annotations

from sqlglot import exp

from mergeplan.planner.semantics.syntax import clause_keys


def as_spark_reads(tree: exp.Expr) -> exp.Expr:
    """A tree of Spark SQL as Spark reads the same text."""
    for node in reversed(list(tree.find_all(exp.Lambda))):  # inner lambdas first: their variables hide the outer ones
        _bind_variables(node)
    for membership in tree.find_all(exp.In):
        if inner := _inner_subquery(membership):
            membership.set("query", None)
            membership.set("expressions", [inner])
    return tree


def without_double_brackets(tree: exp.Expr) -> exp.Expr:
    """A tree of another dialect, where `IN ((SELECT ...))` is `IN (SELECT ...)`, for Spark, where it is not."""
    for node in tree.find_all(exp.In):
        while inner := _inner_subquery(node):
            node.set("query", inner)
    return tree


def _bind_variables(node: exp.Lambda) -> None:
    """Let each use of a lambda's variable be an identifier, and its fields dots behind it, whatever its case. A
    variable takes precedence over every column, table and function of its name."""
    names = {variable.name.lower() for variable in node.expressions}
    for column in list(node.this.find_all(exp.Column)):
        first, *fields = column.parts
        if first.name.lower() in names:
            value: exp.Expr = first.copy()
            for part in fields:
                value = exp.Dot(this=value, expression=part.copy())
            column.replace(value)


def _inner_subquery(node: exp.In) -> exp.Subquery | None:
    """The inner subquery of `IN ((SELECT ...))`. To Spark it is one value of a list, NULL where it has no rows."""
    query = node.args.get("query")
    inner = query.this if isinstance(query, exp.Subquery) and clause_keys(query) == ["this"] else None
    return inner if isinstance(inner, exp.Subquery) and clause_keys(inner) == ["this"] else None
