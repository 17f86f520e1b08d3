"""Names of models and tables: `schema.table`, in lower case, and where a query names them."""

from __future__ import annotations

import re

from sqlglot import exp

from planner.errors import Place, ProjectError
from planner.parsing.sql.tokens import SourceText, Tokens

CATALOG = "spark_catalog"
_PART = re.compile(r"[a-z0-9_]+")

_SEVERAL = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack)
_MANY = frozenset({"inline_outer", "json_tuple", "variant_explode", "variant_explode_outer"})


def model_name(text: str, place: Place) -> str:
    """The name in lower case as `schema.table`; ProjectError unless it has two parts of letters, digits and `_`.

    `spark_catalog.schema.table` is the same table, as Spark sees it.
    """
    parts = text.lower().split(".")
    if len(parts) == 3 and parts[0] == CATALOG:
        parts = parts[1:]
    if len(parts) == 3:
        raise ProjectError(f"`{text}`: catalogs other than `{CATALOG}` are not supported yet.", place=place)
    if len(parts) != 2:
        raise ProjectError(f"`{text}` must have the form `schema.table`.", place=place)
    if not all(_PART.fullmatch(part) for part in parts):
        raise ProjectError(f"`{text}` may hold only letters, digits and underscores.", place=place)
    return ".".join(parts)


def name_tables(
    tree: exp.Expr, source: SourceText, tokens: Tokens, temporary: frozenset[str] = frozenset()
) -> set[str]:
    """The tables that a query reads, CTEs and `temporary` views left out.

    Each is rewritten in the tree as `schema.table` in lower case.
    """
    found = set()
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.name.startswith("@"):
            continue  # a table function, or @this_model in an audit
        if isinstance(table.find_ancestor(exp.Hint, exp.Select), exp.Hint):
            continue  # BROADCAST(b) names an alias
        if not table.db and (_is_cte(table) or table.name.lower() in temporary):
            continue
        text = ".".join(part.name for part in table.parts)
        name = model_name(text, _place(text, table, source, tokens))
        schema, short = name.split(".")
        table.set("catalog", None)
        table.set("db", exp.to_identifier(schema))
        table.set("this", exp.to_identifier(short))
        found.add(name)
    return found


def name_outputs(tree: exp.Query) -> dict[int, str]:
    """Give each unnamed output of a query the name `_col_N` (N from 0), or its column's where it is a mere cast of one;
    returns the names that were given, by number.

    Spark would call it after its text, `(2 + 3)`, which no table can have for a column and which changes with a blank.
    What returns several columns (`inline`, `posexplode`, `*`) is left to Spark.
    """
    first = tree
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    given: dict[int, str] = {}
    if not isinstance(first, exp.Select):
        return given
    for number, output in enumerate(first.expressions):
        named = isinstance(output, (exp.Alias, exp.Aliases, exp.Column, exp.Dot)) or output.is_star
        if (
            named
            or isinstance(output, _SEVERAL)
            or (isinstance(output, exp.Anonymous) and output.name.lower() in _MANY)
        ):
            continue
        inner = output
        while isinstance(inner, (exp.Cast, exp.Paren)):
            inner = inner.this
        name = inner.name if isinstance(inner, exp.Column) else f"_col_{number}"
        output.replace(exp.alias_(output.copy(), name, quoted=True))
        given[number] = name
    return given


def table_key(table: exp.Table) -> str:
    """`schema.table` of a table in a tree that `name_tables` has seen; '' for a CTE or a table function."""
    return f"{table.db}.{table.name}" if table.db and isinstance(table.this, exp.Identifier) else ""


def _is_cte(table: exp.Table) -> bool:
    """True when a WITH that is visible here defines the name: an earlier one of the same WITH, or an outer query's."""
    node: exp.Expr | None = table
    inside: exp.Expr | None = None
    while node is not None:
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With):
            for cte in with_.expressions:
                if cte is inside and not with_.recursive:
                    break
                if cte.alias.lower() == table.name.lower():
                    return True
                if cte is inside:
                    break
        inside = node if isinstance(node, exp.CTE) else inside
        node = node.parent
    return False


def _place(text: str, table: exp.Table, source: SourceText, tokens: Tokens) -> Place:
    first = text.split(".")[0].lower()
    at = next((token for token in tokens if token.text.lower() == first), tokens[0])
    return source.place(at)
