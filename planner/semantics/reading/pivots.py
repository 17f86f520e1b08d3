"""Expressions of PIVOT: sqlglot parses calls only, so each other one is wrapped in a call while it is parsed."""

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.semantics.reading.token_runs import WORD, build_token, operator_end, split_at_commas

PIVOT = "PIVOT\0"  # around an expression of PIVOT
# operators that may continue an expression after a call
_OPERATORS = frozenset({
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DIV, TokenType.MOD, TokenType.DPIPE,
    TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE, TokenType.NULLSAFE_EQ,
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.BETWEEN, TokenType.LIKE,
    TokenType.DCOLON, TokenType.L_BRACKET, TokenType.DOT,
})  # fmt: skip


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
