"""Functions that Spark calls without parentheses: a column with that name, if there is one, takes precedence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

_FUNCTIONS: Mapping[str, type[exp.Func]] = {  # measured on Spark 4.1; the parser knows some of them as columns
    "current_date": exp.CurrentDate,
    "current_timestamp": exp.CurrentTimestamp,
    "current_time": exp.CurrentTime,
    "current_user": exp.CurrentUser,
    "session_user": exp.SessionUser,
    "user": exp.CurrentUser,
}
_NAMES: Mapping[type[exp.Expr], str] = {kind: name for name, kind in _FUNCTIONS.items() if name != "user"}


def mistakes_keywords(tree: exp.Expr, schemas: Mapping[str, tuple[str, ...] | None]) -> bool:
    """True if a keyword may be a column and Spark and the parser may resolve it differently. Elsewhere keywords that
    the parser takes for columns are replaced by the functions."""
    names = _ColumnNames(tree, schemas)
    doubtful = False
    for node in list(tree.find_all(exp.Column, *_NAMES)):
        bare = isinstance(node, exp.Column) and not node.table
        name = node.name.lower() if bare else _NAMES.get(type(node), "")
        if name not in _FUNCTIONS:
            continue
        around = list(_around(node))
        is_column = any(name in names.of_sources(select) for select in around)
        is_output = any(name in _renamed(select) for select in around)
        # Spark may mean the output's alias or the column here; sqlglot takes the function.
        if (is_output and bare) or (is_column and not bare):
            doubtful = True
        elif bare and not is_column:
            node.replace(_FUNCTIONS[name]())
    return doubtful


def _around(node: exp.Expr) -> Iterator[exp.Select]:
    # Correlated subqueries may refer to columns of every enclosing query.
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _renamed(select: exp.Select) -> set[str]:
    return {each.alias.lower() for each in select.expressions if isinstance(each, exp.Alias)}


class _ColumnNames:
    """The names of the columns that the tables, CTEs and subqueries of a query have."""

    def __init__(self, tree: exp.Expr, schemas: Mapping[str, tuple[str, ...] | None]) -> None:
        self.schemas = schemas
        self.ctes = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
        self.every = {name for columns in schemas.values() for name in columns or ()}
        for query in tree.find_all(exp.Query):
            self.every |= _listed(query)

    def of_sources(self, select: exp.Select) -> set[str]:
        """The columns that a name in a SELECT may refer to; all columns of the query if this is not known."""
        items = [select.args["from_"].this] if select.args.get("from_") else []
        items += [join.this for join in select.args.get("joins") or ()] + list(select.args.get("laterals") or ())
        found: set[str] = set()
        for item in items:
            found |= self._of(item)
        return found

    def _of(self, item: exp.Expr) -> set[str]:
        alias = item.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.columns:
            return {each.name.lower() for each in alias.columns}
        if isinstance(item, exp.Table) and item.db and not item.args.get("pivots"):
            return set(self.schemas.get(f"{item.db}.{item.name}".lower()) or ())
        query = self.ctes.get(item.name.lower()) if isinstance(item, exp.Table) else item.this
        is_known = isinstance(query, exp.Query) and not query.is_star and not item.args.get("pivots")
        return _listed(query) if is_known and query else self.every


def _listed(query: exp.Expr) -> set[str]:
    return (
        {name.lower() for name in query.named_selects} if isinstance(query, (exp.Select, exp.SetOperation)) else set()
    )
