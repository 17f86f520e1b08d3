"""Give the rows of a query one order: its columns decide the order that its own ORDER BY leaves open."""

from collections.abc import Sequence

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

AFTER = (TokenType.LIMIT, TokenType.OFFSET, TokenType.WINDOW)  # clauses that may follow an ORDER BY
# Clauses of Spark that exclude an ORDER BY.
OTHER = (TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY)


def order_query(text: str, columns: int) -> str:
    """Return a query (no comments, no semicolon) with its rows ordered by its own ORDER BY, then all columns."""
    outer = _outer_tokens(Dialect.get_or_raise("spark").tokenize(text))
    kinds = [token.token_type for token in outer]
    if any(kind in OTHER for kind in kinds):
        return text
    order = max((at for at, kind in enumerate(kinds) if kind is TokenType.ORDER_BY), default=-1)
    if order >= 0 and kinds[order + 1 : order + 2] == [TokenType.ALL]:
        return text
    end_kinds = AFTER if order >= 0 else AFTER[:2]
    end = next((token.start for token in outer[max(order, 0) :] if token.token_type in end_kinds), len(text))
    ordinals = ", ".join(str(number + 1) for number in range(columns))
    ordering = f", {ordinals}" if order >= 0 else f" ORDER BY {ordinals}"
    return f"{text[:end].rstrip()}{ordering} {text[end:]}".rstrip()


def _outer_tokens(tokens: Sequence[Token]) -> list[Token]:
    outer: list[Token] = []
    depth = 0
    for token in tokens:
        depth -= token.token_type is TokenType.R_PAREN
        if depth == 0:
            outer.append(token)
        depth += token.token_type is TokenType.L_PAREN
    return outer
