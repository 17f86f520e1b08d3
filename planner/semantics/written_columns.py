"""The stars in the text of a query that represent columns."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from mergeplan.planner.semantics.spark.spark_sql import FAILURES, tree_of
from mergeplan.planner.semantics.syntax import is_star_of_count


@lru_cache(maxsize=1024)
def has_star_over(sql: str, table: str) -> bool:
    """Return True if a `*` of the query may represent columns of the table; the one of COUNT(*) represents none."""
    if "*" not in sql:
        return False
    try:
        tree = tree_of(sql)
    except FAILURES:
        return False
    return any(_may_cover(star, tree, table) for star in tree.find_all(exp.Star) if not is_star_of_count(star))


def _may_cover(star: exp.Star, tree: exp.Expr, table: str) -> bool:
    column = star.parent
    qualifier = column.table.lower() if isinstance(column, exp.Column) else ""
    select = star.find_ancestor(exp.Select)
    # a star over a CTE or a subquery may stand for the columns of any table below it
    sources = [
        table_node
        for table_node in (select or tree).find_all(exp.Table)
        if not qualifier or table_node.alias_or_name.lower() == qualifier
    ]
    return not sources or any(
        not table_node.db or f"{table_node.db}.{table_node.name}".lower() == table for table_node in sources
    )
