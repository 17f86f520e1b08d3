"""Tokens of Spark SQL in a form that sqlglot can parse, and the nodes that it makes of them as what was written.

`>>>`, `v:field`, `|> SET`, `|> DROP`, `OVER (CLUSTER BY k)`, `X '1F'`, `MAX RECURSION LEVEL` and `PIVOT (SUM(a) + 1
FOR ...)` are Spark's alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

NESTED = ("ARRAY", "MAP", "STRUCT")
_HEX = re.compile(r"[0-9a-fA-F]*")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PERCENTILE = "PERCENTILE\0"  # a name that the parser does not know, and so keeps with all arguments
_PIVOT = "PIVOT\0"  # around an expression of PIVOT
_PATH = "\0path "  # the key of a subscript that stands for `:field`
# what goes on an expression that begins with a call
_OPERATORS = frozenset({
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DIV, TokenType.MOD, TokenType.DPIPE,
    TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE, TokenType.NULLSAFE_EQ,
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.BETWEEN, TokenType.LIKE,
    TokenType.DCOLON, TokenType.L_BRACKET, TokenType.DOT,
})  # fmt: skip
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


@dataclass
class Readable:
    """Such tokens, and how many of them stand for something else than the parser takes them for."""

    tokens: list[Token]
    shifts: int = 0  # `>>>`, which stand as `>>`
    paths: int = 0  # `v:field`, which stand as subscripts
    calls: int = 0  # that stand with a name which the parser does not know


def readable(tokens: Sequence[Token]) -> Readable:
    """The tokens of one or more statements in a form that sqlglot can parse."""
    result = Readable([])
    types = 0  # open brackets of ARRAY<..., in which `>>>` closes three and `:` stands behind a field's name
    piped, result.calls = _enclose_pivots(list(_without_own_operators(tokens)))
    index = 0
    while index < len(piped):
        token, before = piped[index], piped[index - 1] if index else None
        words = [word.text.upper() for word in piped[index : index + 3]]
        if words == ["MAX", "RECURSION", "LEVEL"]:
            index += 4
            continue
        opens = token.token_type is TokenType.LT and before is not None and before.text.upper() in NESTED
        closes = token.token_type is TokenType.GT and types > 0
        types += opens - closes
        if before and token.token_type is TokenType.STRING and _begins_hex(before) and _HEX.fullmatch(token.text):
            result.tokens[-1] = Token(TokenType.HEX_STRING, token.text, token.line, token.col, before.start, token.end)
        elif not types and before and (end := _path_end(piped, index)):
            result.tokens += _subscript(piped[index:end])
            result.paths += 1
            index = end
            continue
        elif not closes and _third_of_three(result.tokens, token):
            result.shifts += 1
        elif token.token_type is TokenType.CLUSTER_BY and before and before.token_type is TokenType.L_PAREN:
            result.tokens.append(
                _build_token(TokenType.PARTITION_BY, "PARTITION BY", token)
            )  # of a window: it sorts nothing
        elif (
            token.token_type is TokenType.VAR
            and token.text.upper() == "PERCENTILE"
            and _arguments(piped, index + 1) > 2
        ):
            result.tokens.append(_build_token(TokenType.VAR, _PERCENTILE, token))
            result.calls += 1
        else:
            result.tokens.append(token)
        index += 1
    return result


def restore(trees: Sequence[exp.Expr | None], read: Readable) -> list[exp.Expr | None]:
    """The trees, which say what was written; ParseError where it cannot be told from something else."""
    if not read.shifts and not read.paths and not read.calls:
        return list(trees)
    shifts, paths = (list(_nodes(trees, kind)) for kind in (exp.BitwiseRightShift, exp.Bracket))
    paths = [node for node in paths if _is_path(node)]
    if read.shifts and len(shifts) != read.shifts:
        raise _error("`>>` and `>>>` cannot stand in one query: write `shiftrightunsigned(a, b)`")
    if len(paths) != read.paths:
        raise _error("a field after `:` cannot stand here: write `variant_get(v, '$.field')`")
    return [tree and tree.transform(_as_written, bool(read.shifts), copy=False) for tree in trees]


def _nodes(trees: Sequence[exp.Expr | None], kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    return (node for tree in trees if tree for node in tree.find_all(kind))


def _as_written(node: exp.Expr, is_unsigned: bool) -> exp.Expr:
    if is_unsigned and isinstance(node, exp.BitwiseRightShift):
        return exp.Anonymous(this="SHIFTRIGHTUNSIGNED", expressions=[node.this, node.expression])
    if isinstance(node, exp.Bracket) and _is_path(node):
        path = exp.Literal.string(f"${node.expressions[0].name.removeprefix(_PATH)}")
        return exp.Anonymous(this="VARIANT_GET", expressions=[node.this, path])
    if isinstance(node, exp.Anonymous) and node.name == _PERCENTILE:
        node.set("this", "PERCENTILE")
    if isinstance(node, exp.Anonymous) and node.name == _PIVOT:
        (value,) = node.expressions
        return value if isinstance(value, exp.Expr) else node
    return node


def _error(message: str) -> ParseError:
    return ParseError.new(message, description=message)


def _is_path(node: exp.Expr) -> bool:
    return len(node.expressions) == 1 and node.expressions[0].is_string and node.expressions[0].name.startswith(_PATH)


def _path_end(tokens: Sequence[Token], index: int) -> int:
    """Where the path ends that begins with the colon at `index`; 0 when none does."""
    before = tokens[index - 1]
    named = before.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET)
    if tokens[index].token_type is not TokenType.COLON or not named:
        return 0
    end = _part_end(tokens, index + 1)
    while end and (more := _further_part_end(tokens, end)):
        end = more
    return end


def _part_end(tokens: Sequence[Token], index: int) -> int:
    """Behind a name, or a subscript by a number or a text; 0 where neither is."""
    kinds = [token.token_type for token in tokens[index : index + 3]]
    if kinds[:1] == [TokenType.L_BRACKET]:
        inside = kinds[1:2] in ([TokenType.NUMBER], [TokenType.STRING])
        return index + 3 if inside and kinds[2:] == [TokenType.R_BRACKET] else 0
    is_word = bool(kinds) and kinds[0] is not TokenType.STRING and _WORD.fullmatch(tokens[index].text)
    return index + 1 if is_word else 0


def _further_part_end(tokens: Sequence[Token], index: int) -> int:
    kind = tokens[index].token_type if index < len(tokens) else None
    if kind is TokenType.DOT:
        return _part_end(tokens, index + 1)
    return _part_end(tokens, index) if kind is TokenType.L_BRACKET else 0


def _subscript(path: Sequence[Token]) -> Iterator[Token]:
    parts = ["'" + part.text + "'" if part.token_type is TokenType.STRING else part.text for part in path[1:]]
    first = "" if parts[0] == "[" else "."
    yield _build_token(TokenType.L_BRACKET, "[", path[0])
    yield _build_token(TokenType.STRING, f"{_PATH}{first}{''.join(parts)}", path[0])
    yield _build_token(TokenType.R_BRACKET, "]", path[-1])


def _without_own_operators(tokens: Sequence[Token]) -> Iterator[Token]:
    """`|> DROP a` as `|> SELECT * EXCEPT (a)`, and `|> SET a = 1` as `|> SELECT * REPLACE (1 AS a)`."""
    index = 0
    while index < len(tokens):
        token, pipe = tokens[index], tokens[index - 1] if index else None
        word = token.text.upper() if pipe and pipe.token_type is TokenType.PIPE_GT else ""
        if word not in ("DROP", "SET"):
            yield token
            index += 1
            continue
        end = _operator_end(tokens, index + 1)
        items = list(_split_at_commas(tokens[index + 1 : end]))
        if word == "DROP":
            yield from _star_tokens("EXCEPT", TokenType.EXCEPT, tokens[index + 1 : end], token)
        for number, item in enumerate(items if word == "SET" else ()):
            if len(item) < 3 or item[1].token_type is not TokenType.EQ:
                raise _error("`|> SET` needs the form `column = expression`")
            if number:
                yield _build_token(TokenType.PIPE_GT, "|>", token)
            named = [*item[2:], _build_token(TokenType.ALIAS, "AS", token), item[0]]
            yield from _star_tokens("REPLACE", TokenType.REPLACE, named, token)
        index = end


def _enclose_pivots(tokens: Sequence[Token]) -> tuple[list[Token], int]:
    """The tokens with a call around each expression of PIVOT that begins with one: the parser would take that for all
    of it. And how many these are."""
    out, enclosed, index = list[Token](), 0, 0
    while index < len(tokens):
        token = tokens[index]
        out.append(token)
        index += 1
        if token.token_type is not TokenType.PIVOT or index >= len(tokens):
            continue
        end = _operator_end(tokens, index + 1, TokenType.FOR)
        if tokens[index].token_type is not TokenType.L_PAREN or end >= len(tokens):
            continue
        out.append(tokens[index])
        items = list(_split_at_commas(tokens[index + 1 : end]))
        lengths = [_expression_length(item, alone=len(items) == 1) for item in items]
        for item, length in zip(items, lengths, strict=True):
            out += _enclose(item, length)
            out.append(_build_token(TokenType.COMMA, ",", (item or tokens)[-1]))
        out.pop()
        enclosed += sum(map(bool, lengths))
        index = end
    return out, enclosed


def _enclose(item: Sequence[Token], length: int) -> Iterator[Token]:
    if length:
        yield _build_token(TokenType.VAR, _PIVOT, item[0])
        yield _build_token(TokenType.L_PAREN, "(", item[0])
    yield from item[:length]
    if length:
        yield _build_token(TokenType.R_PAREN, ")", item[length - 1])
    yield from item[length:]


def _expression_length(item: Sequence[Token], *, alone: bool) -> int:
    """The length of an expression of PIVOT that is in brackets or goes on behind a call; 0 for another one, and for one
    of several without `AS`: of its text Spark makes the names of columns."""
    named = len(item) > 2 and item[-2].token_type is TokenType.ALIAS
    value = item[:-2] if named else item
    if not value or not (named or alone):
        return 0
    if value[0].token_type is TokenType.L_PAREN:
        return len(value)
    if len(value) < 2 or not _WORD.fullmatch(value[0].text) or value[1].token_type is not TokenType.L_PAREN:
        return 0
    behind = _operator_end(value, 2) + 1
    return len(value) if behind < len(value) and value[behind].token_type in _OPERATORS else 0


def _star_tokens(word: str, kind: TokenType, inside: Sequence[Token], at: Token) -> Iterator[Token]:
    yield _build_token(TokenType.SELECT, "SELECT", at)
    yield _build_token(TokenType.STAR, "*", at)
    yield _build_token(kind, word, at)
    yield _build_token(TokenType.L_PAREN, "(", at)
    yield from inside
    yield _build_token(TokenType.R_PAREN, ")", at)


def _arguments(tokens: Sequence[Token], index: int) -> int:
    """How many arguments stand in the brackets that open at `index`; 0 for no brackets."""
    if index >= len(tokens) or tokens[index].token_type is not TokenType.L_PAREN:
        return 0
    return len(list(_split_at_commas(tokens[index + 1 : _operator_end(tokens, index + 1)])))


def _operator_end(tokens: Sequence[Token], index: int, *ends: TokenType) -> int:
    depth = 0
    while index < len(tokens):
        kind = tokens[index].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth < 0 or (depth == 0 and kind in (TokenType.PIPE_GT, TokenType.SEMICOLON, *ends)):
            break
        index += 1
    return index


def _split_at_commas(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    item: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 and token.token_type is TokenType.COMMA:
            yield item
            item = []
        else:
            item.append(token)
    yield item


def _build_token(kind: TokenType, text: str, at: Token) -> Token:
    return Token(kind, text, at.line, at.col, at.start, at.end)


def _begins_hex(token: Token) -> bool:
    return token.token_type is TokenType.VAR and token.text in ("x", "X")


def _third_of_three(before: Sequence[Token], token: Token) -> bool:
    """True for the last token of `>>>`."""
    three = [*before[-2:], token]
    touch = all(one.end + 1 == other.start for one, other in pairwise(three))
    return len(three) == 3 and touch and all(sign.token_type is TokenType.GT for sign in three)
