"""Tokens that replace a macro: made from values and from SQL, and back to text."""

import re
from collections.abc import Mapping, Sequence
from datetime import date

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.parsing.sql.spark_text import join_quotes
from mergeplan.planner.parsing.sql.tokens import CLOSE, OPEN, SourceText, Tokens
from mergeplan.planner.parsing.sql.user_macros import Variable
from mergeplan.planner.semantics.spark.spark_sql import SPARK

Piece = list[Token]  # one value, column, table, condition, statement
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_AS_WRITTEN = tuple(kind for kind in TokenType if kind.name.endswith("_STRING") or kind is TokenType.HINT)
_LEVELS = {
    "OR": 1, "AND": 2, "NOT": 3,
    "EQ": 4, "NEQ": 4, "LT": 4, "GT": 4, "LTE": 4, "GTE": 4, "IN": 4, "LIKE": 4, "ILIKE": 4, "RLIKE": 4, "BETWEEN": 4,
    "IS": 4, "NULLSAFE_EQ": 4, "DPIPE": 5, "PIPE": 5, "AMP": 5, "CARET": 5, "PLUS": 6, "DASH": 6, "STAR": 7,
    "SLASH": 7, "PERCENT": 7, "DIV": 7, "MOD": 7, "DCOLON": 8, "L_BRACKET": 8, "DOT": 8,
}  # fmt: skip


def make_token(kind: TokenType, text: str, first: Token, last: Token) -> Token:
    return Token(kind, text, first.line, last.col, first.start, last.end, list(first.comments))


def tokens_of(sql: str, dialect: str, first: Token, last: Token) -> Piece:
    """Return SQL as tokens at the position of those from `first` to `last`; raise ValueError if it has none."""
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except TokenError as error:
        raise ValueError(str(error)) from None
    tokens = fuse_macros(join_quotes(tokens, sql) if dialect in SPARK else tokens)
    return [make_token(token.token_type, token.text, first, last) for token in tokens]


def value_tokens(value: Variable, dialect: str, first: Token, last: Token) -> Piece:
    if value is None:
        return [make_token(TokenType.NULL, "NULL", first, last)]
    if isinstance(value, bool):
        return [make_token(TokenType.TRUE if value else TokenType.FALSE, str(value).upper(), first, last)]
    if isinstance(value, str | date):
        return [make_token(TokenType.STRING, str(value), first, last)]
    if isinstance(value, int | float):
        number = [make_token(TokenType.NUMBER, repr(abs(value)), first, last)]
        if value >= 0:
            return number
        opening = make_token(TokenType.L_PAREN, "(", first, last)
        closing = make_token(TokenType.R_PAREN, ")", first, last)
        return [opening, make_token(TokenType.DASH, "-", first, last), *number, closing]
    return tokens_of(_literal_tree(value).sql(dialect), dialect, first, last)


def _literal_tree(value: Variable) -> exp.Expr:
    if isinstance(value, Mapping):
        keys = [_literal_tree(str(key)) for key in value]
        values = [_literal_tree(element) for element in value.values()]
        return exp.Map(keys=exp.Array(expressions=keys), values=exp.Array(expressions=values))
    if isinstance(value, tuple | list):
        return exp.Array(expressions=[_literal_tree(element) for element in value])
    return exp.convert(str(value) if isinstance(value, date) else value)


def text_of(source: SourceText, tokens: Tokens) -> str:
    out = ""
    for index, token in enumerate(tokens):
        previous = tokens[index - 1] if index else None
        if previous is not None and _needs_space(previous, token):
            out += " "
        out += _token_text(source, token)
    return out


def _token_text(source: SourceText, token: Token) -> str:
    if token.token_type is TokenType.STRING:
        return str(exp.Literal.string(token.text).sql(source.dialect))
    if token.token_type is TokenType.IDENTIFIER:
        return str(exp.to_identifier(token.text, quoted=True).sql(source.dialect))
    if token.token_type in _AS_WRITTEN:
        return source.text[token.start : token.end + 1]
    return token.text


def _needs_space(before: Token, token: Token) -> bool:
    """Return True if a space belongs between two tokens: not if they touch in the file, or at brackets in a macro."""
    if before.start == token.start:
        tight = (TokenType.DOT, TokenType.L_PAREN, TokenType.COMMA, TokenType.R_PAREN, TokenType.PARAMETER)
        return token.token_type not in tight[:4] and before.token_type not in (tight[0], tight[1], tight[4])
    return before.end + 1 != token.start


def add_brackets(piece: Piece, before: Token | None, after: Token | None) -> Piece:
    """Return the piece, in brackets if an adjacent operator would bind more tightly than its own."""
    weakest = _weakest_level(piece)
    if weakest is None:
        return piece
    left_level, right_level = (_LEVELS.get(t.token_type.name) if t else None for t in (before, after))
    torn = (left_level is not None and weakest <= left_level and not weakest == left_level <= 2) or (
        right_level is not None and (weakest < right_level or weakest == right_level == 4)
    )
    if not torn:
        return piece
    first, last = piece[0], piece[-1]
    opening, closing = make_token(TokenType.L_PAREN, "(", first, first), make_token(TokenType.R_PAREN, ")", last, last)
    return [opening, *piece, closing]


def _weakest_level(piece: Piece) -> int | None:
    """Return the level of the operator that binds least, ignoring those in brackets and CASE."""
    depth, weakest = 0, None
    for token in piece:
        kind = token.token_type
        if depth == 0 and kind in (TokenType.SELECT, TokenType.WITH, TokenType.ALIAS, TokenType.COMMA):
            return None
        level = _LEVELS.get(kind.name) if depth == 0 else None
        if level is not None and level < 8:
            weakest = level if weakest is None else min(weakest, level)
        depth += (kind in (*OPEN, TokenType.CASE)) - (kind in (*CLOSE, TokenType.END))
    return weakest


def join_pieces(pieces: Sequence[Piece], first: Token, last: Token) -> Piece:
    out: Piece = []
    for piece in pieces:
        if out:
            out.append(make_token(TokenType.COMMA, ",", first, last))
        out += piece
    return out


def fuse_macros(tokens: Tokens) -> Piece:
    """Return the tokens with each macro's name in one: `@name`, `@'text'`, and a name with macros as `col_@{x}`."""
    if not any("@" in token.text for token in tokens):
        return [*tokens]
    out: Piece = []
    index = 0
    while index < len(tokens):
        token, end, text = tokens[index], index + 1, ""
        is_doubled = index > 0 and tokens[index - 1].text == "@" and _is_adjacent(tokens, index - 1)
        if token.text == "@" and not is_doubled and _is_adjacent(tokens, index):
            following = tokens[index + 1]
            if following.token_type is TokenType.STRING:
                out.append(make_token(TokenType.PARAMETER, f"@'{following.text}", token, following))
                index += 2
                continue
            text, end = _macro_name(tokens, index)
        elif token.token_type is TokenType.VAR and "@" in token.text[1:]:
            text = re.sub(r"@(\w+)", r"@{\1}", token.text)  # some dialects read `@` as a letter
        if not text:
            out.append(token)
            index += 1
            continue
        first = out[-1] if out else None
        if first is not None and first.end + 1 == token.start and _is_name_part(first):
            out.pop()
            token, text = first, first.text + (text if "{" in text else f"@{{{text[1:]}}}")
        while end < len(tokens) and _is_adjacent(tokens, end - 1) and "{" in text and _is_name_part(tokens[end]):
            text += tokens[end].text
            end += 1
        out.append(make_token(TokenType.VAR, text, token, tokens[end - 1]))
        index = end
    return out


def _macro_name(tokens: Tokens, index: int) -> tuple[str, int]:
    following = tokens[index + 1]
    if _NAME.fullmatch(following.text) and following.token_type not in _QUOTED:
        return f"@{following.text}", index + 2
    closed = index + 3 < len(tokens) and tokens[index + 3].text == "}" and _NAME.fullmatch(tokens[index + 2].text)
    return (f"@{{{tokens[index + 2].text}}}", index + 4) if following.text == "{" and closed else ("", index)


def _is_adjacent(tokens: Tokens, index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index].end + 1 == tokens[index + 1].start


def _is_name_part(token: Token) -> bool:
    """Return True for a part of a name: a word, a keyword or a number, or a name with a macro in it."""
    return token.token_type not in _QUOTED and re.fullmatch(r"(\w|@\{\w+\})+", token.text) is not None
