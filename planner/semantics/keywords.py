"""Functions that Spark calls without parentheses: a column with that name, if there is one, takes precedence."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

# Measured on Spark 4.1. It calls no other function by a bare name: `localtimestamp` is always a column.
_FUNCTIONS: Mapping[str, Callable[[], exp.Expr]] = {
    "current_date": exp.CurrentDate,
    "current_timestamp": exp.CurrentTimestamp,
    "current_time": exp.CurrentTime,
    "current_user": exp.CurrentUser,
    "session_user": exp.SessionUser,
    "user": exp.CurrentUser,
    "grouping__id": exp.GroupingId,
}
_TOKENS = (
    TokenType.CURRENT_DATE, TokenType.CURRENT_DATETIME, TokenType.CURRENT_TIME, TokenType.CURRENT_TIMESTAMP,
    TokenType.CURRENT_USER, TokenType.CURRENT_ROLE, TokenType.CURRENT_CATALOG, TokenType.SESSION_USER,
    TokenType.LOCALTIME, TokenType.LOCALTIMESTAMP,
)  # fmt: skip
# clauses whose names refer to outputs first
_BEHIND_OUTPUTS = (exp.Having, exp.Qualify, exp.Order, exp.Sort, exp.Cluster, exp.Distribute)


def bare_as_columns(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with a bare `current_date` as a name: the parser would call it even beside such a column."""
    return [
        Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
        if token.token_type in _TOKENS and (next_token is None or next_token.token_type is not TokenType.L_PAREN)
        else token
        for token, next_token in pairwise([*tokens, None])
        if token is not None
    ]


def is_keyword(node: exp.Expr) -> bool:
    """Return True for a bare name that calls a function unless a column has that name."""
    is_bare = isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
    return is_bare and node.name.lower() in _FUNCTIONS


def mistakes_keywords(tree: exp.Expr, schemas: Mapping[str, tuple[str, ...] | None]) -> bool:
    """Replace keywords that are no columns by functions; return True if one may be either."""
    names = _ColumnNames(tree, schemas)
    doubtful = False
    for node in [column for column in tree.find_all(exp.Column) if is_keyword(column)]:
        is_column = names.has(node)
        doubtful = doubtful or is_column is None
        if is_column is False:
            node.replace(_FUNCTIONS[node.name.lower()]())
    return doubtful


class _ColumnNames:
    """The names of the columns of a query's tables, CTEs and subqueries."""

    def __init__(self, tree: exp.Expr, schemas: Mapping[str, tuple[str, ...] | None]) -> None:
        self.schemas = schemas
        ctes = [(cte.alias.lower(), cte) for cte in tree.find_all(exp.CTE)]
        uses = Counter(name for name, _ in ctes)
        self.ctes = {name: cte for name, cte in ctes if uses[name] == 1}
        self.open: set[str] = set()  # CTEs whose columns are being looked for: a recursive one reads itself

    def has(self, node: exp.Expr) -> bool | None:
        """Return True if a name is a column of the query around it, False if it is not, None in doubt.

        Neither an output nor a column of an outer query takes precedence over the function.
        """
        name, select = node.name.lower(), node.find_ancestor(exp.Select, exp.SetOperation)
        if not isinstance(select, exp.Select):
            return None
        clause = node
        while clause.parent is not None and clause.parent is not select:
            clause = clause.parent
        columns = [self._item_columns(item) for item in _list_tables(select, clause)]
        is_column: bool | None = any(names is not None and name in names for names in columns)
        is_column = None if not is_column and None in columns else is_column
        if isinstance(clause, _BEHIND_OUTPUTS):
            outputs = [
                output for output in select.expressions if output.alias_or_name.lower() == name or output.is_star
            ]
            keeps = bool(outputs) and all(is_keyword(output.unalias()) for output in outputs)
            return is_column if keeps or (is_column is False and not outputs) else None
        if isinstance(clause, (exp.From, exp.Join)) and node.find_ancestor(exp.Pivot, exp.Select) is not select:
            return None
        return is_column

    def _item_columns(self, item: exp.Expr) -> set[str] | None:
        alias = item.args.get("alias")
        if item.args.get("pivots"):
            return None
        if isinstance(alias, exp.TableAlias) and alias.columns:
            return {column.name.lower() for column in alias.columns}
        if isinstance(item, exp.Values):
            return set()  # Spark calls them col1, col2, ...
        if isinstance(item, exp.Table) and item.db:
            columns = self.schemas.get(f"{item.db}.{item.name}".lower())
            return None if columns is None else {*columns}
        if isinstance(item, exp.Table):
            return self._cte_columns(item.name.lower())
        return self._query_columns(item.this) if isinstance(item, exp.Subquery) else None

    def _cte_columns(self, name: str) -> set[str] | None:
        if name not in self.ctes or name in self.open:
            return None
        cte = self.ctes[name]
        if columns := cte.args["alias"].columns:
            return {column.name.lower() for column in columns}
        self.open.add(name)
        try:
            return self._query_columns(cte.this)
        finally:
            self.open.remove(name)

    def _query_columns(self, query: exp.Expr) -> set[str] | None:
        while isinstance(query, (exp.SetOperation, exp.Subquery)):
            query = query.this
        if not isinstance(query, exp.Select):
            return None
        names: set[str] = set()
        for output in query.expressions:
            columns = self._star_columns(query) if output.is_star else {output.alias_or_name.lower()}
            if columns is None or isinstance(output, exp.Aliases):
                return None
            names |= columns
        return names

    def _star_columns(self, select: exp.Select) -> set[str] | None:
        columns = [self._item_columns(item) for item in _list_tables(select, None)]
        narrowed = any(star.args.get(key) for star in select.find_all(exp.Star) for key in ("except_", "rename"))
        return None if narrowed or None in columns else {name for names in columns for name in names or ()}


def _list_tables(select: exp.Select, clause: exp.Expr | None) -> list[exp.Expr]:
    """Return the tables that names of a clause may refer to: in ON, only those up to its join."""
    first = select.args.get("from_")
    items = [first.this] if first and clause is not first else []
    for join in select.args.get("joins") or ():
        if join is clause or (join.kind or "").upper() not in ("SEMI", "ANTI"):
            items.append(join.this)
        if join is clause:
            return items
    for lateral in select.args.get("laterals") or ():
        if lateral is clause:
            return items
        items.append(lateral)
    return items
