"""Names of models and tables, in lower case, and the places where a query names them.

`schema.table` is a table of the default catalog, also if it is written with that catalog. A table of any other one has
three parts. Names are normalized when a text is read, in its tree and in its words, so that each table has one name.
"""

import re

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.naming import SESSION_CATALOG, parts_of, qualify_table
from mergeplan.planner.parsing.sql.token_lists import make_token, tokens_of
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens
from mergeplan.planner.semantics.keywords import is_keyword

_PART = re.compile(r"[a-z0-9_]+")
_VARIABLE = re.compile(r"@\{?(\w+)")  # in quotes, where a macro would have been a token
_CATALOG_PART = re.compile(r"[a-z0-9_-]+")

_SEVERAL = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack)
_MANY = frozenset({"inline_outer", "json_tuple", "variant_explode", "variant_explode_outer"})


def model_name(text: str, place: Place, catalog: str = SESSION_CATALOG) -> str:
    """Return `[catalog.]schema.table` in lower case; raise ProjectError for more than letters, digits and `_`."""
    parts = text.lower().split(".")
    if len(parts) not in (2, 3):
        raise ProjectError(f"`{text}` must have the form `schema.table`.", place=place)
    outer = _CATALOG_PART.fullmatch(parts[0]) if len(parts) == 3 else True
    if variable := _VARIABLE.search(text):
        hint = "Define it under `variables` in config.yaml."
        raise ProjectError(f"There is no variable `@{variable[1]}`, which `{text}` names.", place=place, hint=hint)
    if not outer or not all(_PART.fullmatch(part) for part in parts[-2:]):
        raise ProjectError(f"`{text}` may hold only letters, digits and underscores.", place=place)
    return without_default(".".join(parts), catalog)


def parse_name(text: str, place: Place, catalog: str = SESSION_CATALOG) -> str:
    """Return the name in a text of YAML, whose parts may be quoted as in any dialect; raise ProjectError."""
    return model_name(re.sub(r'["`\[\]]', "", text), place, catalog)


def without_default(name: str, catalog: str) -> str:
    return name.removeprefix(f"{catalog}.") if name.count(".") == 2 else name


def name_tables(
    tree: exp.Expr, source: SourceText, tokens: Tokens, temporary: frozenset[str] = frozenset()
) -> set[str]:
    """Return the tables that a query reads, each renamed in the tree, without CTEs and `temporary` views."""
    names = set()
    called = {}  # as it is written -> the name
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.name.startswith("@"):
            continue  # a table function, or @this_model in an audit
        if isinstance(table.find_ancestor(exp.Hint, exp.Select), exp.Hint):
            continue  # BROADCAST(b) names an alias
        if not table.db and (is_cte(table) or table.name.lower() in temporary):
            continue
        text = ".".join(part.name for part in table.parts)
        first = text.split(".")[0].lower()
        at = next((token for token in tokens if token.text.lower() == first), tokens[0])
        name = model_name(text, source.place(at), source.catalog)
        called[text.lower()] = name
        set_name(table, name)
        names.add(name)
    if source.catalog == SESSION_CATALOG:  # its columns stay as written, because earlier tables were built that way
        called = {text: name for text, name in called.items() if name.count(".") == 2}
    for column in tree.find_all(exp.Column) if called else ():
        if table_name := called.get(".".join(part.name for part in column.parts[:-1]).lower()):
            for key, word in zip(("catalog", "db", "table"), parts_of(table_name), strict=True):
                column.set(key, exp.to_identifier(word) if word else None)
    return names


def set_name(table: exp.Table, name: str) -> None:
    catalog, schema, short = parts_of(name)
    table.set("catalog", exp.to_identifier(catalog) if catalog else None)
    table.set("db", exp.to_identifier(schema))
    table.set("this", exp.to_identifier(short))


def name_itself(tokens: Tokens, model: str) -> Tokens:
    """Return the words of a model's query with its own name in place of `@this_model`."""
    own_name = TokenType.VAR, "@this_model"
    return [
        part
        for token in tokens
        for part in (
            tokens_of(model, "spark", token, token) if (token.token_type, token.text) == own_name else (token,)
        )
    ]


def name_tokens(tree: exp.Expr, source: SourceText, tokens: Tokens) -> Tokens:
    """Return the words of a query with its tables under their names.

    A name is without the default catalog, and in lower case where case may distinguish tables: outside of Spark's own
    catalog. The tree has not been passed to `name_tables` yet.
    """
    full = {tuple(part.name.lower() for part in table.parts) for table in tree.find_all(exp.Table) if table.db}
    if source.catalog == SESSION_CATALOG:
        full = {parts for parts in full if len(parts) == 3}
    out: list[Token] = []
    index = 0
    while full and index < len(tokens):
        parts = next((candidate for candidate in full if _stands_at(candidate, tokens, index)), ())
        length = max(2 * len(parts) - 1, 1)
        called = tokens[index : index + length]
        if len(parts) == 3 and parts[0] == source.catalog:
            called = called[2:]
        out += [_lower_token(token) for token in called] if parts else called
        index += length
    return out or tokens


def _lower_token(token: Token) -> Token:
    text = token.text.lower()
    return token if token.text == text else make_token(token.token_type, text, token, token)


def _stands_at(parts: tuple[str, ...], tokens: Tokens, index: int) -> bool:
    if index and tokens[index - 1].token_type is TokenType.DOT:
        return False
    pattern = [word for part in parts for word in (part, ".")][:-1]
    span = tokens[index : index + len(pattern)]
    quoted = any(token.token_type is TokenType.STRING for token in span)
    return not quoted and [token.text.lower() for token in span] == pattern


def name_outputs(tree: exp.Query) -> dict[int, str]:
    """Name each unnamed output of a query `_col_N` (N from 0), or as its column if it only casts one.

    Return the new names by number. Spark would call such an output after its text, `(2 + 3)`, which no table can have
    as the name of a column, and which changes with a blank. Outputs with several columns (`inline`, `posexplode`, `*`)
    are left to Spark.
    """
    first = tree
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    names: dict[int, str] = {}
    if not isinstance(first, exp.Select):
        return names
    for number, output in enumerate(first.expressions):
        named = isinstance(output, (exp.Alias, exp.Aliases, exp.Column, exp.Dot)) or output.is_star
        named = named and not is_keyword(output)  # if a function, Spark calls it `current_date()`
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
        comments = output.pop_comments()
        alias = output.replace(exp.alias_(output.copy(), name, quoted=True))
        alias.add_comments(comments)  # a comment beside an output describes the column
        names[number] = name
    return names


def table_key(table: exp.Table) -> str:
    """Return the name of a table in a tree that `name_tables` has seen, or '' for a CTE or a table function."""
    named = table.db and isinstance(table.this, exp.Identifier)
    return qualify_table(table.catalog, table.db, table.name) if named else ""


def is_cte(table: exp.Table) -> bool:
    """Return True if a visible WITH defines the name: an earlier CTE of the same WITH, or one of an outer query."""
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
