"""Parts of a query's tokens, by brackets and commas."""

import re
from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def operator_end(tokens: Sequence[Token], index: int, *ends: TokenType) -> int:
    """Return the end of a part that begins at `index`: a closing bracket, a pipe, a semicolon or one of `ends`."""
    depth = 0
    while index < len(tokens):
        kind = tokens[index].token_type
        depth += (kind in OPENING) - (kind in CLOSING)
        if depth < 0 or (depth == 0 and kind in (TokenType.PIPE_GT, TokenType.SEMICOLON, *ends)):
            break
        index += 1
    return index


def split_at_commas(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens between commas outside of brackets, up to the bracket that closes one before them."""
    item: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
        if depth < 0:
            break
        if depth == 0 and token.token_type is TokenType.COMMA:
            yield item
            item = []
        else:
            item.append(token)
    yield item


def build_token(kind: TokenType, text: str, at: Token) -> Token:
    return Token(kind, text, at.line, at.col, at.start, at.end)
