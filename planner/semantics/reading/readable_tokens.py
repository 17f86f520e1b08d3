"""Rewrite tokens of Spark SQL so that sqlglot can parse them, and restore the written form in its tree.

Only Spark has `>>>`, `v:field`, `|> SET`, `|> DROP`, `OVER (CLUSTER BY k)`, `X '1F'`, `MAX RECURSION LEVEL` and `PIVOT
(SUM(a) + 1 FOR ...)`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.semantics.reading.short_queries import write_out_queries
from mergeplan.planner.semantics.reading.token_runs import WORD, build_token, operator_end, split_at_commas

NESTED = ("ARRAY", "MAP", "STRUCT")
_REWRITTEN_KINDS = frozenset({
    TokenType.LT, TokenType.GT, TokenType.STRING, TokenType.COLON, TokenType.CLUSTER_BY, TokenType.WINDOW,
})  # fmt: skip
_REWRITTEN_WORDS = ("MAX", "PERCENTILE")
_HEX = re.compile(r"[0-9a-fA-F]*")
_PERCENTILE = "PERCENTILE\0"  # a name unknown to the parser, which therefore preserves all arguments
_PATH = "\0path "  # the key of a subscript that represents `:field`
PIVOT = "PIVOT\0"  # a call around an expression of PIVOT: sqlglot parses only calls there
# operators that may continue an expression after a call
_OPERATORS = frozenset({
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DIV, TokenType.MOD, TokenType.DPIPE,
    TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE, TokenType.NULLSAFE_EQ,
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.BETWEEN, TokenType.LIKE,
    TokenType.DCOLON, TokenType.L_BRACKET, TokenType.DOT,
})  # fmt: skip


@dataclass
class Readable:
    """The rewritten tokens, and the numbers of those that represent something else than the parser reads."""

    tokens: list[Token]
    shifts: int = 0  # `>>>`, written as `>>`
    paths: int = 0  # `v:field`, written as subscripts
    calls: int = 0  # calls under a name that the parser does not know


def readable(tokens: Sequence[Token]) -> Readable:
    """Return the tokens of one or more statements in a form that sqlglot can parse."""
    result = Readable([])
    types = 0  # open brackets of ARRAY<..., in which `>>>` closes three and `:` follows a field's name
    piped, result.calls = enclose_pivots(list(_without_own_operators(write_out_queries(tokens))))
    index = 0
    while index < len(piped):
        token, previous = piped[index], piped[index - 1] if index else None
        if token.token_type not in _REWRITTEN_KINDS and token.text.upper() not in _REWRITTEN_WORDS:
            result.tokens.append(token)
            index += 1
            continue
        words = [word.text.upper() for word in piped[index : index + 3]]
        if words == ["MAX", "RECURSION", "LEVEL"]:
            index += 4
            continue
        opens = token.token_type is TokenType.LT and previous is not None and previous.text.upper() in NESTED
        closes = token.token_type is TokenType.GT and types > 0
        types += opens - closes
        begins_hex = previous is not None and previous.token_type is TokenType.VAR and previous.text in ("x", "X")
        if previous and begins_hex and token.token_type is TokenType.STRING and _HEX.fullmatch(token.text):
            result.tokens[-1] = Token(
                TokenType.HEX_STRING, token.text, token.line, token.col, previous.start, token.end
            )
        elif not types and previous and (end := _path_end(piped, index)):
            result.tokens += _subscript_tokens(piped[index:end])
            result.paths += 1
            index = end
            continue
        elif not closes and _third_of_three(result.tokens, token):
            result.shifts += 1
        elif token.token_type is TokenType.CLUSTER_BY and previous and previous.token_type is TokenType.L_PAREN:
            # of a window: it sorts nothing
            result.tokens.append(build_token(TokenType.PARTITION_BY, "PARTITION BY", token))
        elif token.token_type is TokenType.WINDOW and piped[index + 1 : index + 2] and piped[index + 1].text == "(":
            # of time: no clause begins with a bracket
            result.tokens.append(build_token(TokenType.VAR, token.text, token))
        elif (
            token.token_type is TokenType.VAR
            and token.text.upper() == "PERCENTILE"
            and _count_arguments(piped, index + 1) > 2
        ):
            result.tokens.append(build_token(TokenType.VAR, _PERCENTILE, token))
            result.calls += 1
        else:
            result.tokens.append(token)
        index += 1
    return result


def restore_written_form(trees: Sequence[exp.Expr | None], read: Readable) -> list[exp.Expr | None]:
    """Return the trees with the written form restored; raise ParseError if it is ambiguous."""
    if not read.shifts and not read.paths and not read.calls:
        return list(trees)
    shifts, paths = (list(_find_nodes(trees, kind)) for kind in (exp.BitwiseRightShift, exp.Bracket))
    paths = [node for node in paths if _is_path(node)]
    if read.shifts and len(shifts) != read.shifts:
        raise _parse_error("`>>` and `>>>` cannot stand in one query: write `shiftrightunsigned(a, b)`")
    if len(paths) != read.paths:
        raise _parse_error("a field after `:` cannot stand here: write `variant_get(v, '$.field')`")
    return [tree and tree.transform(_as_written, bool(read.shifts), copy=False) for tree in trees]


def _find_nodes(trees: Sequence[exp.Expr | None], kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    return (node for tree in trees if tree for node in tree.find_all(kind))


def _as_written(node: exp.Expr, is_unsigned: bool) -> exp.Expr:
    if is_unsigned and isinstance(node, exp.BitwiseRightShift):
        return exp.Anonymous(this="SHIFTRIGHTUNSIGNED", expressions=[node.this, node.expression])
    if isinstance(node, exp.Bracket) and _is_path(node):
        path = exp.Literal.string(f"${node.expressions[0].name.removeprefix(_PATH)}")
        return exp.Anonymous(this="VARIANT_GET", expressions=[node.this, path])
    if isinstance(node, exp.Anonymous) and node.name == _PERCENTILE:
        node.set("this", "PERCENTILE")
    if isinstance(node, exp.Anonymous) and node.name == PIVOT:
        (value,) = node.expressions
        return value if isinstance(value, exp.Expr) else node
    return node


def _parse_error(message: str) -> ParseError:
    return ParseError.new(message, description=message)


def _is_path(node: exp.Expr) -> bool:
    return len(node.expressions) == 1 and node.expressions[0].is_string and node.expressions[0].name.startswith(_PATH)


def _path_end(tokens: Sequence[Token], index: int) -> int:
    previous = tokens[index - 1]
    named = previous.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET)
    if tokens[index].token_type is not TokenType.COLON or not named:
        return 0
    end = _part_end(tokens, index + 1)
    while end and (further_end := _further_part_end(tokens, end)):
        end = further_end
    return end


def _part_end(tokens: Sequence[Token], index: int) -> int:
    """Return the index after a name, or after a subscript by a number or a text, or 0."""
    kinds = [token.token_type for token in tokens[index : index + 3]]
    if kinds[:1] == [TokenType.L_BRACKET]:
        inside = kinds[1:2] in ([TokenType.NUMBER], [TokenType.STRING])
        return index + 3 if inside and kinds[2:] == [TokenType.R_BRACKET] else 0
    is_word = bool(kinds) and kinds[0] is not TokenType.STRING and WORD.fullmatch(tokens[index].text)
    return index + 1 if is_word else 0


def _further_part_end(tokens: Sequence[Token], index: int) -> int:
    kind = tokens[index].token_type if index < len(tokens) else None
    if kind in (TokenType.DOT, TokenType.COLON):
        return _part_end(tokens, index + 1)
    return _part_end(tokens, index) if kind is TokenType.L_BRACKET else 0


def _subscript_tokens(path: Sequence[Token]) -> Iterator[Token]:
    yield build_token(TokenType.L_BRACKET, "[", path[0])
    yield build_token(TokenType.STRING, f"{_PATH}{_path_text(path)}", path[0])
    yield build_token(TokenType.R_BRACKET, "]", path[-1])


def _path_text(path: Sequence[Token]) -> str:
    """Return a path after a value as VARIANT_GET takes it, without its `$`: `:a:b` is `:a.b`."""
    parts = ["'" + part.text + "'" if part.token_type is TokenType.STRING else part.text for part in path]
    text = "".join("." if part == ":" else part for part in parts)
    return text[1:] if text.startswith(".[") else text


def with_calls_for_paths(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with the name and the path of a VARIANT_GET call in place of each `:field`."""
    if all(token.token_type is not TokenType.COLON for token in tokens):
        return list(tokens)
    out, types, index = list[Token](), 0, 0
    while index < len(tokens):
        token, previous = tokens[index], tokens[index - 1] if index else None
        types += token.token_type is TokenType.LT and previous is not None and previous.text.upper() in NESTED
        types -= token.token_type is TokenType.GT and types > 0
        end = _path_end(tokens, index) if previous and not types else 0
        if end:
            out.append(build_token(TokenType.VAR, "VARIANT_GET", token))
            out.append(build_token(TokenType.STRING, f"${_path_text(tokens[index:end])}", token))
        else:
            out.append(token)
        index = end or index + 1
    return out


def _without_own_operators(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield `|> DROP a` as `|> SELECT * EXCEPT (a)`, and `|> SET a = 1` as `|> SELECT * REPLACE (1 AS a)`."""
    if all(token.token_type is not TokenType.PIPE_GT for token in tokens):
        yield from tokens
        return
    index = 0
    while index < len(tokens):
        token, pipe = tokens[index], tokens[index - 1] if index else None
        word = token.text.upper() if pipe and pipe.token_type is TokenType.PIPE_GT else ""
        if word not in ("DROP", "SET"):
            yield token
            index += 1
            continue
        end = operator_end(tokens, index + 1)
        items = list(split_at_commas(tokens[index + 1 : end]))
        if word == "DROP":
            yield from _star_tokens("EXCEPT", TokenType.EXCEPT, tokens[index + 1 : end], token)
        for number, item in enumerate(items if word == "SET" else ()):
            if len(item) < 3 or item[1].token_type is not TokenType.EQ:
                raise _parse_error("`|> SET` needs the form `column = expression`")
            if number:
                yield build_token(TokenType.PIPE_GT, "|>", token)
            named = [*item[2:], build_token(TokenType.ALIAS, "AS", token), item[0]]
            yield from _star_tokens("REPLACE", TokenType.REPLACE, named, token)
        index = end


def _star_tokens(word: str, kind: TokenType, inside: Sequence[Token], at: Token) -> Iterator[Token]:
    yield build_token(TokenType.SELECT, "SELECT", at)
    yield build_token(TokenType.STAR, "*", at)
    yield build_token(kind, word, at)
    yield build_token(TokenType.L_PAREN, "(", at)
    yield from inside
    yield build_token(TokenType.R_PAREN, ")", at)


def _count_arguments(tokens: Sequence[Token], index: int) -> int:
    if index >= len(tokens) or tokens[index].token_type is not TokenType.L_PAREN:
        return 0
    return len(list(split_at_commas(tokens[index + 1 : operator_end(tokens, index + 1)])))


def _third_of_three(before: Sequence[Token], token: Token) -> bool:
    """Return True for the last token of `>>>`."""
    three = [*before[-2:], token]
    touch = all(one.end + 1 == later.start for one, later in pairwise(three))
    return len(three) == 3 and touch and all(sign.token_type is TokenType.GT for sign in three)


def enclose_pivots(tokens: Sequence[Token]) -> tuple[list[Token], int]:
    """Return the tokens with a call around each expression of PIVOT that begins with one, and their number.

    The parser would read the first call as the whole expression.
    """
    if all(token.token_type is not TokenType.PIVOT for token in tokens):
        return list(tokens), 0
    out, enclosed, index = list[Token](), 0, 0
    while index < len(tokens):
        token = tokens[index]
        out.append(token)
        index += 1
        if token.token_type is not TokenType.PIVOT or index >= len(tokens):
            continue
        end = operator_end(tokens, index + 1, TokenType.FOR)
        if tokens[index].token_type is not TokenType.L_PAREN or end >= len(tokens):
            continue
        out.append(tokens[index])
        items = list(split_at_commas(tokens[index + 1 : end]))
        lengths = [_expression_length(item, alone=len(items) == 1) for item in items]
        for item, length in zip(items, lengths, strict=True):
            out += _enclose_item(item, length)
            out.append(build_token(TokenType.COMMA, ",", (item or tokens)[-1]))
        out.pop()
        enclosed += sum(map(bool, lengths))
        index = end
    return out, enclosed


def _enclose_item(item: Sequence[Token], length: int) -> Iterator[Token]:
    if length:
        yield build_token(TokenType.VAR, PIVOT, item[0])
        yield build_token(TokenType.L_PAREN, "(", item[0])
    yield from item[:length]
    if length:
        yield build_token(TokenType.R_PAREN, ")", item[length - 1])
    yield from item[length:]


def _expression_length(item: Sequence[Token], *, alone: bool) -> int:
    """Return the length of an expression of PIVOT that is in brackets or continues after a call, or 0 for others.

    Return 0 too for one of several without `AS`, because Spark names columns after its text.
    """
    named = len(item) > 2 and item[-2].token_type is TokenType.ALIAS
    value = item[:-2] if named else item
    if not value or not (named or alone):
        return 0
    if value[0].token_type is TokenType.L_PAREN:
        return len(value)
    if len(value) < 2 or not WORD.fullmatch(value[0].text) or value[1].token_type is not TokenType.L_PAREN:
        return 0
    behind = operator_end(value, 2) + 1
    return len(value) if behind < len(value) and value[behind].token_type in _OPERATORS else 0
