"""Find the tables of a query that project code hands to Spark while it runs, so that others can be refused.

Spark's parser and mergeplan's must not see two different queries in one text. Comments are removed. A separate reader
finds the quotes, and they must be where mergeplan's parser finds them. Text that only one of the two could understand
is refused.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.parsing.sql.forbidden_sql import find_forbidden
from mergeplan.planner.parsing.sql.function_calls import find_refused_call
from mergeplan.planner.parsing.sql.spark_registry import function_refusal
from mergeplan.planner.parsing.sql.spark_text import join_quotes

LONGEST = 1_000_000  # characters of a query
FIRST = frozenset({"SELECT", "WITH", "FROM", "VALUES", "("})  # with what a query begins
READING = FIRST - {"("} | {"TABLE", "MAP", "REDUCE"}  # without any of these words no text holds a query
TABLE_FUNCTIONS = frozenset(
    """range explode explode_outer posexplode posexplode_outer inline inline_outer json_tuple stack
    variant_explode variant_explode_outer collations sql_keywords""".split()
)
_PIECES = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)
    |(?P<line>--[^\r\n]*)
    |(?P<hint>/\*\+[\w\s.,()]*\*/)
    |(?P<comment>/\*(?!\+)(?:(?!/\*|\*/).)*\*/)
    |(?P<other>[^'"`/-]|/(?!\*)|-(?!-))""",
    re.DOTALL | re.VERBOSE | re.ASCII,
)
_RAW = re.compile(r"(?<![\w])[rR]$", re.ASCII)
_PLAIN = re.compile(r"[\t\n\r !%-\[\]-z|~]")  # no `$`, `#`, braces or backslash: with these quotes begin for one reader
# `1e-5FROM x`: our parser reads one name, Spark 4.1 three words of which none is FROM. Nothing may rest on that.
_RUNS_ON = re.compile(
    r"(?<!\w)(?:\d++\.\d*+|\.\d++|\d++(?=[eE][+-]\d))(?:[eE][+-]?\d++)?+(?!(?:BD|[DFSLY])\b)[A-Z_]",
    re.ASCII | re.IGNORECASE,
)
_NAME = re.compile(r"`([^`]+)`|([A-Za-z_]\w*)", re.ASCII)


class NotAdmitted(Exception):
    """The message says what is not admitted, and why."""


@dataclass(frozen=True)
class Queried:
    """A text as Spark may be given it, and the names of the tables that it reads, as it writes them."""

    text: str
    tables: frozenset[str] = frozenset()


def parse_query(text: str, functions: Collection[str] = ()) -> Queried:
    """Return a query over tables that calls Spark's functions or `functions`; raise NotAdmitted for others."""
    clean, tokens = _tokenize_text(text)
    if not tokens or tokens[0].text.upper() not in FIRST or _is_quoted(tokens[0], clean):
        word = tokens[0].text if tokens else ""
        raise NotAdmitted(
            f"`spark.sql` accepts only a query here, and `{word[:40]}` does not begin one: a model can only read."
        )
    _check_words(tokens, clean)
    tree = _parse_tree(clean, tokens)
    _check_functions(tokens, tree, functions)
    if not isinstance(tree, exp.Query | exp.Values):
        raise NotAdmitted("`spark.sql` accepts only a query here: a model can only read.")
    return Queried(clean, _list_tables(tree))


def parse_expression(text: str, functions: Collection[str] = ()) -> Queried:
    """Return one expression with the tables that its subqueries read; raise NotAdmitted for any other text."""
    clean, tokens = _tokenize_text(text)
    _check_words(tokens, clean)
    if not any(token.text.upper() in READING and not _is_quoted(token, clean) for token in tokens):
        _check_functions(tokens, None, functions)
        return Queried(clean)
    head = "SELECT "
    tree = _parse_tree(head + clean, join_quotes(Dialect.get_or_raise("spark").tokenize(head + clean), head + clean))
    _check_functions(tokens, tree, functions)
    clauses = {key for key, value in tree.args.items() if value} if isinstance(tree, exp.Select) else set()
    if clauses != {"expressions"} or len(tree.expressions) != 1:
        raise NotAdmitted(f"`{text[:80]}` is not one expression.")
    return Queried(clean, _list_tables(tree))


def table_name(text: str) -> str:
    """Return the name of a table without quotes, as Spark gets it; raise NotAdmitted for any other text."""
    parts, position = [], 0
    while match := _NAME.match(text, position):
        parts.append(match[1] or match[2])
        position = match.end() + 1
        if text[match.end() : position] != ".":
            break
    if position <= len(text) or not parts or any("." in part for part in parts):
        raise NotAdmitted(f"`{text[:80]}` is not the name of a table.")
    return ".".join(parts)


def check_function(name: str, functions: Collection[str] = ()) -> None:
    if refused := function_refusal(name.lower(), functions):
        raise NotAdmitted(" ".join(refused).strip())


def _check_functions(tokens: Sequence[Token], tree: exp.Expr | None, functions: Collection[str]) -> None:
    if refused := find_refused_call(tokens, tree, functions):
        raise NotAdmitted(f"{refused.message} {refused.hint}".strip())


def _tokenize_text(text: str) -> tuple[str, list[Token]]:
    """Return the text with blanks for its comments, and its tokens; raise NotAdmitted if it is ambiguous."""
    if len(text) > LONGEST:
        raise NotAdmitted(f"A query of more than {LONGEST:,} characters is not supported.")
    clean, quotes = _blank_comments(text)
    clean = re.sub(r"(?<![;\s])[;\s]+$", lambda end: " " * len(end[0]), clean)
    try:
        tokens = list(Dialect.get_or_raise("spark").tokenize(clean))
    except (SqlglotError, RecursionError):
        raise NotAdmitted("The query cannot be read.") from None
    if _merge_spans(quotes) != _merge_spans(list(_quote_spans(tokens, clean))):
        raise NotAdmitted("The query's quotes are ambiguous.")
    unquoted = clean
    for first, last in quotes:
        unquoted = unquoted[:first] + " " * (last - first) + unquoted[last:]
    if runs_on := _RUNS_ON.search(unquoted):
        raise NotAdmitted(f"The number `{runs_on[0][:40]}` runs into the name after it: put a space between them.")
    return clean, join_quotes(tokens, clean)


def _blank_comments(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text with blanks in place of comments, and the ranges of its quotes: first character, first after."""
    pieces: list[str] = []
    quotes = []
    position = 0
    while position < len(text):
        match = _PIECES.match(text, position)
        if match is None:
            raise NotAdmitted(
                "A comment or a quoted string of the query is not closed, is nested, or is a hint with quotes."
            )
        piece = match[0]
        if match.lastgroup == "quoted":
            if (
                _RAW.search(text[max(position - 2, 0) : position])
                and text.find(piece[0], position + 1) + 1 != match.end()
            ):
                raise NotAdmitted("A raw string of the query ends in a backslash.")
            quotes.append(match.span())
        elif match.lastgroup in ("line", "comment"):
            if match.lastgroup == "line" and piece.endswith("\\"):
                raise NotAdmitted("A comment of the query ends in a backslash, so Spark continues it in the next line.")
            piece = re.sub(r"[^\r\n]", " ", piece)
        elif match.lastgroup == "other" and not _PLAIN.fullmatch(piece):
            raise NotAdmitted(f"The character {piece!a} is allowed only inside quotes in a query.")
        pieces.append(piece)
        position = match.end()
    return "".join(pieces), quotes


def _merge_spans(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for start, end in spans:
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return ranges


def _quote_spans(tokens: Sequence[Token], text: str) -> Iterator[tuple[int, int]]:
    for token in tokens:
        written = text[token.start : token.end + 1]
        first = min((at for quote in "'\"`" if (at := written.find(quote)) >= 0), default=-1)
        if first >= 0:
            yield token.start + first, token.end + 1


def _is_quoted(token: Token, text: str) -> bool:
    return text[token.start] in "'\"`"


def _check_words(tokens: Sequence[Token], text: str) -> None:
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        _check_word(token, following, text)


def _check_word(token: Token, after: Token | None, text: str) -> None:
    follows = after.text if after is not None else ""
    if _is_quoted(token, text):
        return
    word = token.text.upper()
    if word == "TABLE":
        raise NotAdmitted("`TABLE` in a query hides which table is read: write `SELECT * FROM` instead.")
    if word == "USING" and follows != "(":
        raise NotAdmitted("`USING` runs a program on the machine and is not allowed.")
    if word == "WITH" and follows == "(":
        raise NotAdmitted("`WITH (...)` sets how a table is read and is not allowed.")
    if token.token_type in (TokenType.SEMICOLON, TokenType.PIPE_GT):
        raise NotAdmitted(f"`{token.text}` is not allowed in a query of project code.")


def _parse_tree(text: str, tokens: list[Token]) -> exp.Expr:
    try:
        trees = Dialect.get_or_raise("spark").parser().parse(tokens, text)
    except (SqlglotError, RecursionError):
        raise NotAdmitted("mergeplan cannot parse the query, so it cannot check which tables it reads.") from None
    if len(trees) != 1 or trees[0] is None:
        raise NotAdmitted("Only one query is allowed at a time.")
    if reaches := find_forbidden(trees[0]):
        raise NotAdmitted(reaches[1])
    if odd := trees[0].find(exp.DDL, exp.DML, exp.Command, exp.Into, exp.WithTableHint):
        raise NotAdmitted(f"`{odd.key.upper()}` is not allowed in a query: a model can only read.")
    return trees[0]


def _list_tables(tree: exp.Expr) -> frozenset[str]:
    names = set()
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            name = (table.this.name if isinstance(table.this, exp.Anonymous) else table.this.key).lower()
            is_known = name in TABLE_FUNCTIONS or isinstance(table.this, exp.UDTF | exp.Explode | exp.GenerateSeries)
            if not is_known or table.args.get("db"):
                raise NotAdmitted(
                    f"The table function `{name}` is not allowed: it may read something other than tables."
                )
            continue
        if isinstance(table.find_ancestor(exp.Hint, exp.Query), exp.Hint):
            continue  # the name of one that the query reads elsewhere
        parts = table.parts
        if not parts or not all(isinstance(part, exp.Identifier) for part in parts):
            raise NotAdmitted(f"`{table.sql(dialect='spark')[:80]}` is not the name of a table.")
        if any("." in part.name for part in parts):
            raise NotAdmitted(f"`{table.name[:80]}` is not the name of a table.")
        name = ".".join(part.name for part in parts)
        if name.lower() == "stream":  # `FROM STREAM t` reads t
            raise NotAdmitted("`STREAM` reads an endless stream and is not allowed.")
        if len(parts) > 1 or not _is_defined(table, name.lower()):
            names.add(name)
    return frozenset(names)


def _is_defined(table: exp.Expr, name: str) -> bool:
    inside: exp.Expr | None = None  # the definition of a WITH in which the table stands
    node: exp.Expr | None = table
    while node is not None:
        if isinstance(node, exp.CTE):
            inside = node
        clause = node.args.get("with_") or node.args.get("with")
        if isinstance(clause, exp.With):
            within = inside if inside is not None and inside.parent is clause else None
            for cte in clause.expressions:
                is_own = cte is within
                if is_own and not clause.args.get("recursive"):
                    break
                if cte.alias.lower() == name:
                    return True
                if is_own:
                    break
        node = node.parent
    return False
