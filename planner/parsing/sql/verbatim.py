"""The text of a query that runs: the tokens of the file without comments, not generated from the tree.

The parser's tree is only for judging. Each word must be one that Spark's lexer cuts in the same place, so that Spark
cannot read anything in this text that the parser did not. The words are on the same lines and in the same columns as in
the file.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.sql.token_lists import fuse_macros, make_token
from mergeplan.planner.parsing.sql.tokens import CLOSE, OPEN, SourceText, Tokens, split_commas, tokenize

_WORD = re.compile(r"@?[A-Za-z0-9_]+(?: [A-Za-z]+)*")  # `GROUP BY` is one token of the parser's
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_RAW = re.compile(r"[rR](?:'[^']*'|\"[^\"]*\")")
_HEX = re.compile(r"[xX](?:'[0-9a-fA-F]*'|\"[0-9a-fA-F]*\")")
_HINT = re.compile(r"/\*\+[\w\s,().`]*\*/")
_AS_WRITTEN = {TokenType.STRING: _QUOTED, TokenType.RAW_STRING: _RAW, TokenType.HEX_STRING: _HEX, TokenType.HINT: _HINT}
_SYMBOLS = frozenset("( ) , . [ ] : :: = == <=> <> != < <= > >= + - * / % ~ & | || ^ ! -> => |> ?".split())
_SUFFIXES = frozenset({"L", "S", "Y", "F", "D", "BD"})
_NOT_SPARKS = (exp.SimilarTo, exp.AtTimeZone)  # parsed by sqlglot, but not by Spark
_ENDS = frozenset(
    """FROM WHERE LATERAL HAVING WINDOW QUALIFY LIMIT OFFSET UNION EXCEPT INTERSECT MINUS |>""".split()
) | {"GROUP BY", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY"}


# tokens that begin no value
_BEHIND_LIST = (
    TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.UNION,
    TokenType.R_PAREN,
)  # fmt: skip


class Unwritable(Exception):
    """A token that Spark's lexer would split differently, or does not know."""


def query_text(source: SourceText, tokens: Tokens, tree: exp.Expr) -> str:
    """Return a query as it is written, with the columns of the file, or '' if Spark does not accept it.

    Such a query is generated from its tree: one with `QUALIFY`, with `[1, 2]`, with a token that Spark's lexer splits
    differently, or in another dialect.
    """
    if source.dialect != "spark" or not _is_sparks(tree, tokens):
        return ""
    try:
        return write_tokens(source, tokens)
    except Unwritable:
        return ""


def write_tokens(source: SourceText, tokens: Tokens) -> str:
    """Return a statement's tokens as text that Spark reads as these same tokens; raise Unwritable if it might not."""
    parts, line, previous = list[str](), source.position(tokens[0].start)[0], None
    for first, last, word in _list_words(source, tokens):
        at, column = source.position(first.start)
        lines = at - line
        if previous is None or lines > 0:
            parts.append("\n" * lines + " " * (column - 1))
        elif first.start > previous.end:
            parts.append(" " * (first.start - previous.end - 1))
        elif previous.text != first.text or first.text not in "<>":
            parts.append(" ")  # both come of one macro
        parts.append(word)
        line, previous = line + max(lines, 0) + word.count("\n"), last
    out = "".join(parts)
    if _comparison_keys(fuse_macros(_read_tokens(out))) != _comparison_keys(tokens):
        raise Unwritable
    return out


def without_trailing_commas(tokens: Tokens) -> Tokens:
    """Return the tokens without the comma of `SELECT a, FROM t`, after which Spark would expect another value."""
    followers = [*tokens[1:], None]
    return [
        token
        for token, following in zip(tokens, followers, strict=True)
        if token.token_type is not TokenType.COMMA or not (following is None or following.token_type in _BEHIND_LIST)
    ]


def add_output_names(tokens: Tokens, names: Mapping[int, str]) -> Tokens:
    start = _first_select(tokens) if names else None
    items = split_commas(tokens[start : _list_end(tokens, start)]) if start is not None else []
    if not names or max(names) >= len(items):
        return tokens  # parsing it again shows that a name is missing
    last = {id(items[number][-1]): name for number, name in names.items()}
    out: list[Token] = []
    for token in tokens:
        out.append(token)
        if name := last.get(id(token)):
            out += [
                make_token(TokenType.ALIAS, "AS", token, token),
                make_token(TokenType.IDENTIFIER, name, token, token),
            ]
    return out


def _is_sparks(tree: exp.Expr, tokens: Tokens) -> bool:
    for node in tree.find_all(exp.Select, exp.Between, *_NOT_SPARKS):
        if isinstance(node, _NOT_SPARKS) or node.args.get("symmetric") or node.args.get("qualify"):
            return False
        distinct = node.args.get("distinct")
        if isinstance(distinct, exp.Expr) and distinct.args.get("on"):
            return False
    return not any(_opens_list(previous, token) for previous, token in pairwise(tokens))


def _opens_list(before: Token, token: Token) -> bool:
    """Return True for `[1, 2]` and `MAP {...}`, which are neither subscripts nor Spark SQL."""
    if token.token_type is TokenType.L_BRACE:
        return True
    if token.token_type is not TokenType.L_BRACKET:
        return False
    value = before.token_type in (*CLOSE, TokenType.STRING, TokenType.IDENTIFIER) or _WORD.fullmatch(before.text)
    return not value or before.text.upper() in _BEFORE_VALUES


_BEFORE_VALUES = frozenset("SELECT WHERE AND OR NOT WHEN THEN ELSE IN ON BY DISTINCT ALL HAVING CASE LIKE".split())


def _list_words(source: SourceText, tokens: Tokens) -> Iterator[tuple[Token, Token, str]]:
    """Yield each word with its first and its last token: `1L` is three of them."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        is_cast = index + 2 < len(tokens) and tokens[index + 1].token_type is TokenType.DCOLON
        if is_cast and _is_suffix(suffix := tokens[index + 2]):
            yield token, suffix, _write_word(source, token) + suffix.text
            index += 3
        else:
            yield token, token, _write_word(source, token)
            index += 1


def _is_suffix(token: Token) -> bool:
    return token.token_type is not TokenType.VAR and token.text.upper() in _SUFFIXES


def _write_word(source: SourceText, token: Token) -> str:
    kind, text = token.token_type, token.text
    if kind is TokenType.IDENTIFIER:
        return f"`{text.replace('`', '``')}`"
    if kind in _AS_WRITTEN:
        written = source.text[token.start : token.end + 1]
        if _AS_WRITTEN[kind].fullmatch(written):
            return written
        if kind is TokenType.STRING:  # of a macro
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        raise Unwritable
    text = _join_words(text)
    if not _is_word(text, kind is TokenType.NUMBER):
        raise Unwritable
    return text


@lru_cache(maxsize=8192)
def _is_word(text: str, is_number: bool) -> bool:
    return bool((_NUMBER if is_number else _WORD).fullmatch(text)) or text in _SYMBOLS


@lru_cache(maxsize=8192)
def _join_words(text: str) -> str:
    return " ".join(text.split())


def _comparison_keys(tokens: Tokens) -> list[tuple[TokenType, str]]:
    return [(t.token_type, t.text if t.token_type in _AS_WRITTEN else _join_words(t.text)) for t in tokens]


def _read_tokens(text: str) -> list[Token]:
    try:
        return tokenize(SourceText("", text, "spark"))
    except ProjectError:
        raise Unwritable from None


def _first_select(tokens: Tokens) -> int | None:
    """Return the index of the first output of the query's first SELECT, after WITH and brackets before it, or None."""
    depth, base = 0, 0
    for index, token in enumerate(tokens):
        if depth == base and token.token_type is TokenType.SELECT:
            first = index + 1
            hints_and_words = (TokenType.HINT, TokenType.DISTINCT, TokenType.ALL)
            while first < len(tokens) and tokens[first].token_type in hints_and_words:
                first += 1
            return first
        leads = index == base or tokens[index - 1].token_type is TokenType.R_PAREN  # `WITH c AS (...) (SELECT ...)`
        if depth == base and leads and token.token_type is TokenType.L_PAREN:
            base += 1
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
    return None


def _list_end(tokens: Tokens, start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        token, text = tokens[index], " ".join(tokens[index].text.upper().split())
        if depth == 0 and token.token_type in CLOSE:
            return index
        compares = text == "FROM" and tokens[index - 1].text.upper() == "DISTINCT"  # `a IS DISTINCT FROM b`
        quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if depth == 0 and text in _ENDS and not compares and not quoted:
            return index
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
    return len(tokens)
